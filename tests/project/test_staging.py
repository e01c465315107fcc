"""Chains of work commits: what is recovered from a damaged one."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.errors import CtxError, StagingConflict
from ctx.ids import ObjectId, SessionId
from ctx.layout import project_at
from ctx.objects import refs
from ctx.objects.object_store import Object, blob, typed
from ctx.objects.object_types import Commit, StepKind, Tree
from ctx.objects.repository import Repository
from ctx.project import broken_chains, current_session, staging
from tests import effort

SESSION = SessionId("s")
NAME = refs.work(SESSION)


def project_with_commit(folder: str) -> Repository:
    """A project with one commit."""
    root = Path(folder)
    (root / ".ctx").mkdir(parents=True)
    (root / ".ctx" / "config.toml").write_text("[repo]\n")
    repository = Repository(project_at(folder))
    tree = typed(Tree(()))
    first = typed(Commit((), 1, "First", tree.id))
    with repository.locked("a test"):
        repository.objects.write([tree, first])
        repository.publish(first.id, [], None)
    return repository


def step(repository: Repository, *contents: Object) -> ObjectId:
    with repository.locked("a test"):
        staging.open_steps(repository, SESSION, repository.tips())
        ids = [each.id for each in contents]
        return staging.append(repository, SESSION, StepKind.NOTE, contents, ids)


def damage(repository: Repository, id: ObjectId, *, gone: bool) -> None:
    path = os.path.join(repository.staged.folder, id)
    os.unlink(path)
    if not gone:
        Path(path).write_bytes(b"nonsense")


def contents(repository: Repository) -> list[ObjectId]:
    """The content of the steps of the session, oldest first."""
    steps = staging.chain(repository, SESSION)
    return [each for step in reversed(steps) for each in step.work.payload]


@settings(max_examples=effort.times(10), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    wounds=st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=4),
    ref=st.sampled_from([None, "", "nonsense\n", "0" * 64 + "\n"]),
)
def test_every_intact_step_is_recovered(
    sizes: list[int], wounds: list[tuple[int, bool]], ref: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repository = project_with_commit(folder)
        steps: dict[ObjectId, list[ObjectId]] = {}
        for number, size in enumerate(sizes):
            said = [blob(f"{number}.{part}".encode()) for part in range(size)]
            steps[step(repository, *said)] = [each.id for each in said]
        every = [*steps, *(each for held in steps.values() for each in held)]
        for position, gone in wounds:
            id = every[position % len(every)]
            if id in repository.staged:
                damage(repository, id, gone=gone)
        if ref is not None:
            Path(repository.refs.folder, NAME).write_text(ref)
        is_whole = ref is None and not wounds
        expected = [
            each
            for id, held in steps.items()
            for each in held
            if repository.staged.is_sound(id) and repository.staged.is_sound(each)
        ]
        with repository.locked("a test"):
            assert broken_chains.broken_refs(repository) == ([] if is_whole else [NAME])
            if is_whole:
                return
            told = broken_chains.repair_chain(repository, NAME, dry_run=True)
            mended = broken_chains.repair_chain(repository, NAME, dry_run=False)
            assert mended[:3] == told[:3]
            assert broken_chains.broken_refs(repository) == []
        if expected:
            # Pieces that were made in the same second have no order once what joins them is lost.
            saved = contents(repository)
            assert sorted(saved) == sorted(expected)
            step(repository, blob(b"on"))
            assert contents(repository) == [*saved, blob(b"on").id]
        else:
            assert mended.set_aside == "damaged/s"
            assert repository.refs.read(NAME) is None


def test_steps_of_another_chain_are_not_taken(tmp_path: Path) -> None:
    repository = project_with_commit(str(tmp_path))
    step(repository, blob(b"aborted"))
    tip = repository.refs.require(NAME)
    repository.refs.rename(NAME, tip, refs.aborted_ref("s-1"))
    step(repository, blob(b"one"))
    damage(repository, step(repository, blob(b"two")), gone=True)
    with repository.locked("a test"):
        assert broken_chains.repair_chain(repository, NAME, dry_run=False).steps == 1
    assert contents(repository) == [blob(b"one").id]


def test_a_step_whose_ref_was_not_moved_is_recovered(tmp_path: Path) -> None:
    """A process was killed between writing a step and moving the ref; another step followed."""
    repository = project_with_commit(str(tmp_path))
    first = step(repository, blob(b"one"))
    step(repository, blob(b"killed"))
    repository.refs.put(NAME, first)
    step(repository, blob(b"two"))
    damage(repository, step(repository, blob(b"three")), gone=False)
    with repository.locked("a test"):
        assert broken_chains.repair_chain(repository, NAME, dry_run=False).steps == 3
    assert contents(repository)[0] == blob(b"one").id
    assert set(contents(repository)[1:]) == {blob(b"killed").id, blob(b"two").id}


def test_a_ref_is_renamed_only_from_its_expected_value(tmp_path: Path) -> None:
    repository = project_with_commit(str(tmp_path))
    first = step(repository, blob(b"one"))
    second = step(repository, blob(b"two"))
    with pytest.raises(StagingConflict):
        repository.refs.rename(NAME, first, refs.aborted_ref("s"))
    repository.refs.rename(NAME, second, refs.aborted_ref("s"))
    step(repository, blob(b"three"))
    with pytest.raises(StagingConflict):
        repository.refs.rename(NAME, repository.refs.require(NAME), refs.aborted_ref("s"))


def test_a_joined_session_is_recorded(tmp_path: Path) -> None:
    project = project_with_commit(str(tmp_path)).project
    assert current_session.read(project) == current_session.CurrentSession(None)
    current_session.join(project, SESSION)
    assert current_session.read(project) == current_session.CurrentSession(SESSION)
    assert oct(os.stat(project.stage).st_mode)[-3:] == "600"
    assert not current_session.leave(project, SessionId("other"))
    assert current_session.leave(project, SESSION)
    assert not current_session.leave(project, SESSION)
    for content in (b"", b"\xff\xfe", b"a/b\n", b"x" * 200, b"a\nb\n"):
        Path(project.stage).write_bytes(content)
        session, problem = current_session.read(project)
        assert session is None
        assert problem.endswith("does not name a session.")
    os.unlink(project.stage)
    os.symlink("/etc/hostname", project.stage)
    assert "cannot be read" in current_session.read(project).problem
    assert current_session.leave(project, None)
    assert not os.path.lexists(project.stage)


def test_a_damaged_parked_chain_does_not_stop_its_session(tmp_path: Path) -> None:
    repository = project_with_commit(str(tmp_path))
    parked = step(repository, blob(b"one"))
    repository.refs.rename(NAME, parked, refs.work(SessionId(f"s-{parked[:12]}")))
    damage(repository, parked, gone=True)
    step(repository, blob(b"two"))
    assert contents(repository) == [blob(b"two").id]
    with pytest.raises(CtxError):
        staging.chain(repository, SessionId(f"s-{parked[:12]}"))
