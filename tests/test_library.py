"""ctx for programs: the public library."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctx.code.coverage import Coverage
from ctx.errors import ContentRefused, CtxError, NotAProject, PathRefused, UsageError
from ctx.library import Kept, NotKept, Project, Relation, open_project
from ctx.objects import refs
from ctx.objects.commits import work_chain
from ctx.workspace import open_project as workspace_of
from tests import page_examples
from tests.conftest import Ctx, git

PAGE = Path(__file__).parent.parent / "docs" / "library.md"
SECRET = "ghp" + "_" + "k9Xw2Lq7Rt4Vb8Nz3Mf6Hj1Pd5Sc0YgTuAeQ"

PAYMENTS = '''\
"""Payments through the gateway."""


def charge(amount: int) -> bool:
    """Charge a card; failed payments are not tried again."""
    return amount > 0
'''


@pytest.fixture
def shop(repo: Path, ctx: Ctx) -> Path:
    """A project with a store and a little code."""
    (repo / "src").mkdir()
    (repo / "src" / "payments.py").write_text(PAYMENTS)
    git("add", "-A")
    git("commit", "-qm", "Charge cards")
    assert ctx("init").code == 0
    return repo


def open_shop(folder: Path, session: str = "agent-7") -> Project:
    return open_project(folder, environment=os.environ, session=session)


def steps(project: Project) -> list[str]:
    """The kinds of steps in the work commits of a session, newest first."""
    repository = workspace_of(project._environment).repository
    tip = repository.refs.read(refs.work(project.session))
    return [step.work.step_kind for step in work_chain(repository.everything, tip)]


def observation_titles(ctx: Ctx) -> set[str]:
    """The first lines of all observations in memory."""
    found = ctx("query", "type:observation", "--format", "json").json
    return {node["content"].partition("\n")[0] for node in found["nodes"]}


def test_page_examples_of_the_library(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CTX_HOME")
    names: dict[str, object] = {}

    def run(code: str) -> str:
        capsys.readouterr()
        exec(code, names)
        return capsys.readouterr().out

    page_examples.check_python(PAGE, run)


def test_a_pack_comes_from_the_code_and_from_memory(shop: Path, ctx: Ctx) -> None:
    ctx("add", "--type", "decision", "Failed payments are retried three times.")
    with open_shop(shop) as project:
        pack = project.query("retry failed payments", budget=3000)
        assert project.build_pack("retry failed payments", 3000).files == pack.files
    assert pack.files[0].path == "src/payments.py"
    assert pack.token_budget.total == 3000
    assert {chunk.chunk_kind for chunk in pack.retrieved} >= {"Decision"}


def test_memory_of_an_untrusted_project_is_withheld(shop: Path, ctx: Ctx, tmp_path: Path) -> None:
    assert ctx("add", "decision", "Failed payments are tried again").code == 0
    assert ctx("commit", "-m", "Payments").code == 0
    git("add", "-A")
    git("commit", "-qm", "Memory")
    git("clone", "-q", str(shop), str(tmp_path / "clone"))
    for folder, is_trusted in ((shop, True), (tmp_path / "clone", False)):
        with open_shop(folder) as project:
            pack = project.query("Why do payments fail?")
            assert (project.is_trusted, pack.withheld) == (is_trusted, not is_trusted)
            kinds = {chunk.chunk_kind for chunk in pack.retrieved}
            assert ("Decision" in kinds) is is_trusted


def test_a_flush_is_one_work_commit(shop: Path, ctx: Ctx) -> None:
    (shop / "src" / "backoff.py").write_text("DELAY = 2\n")
    with open_shop(shop) as project:
        assert project.observe_file_read("src/payments.py") is None
        assert project.observe_file_write("src/backoff.py", "DELAY = 2\n") is None
        project.observe_command("pytest -q", "FAILED tests/test_pay.py::test_x\n1 failed\n", 1)
        project.observe_note("The gateway answers 429.")
        project.observe_relations(
            [
                ("src/payments.py", "DEPENDS_ON", "src/backoff.py"),
                Relation("src/backoff.py", "relates-to", "src/payments.py", evidence="by design"),
            ]
        )
        assert steps(project) == []
        kept = project.flush_step()
        assert steps(project) == ["file_write"]
        assert kept == Kept(
            project.session,
            kept.step,
            ("src/payments.py", "src/backoff.py"),
            kept.nodes,
            2,
            (),
            (),
            (),
        )
        assert kept.step
        assert project.flush_step().step is None
        # What is known already is no step.
        project.observe_file_read("src/payments.py")
        assert project.flush_step().step is None
        assert steps(project) == ["file_write"]
    assert observation_titles(ctx) == {
        "The gateway answers 429.",
        (
            "pytest -q failed with exit code 1: 1 error (tests/test_pay.py::test_x"
            " tests/test_pay.py), 2 lines of output"
        ),
    }


def test_a_session_becomes_a_commit(shop: Path, ctx: Ctx) -> None:
    with open_shop(shop) as project:
        assert project.compact_session() is None
        project.observe_note("Cards expire.")
        project.observe_file_read("src/payments.py")
        made = project.compact_session("Look at cards")
        assert made is not None
        assert (made.message, made.steps, made.files) == ("Look at cards", 1, ("src/payments.py",))
        assert steps(project) == []
    assert "Cards expire." in ctx("log").out + ctx("search", "cards expire").out


def test_pending_steps_are_flushed_at_the_end_also_after_an_error(shop: Path) -> None:
    with contextlib.suppress(ZeroDivisionError), open_shop(shop) as project:
        project.observe_note("Half way.")
        raise ZeroDivisionError
    assert steps(project) == ["note"]
    project.close()
    with pytest.raises(UsageError, match="closed"):
        project.observe_note("Too late.")
    with pytest.raises(UsageError, match="closed"):
        project.query("anything")


def test_files_that_are_not_kept_have_a_reason(shop: Path) -> None:
    (shop / ".gitignore").write_text("*.log\n")
    (shop / "out.log").write_text("x")
    (shop / "picture.bin").write_bytes(b"\0\1\2")
    (shop / "keys.py").write_text(f"KEY = '{SECRET}'\n")
    with open_shop(shop) as project:
        assert project.observe_file_read("out.log") == NotKept("out.log", ".gitignore lists it")
        assert project.observe_file_read("picture.bin") == NotKept("picture.bin", "it is binary")
        refused = project.observe_file_read("keys.py")
        assert refused is not None
        assert refused.reason.startswith("it contains a secret: ")
        written = project.observe_file_write("new.py", f"KEY = '{SECRET}'\n")
        assert written is not None
        assert written.what == "new.py"
        gone = project.observe_file_read("gone.py")
        assert gone == NotKept("gone.py", "it cannot be read: No such file or directory")
        for path in ("/etc/passwd", "../x", "src", "", ".git/config"):
            with pytest.raises(PathRefused):
                project.observe_file_read(path)
        project.observe_relations([("nothing here", "CALLS", "src/payments.py")])
        project.observe_note(f"The key is {SECRET}")
        kept = project.flush_step()
    assert kept.not_kept == (
        NotKept("nothing here CALLS src/payments.py", "'nothing here' is not known here."),
    )
    assert len(kept.nodes) == len(kept.redacted) == 1
    objects = b"".join(p.read_bytes() for p in (shop / ".git" / "ctx").rglob("*") if p.is_file())
    assert SECRET.encode() not in objects


def test_a_step_has_limits(shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctx("config", "set", "--project", "ingestion.max_files_per_step", "3").code == 0
    with open_shop(shop) as project:
        for number in range(4):
            project.observe_file_write(f"src/part{number}.py", f"x = {number}\n")
        project.observe_file_read("src/payments.py")
        kept = project.flush_step()
        assert kept.files == ("src/part0.py", "src/part1.py", "src/part2.py")
        reason = "a step has at most 3 files (ingestion.max_files_per_step)"
        not_kept = [NotKept(path, reason) for path in ("src/part3.py", "src/payments.py")]
        assert list(kept.not_kept) == not_kept
        # Known files take no room.
        for number in range(4):
            project.observe_file_write(f"src/part{number}.py", f"x = {number}\n")
        kept = project.flush_step()
        assert (kept.files, kept.not_kept) == (("src/part3.py",), ())
    monkeypatch.setenv("CTX_INGESTION_MAX_BYTES_PER_STEP", "100")
    with open_shop(shop) as project:
        project.observe_file_write("src/exact.py", "x = 98765\n" * 10)
        assert project.flush_step().files == ("src/exact.py",)
        project.observe_file_write("src/large.py", "y = 1\n" * 20)
        project.observe_file_write("src/small.py", "y = 2\n" * 10)
        project.observe_command("make", "first\n" * 20 + "last\n", 1)
        project.observe_note("A note is kept. " * 20)
        kept = project.flush_step()
    limit = "a step has at most 100 bytes (ingestion.max_bytes_per_step)"
    assert kept.files == ("src/small.py",)
    assert kept.not_kept == (
        NotKept("src/large.py", limit),
        NotKept("make", f"the beginning of its output: {limit}"),
    )
    assert len(kept.nodes) == 2
    command = ctx("show", kept.nodes[0], "--format=json").json["node"]
    blob = ctx("debug", "cat", command["metadata"]["blob"]).out
    assert blob == "first\n" * 5 + "last\n"


def test_what_makes_no_sense_is_refused_at_once(shop: Path) -> None:
    with open_shop(shop) as project:
        for text in ("", "  ", "a\0b", "\udcff"):
            with pytest.raises((UsageError, ContentRefused)):
                project.observe_note(text)
            with pytest.raises((UsageError, ContentRefused)):
                project.observe_command(text)
        for edge in (
            ("a", "CALLS"),
            ("a", "b", "c", "d"),
            ("a\0", "CALLS", "b"),
            Relation("a", "CALLS", "b", "quite"),
        ):
            with pytest.raises((UsageError, ContentRefused)):
                project.observe_relations([edge])  # type: ignore[list-item]
        with pytest.raises(UsageError) as refused:
            project.compact_session(" ")
        assert refused.value.hint == "Leave it out, and ctx generates one."
        for path in ("a\0b", "\udcff.py", "x\ny"):
            with contextlib.suppress(PathRefused):
                assert project.observe_file_write(path, "") is not None
        project.observe_relations([("src/payments.py", "no such label", "src/payments.py")])
        project.observe_command("x" * 1000, "\udcff\0" * 10, -11)
        kept = project.flush_step()
    assert (kept.step, len(kept.not_kept)) == (None, 2)


def test_a_failed_flush_keeps_the_pending_steps(shop: Path) -> None:
    with open_shop(shop) as project:
        project.observe_note("First.")
        folder = workspace_of(project._environment).project.lock
        os.makedirs(folder)
        with pytest.raises(CtxError):
            project.flush_step()
        os.rmdir(folder)
        assert len(project.flush_step().nodes) == 1


def test_without_a_project_store_the_user_store_is_used(repo: Path) -> None:
    (repo / "pay.py").write_text(PAYMENTS)
    with open_shop(repo) as project:
        assert project.query("charge a card", 2000).files[0].path == "pay.py"
        with pytest.raises(NotAProject):
            project.observe_file_read("pay.py")
        with pytest.raises(NotAProject):
            project.compact_session()
        project.observe_note("Cards expire.")
        project.observe_command("make", b"", 0)
        kept = project.flush_step()
        assert (kept.step, len(kept.nodes)) == (None, 2)
        assert project.query("when do cards expire", 2000).retrieved
    assert not (repo / ".ctx").exists()


def test_several_threads_can_use_one_project(shop: Path, ctx: Ctx) -> None:
    def work(number: int) -> None:
        project.observe_note(f"Thread {number}.")
        project.flush_step()
        assert project.query("charge", 2000).files

    with open_shop(shop) as project, ThreadPoolExecutor(4) as threads:
        # Whatever fails in one of them fails here.
        list(threads.map(work, range(4)))
    assert 1 <= len(steps(project)) <= 4
    assert observation_titles(ctx) == {f"Thread {number}." for number in range(4)}


def test_indexes_are_refreshed(shop: Path, tmp_path: Path) -> None:
    with open_shop(shop) as project:
        found = project.rebuild_index()
    assert isinstance(found, Coverage)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.py").write_text("A = 1\n")
    with open_shop(elsewhere) as project:
        assert isinstance(project.rebuild_index(), Coverage)


def test_the_environment_is_used_only_if_it_is_passed(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_SESSION", "from-outside")
    assert open_shop(shop, "").session == "from-outside"
    first, second = open_project(shop), open_project(shop)
    assert first.session.startswith("library-")
    assert first.session != second.session
    with pytest.raises(UsageError):
        open_project(shop, session="no spaces")
    with pytest.raises(PathRefused):
        open_project(tmp_path / "nowhere")
    with open_project(shop, environment={"CTX_HOME": str(tmp_path / "own")}) as project:
        project.query("charge", 2000)
    assert (tmp_path / "own" / "store.db").exists()


def test_an_answer_of_a_model_is_kept(shop: Path, ctx: Ctx) -> None:
    answer = "`charge` in src/payments.py tries once.\n\nDecision: try three times.\n"
    with open_shop(shop) as project:
        project.observe_file_read("src/payments.py")
        project.observe_response(answer, task="Retry failed payments", model="tiny-1")
        kept = project.flush_step()
        assert steps(project) == ["file_read"]
        assert (len(kept.nodes), kept.edges, kept.not_kept) == (1, 1, ())
        project.observe_response(answer, task="Retry failed payments", model="tiny-1")
        assert project.flush_step().step is None
    node = ctx("show", kept.nodes[0], "--format=json").json["node"]
    assert (node["type"], node["tags"]) == ("source", ["answer"])
    assert node["content"] == (
        "Answer of tiny-1 to: Retry failed payments\n\n"
        "`charge` in src/payments.py tries once.\n\n"
        "- Decision: try three times."
    )
    assert ctx("debug", "cat", node["metadata"]["blob"]).out == answer


def test_secrets_in_an_answer_of_a_model_are_redacted(shop: Path, ctx: Ctx) -> None:
    with open_shop(shop) as project:
        project.observe_response(f"The key is {SECRET}.")
        kept = project.flush_step()
        for wrong in ("", " \n"):
            with pytest.raises(UsageError):
                project.observe_response(wrong)
        with pytest.raises(ContentRefused):
            project.observe_response("x", task="half a character: \ud800")
    assert {each.where for each in kept.redacted} == {"answer"}
    assert SECRET not in ctx("show", kept.nodes[0]).out
