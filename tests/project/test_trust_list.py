"""The list of trusted project stores, and their keys."""

import json
import multiprocessing
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.layout import Project, project_at
from ctx.project import trust_check, trust_list
from ctx.project.trust_list import TrustEntry
from tests import effort
from tests.conftest import git

ADA = "Ada <ada@example.org>"
AT = "2026-01-20T10:00:00Z"


@pytest.fixture
def home(surroundings: Path) -> str:
    return str(surroundings / ".ctx")


@pytest.fixture
def cloned(repo: Path) -> Path:
    """A repository with a commit."""
    (repo / "a.txt").write_text("a\n")
    git("add", "-A")
    git("commit", "-qm", "A")
    return repo


def at(folder: Path) -> Project:
    return project_at(str(folder))


def is_trusted(home: str, folder: Path) -> bool:
    return trust_list.is_trusted(home, at(folder))


def test_a_project_is_trusted_until_it_is_revoked(home: str, repo: Path) -> None:
    project = at(repo)
    assert not trust_list.is_trusted(home, project)
    assert not trust_check.revoke(home, project)
    assert not os.path.exists(home)

    assert trust_check.trust_project(home, project, ADA, AT)
    assert not trust_check.trust_project(
        home, project, "Eve <eve@example.org>", "2027-01-01T00:00:00Z"
    )
    assert trust_list.is_trusted(home, project)
    (known,) = trust_list.all_entries(home)
    assert known._replace(marker="") == TrustEntry(
        f"{repo}/.git", str(repo), AT, ADA, owner=os.getuid()
    )
    assert os.listdir(home) == ["trusted.json"]
    key = trust_list.key_file(project, known.key)
    for path in (trust_list.path_of(home), key):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert json.loads(Path(key).read_text())["marker"] == known.marker
    assert json.loads(Path(trust_list.path_of(home)).read_text()) == {
        f"{repo}/.git": {
            "root": str(repo),
            "at": AT,
            "identity": ADA,
            "marker": known.marker,
            "roots": [],
            "remotes": {},
            "owner": os.getuid(),
        }
    }

    assert trust_check.revoke(home, project)
    assert not trust_check.revoke(home, project)
    assert trust_list.all_entries(home) == []


def test_a_folder_outside_of_git_can_be_trusted(home: str, folder: Path) -> None:
    trust_check.trust_project(home, at(folder), "", AT)
    assert [each[:4] for each in trust_list.all_entries(home)] == [
        (str(folder), str(folder), AT, "")
    ]
    (folder / "inner").mkdir()
    assert not is_trusted(home, folder / "inner")
    # It may become a repository later.
    git("init", "-q")
    assert is_trusted(home, folder)
    assert trust_check.revoke(home, at(folder))
    assert not is_trusted(home, folder)


def test_trust_covers_all_working_trees_of_a_repository(
    home: str, cloned: Path, tmp_path: Path
) -> None:
    linked, other = tmp_path / "linked tree", tmp_path / "clone"
    git("worktree", "add", "-q", str(linked), "-b", "linked")
    git("clone", "-q", str(cloned), str(other))
    words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(*words, cwd=cloned)
    trust_check.trust_project(home, at(linked), ADA, AT)
    assert is_trusted(home, cloned)
    for separate in (other, cloned / "sub"):
        assert not is_trusted(home, separate)
    assert trust_check.revoke(home, at(cloned))
    assert not is_trusted(home, linked)


def test_a_bare_repository_is_the_key_of_its_working_trees(
    home: str, cloned: Path, tmp_path: Path
) -> None:
    bare, linked = tmp_path / "app.git", tmp_path / "linked"
    git("clone", "-q", "--bare", str(cloned), str(bare))
    git("worktree", "add", "-q", str(linked), "main", cwd=bare)
    trust_check.trust_project(home, at(linked), ADA, AT)
    assert [each[:4] for each in trust_list.all_entries(home)] == [
        (str(bare), str(linked), AT, ADA)
    ]


def test_stores_of_one_repository_have_separate_entries(home: str, repo: Path) -> None:
    (repo / "api").mkdir()
    trust_check.trust_project(home, at(repo), ADA, AT)
    assert not trust_list.is_trusted(home, Project(str(repo / "api"), at(repo).checkout))
    api = Project(str(repo / "api"), at(repo).checkout)
    trust_check.trust_project(home, api, ADA, AT)
    assert [each.key for each in trust_list.all_entries(home)] == [
        f"{repo}/.git",
        f"{repo}/.git//api",
    ]
    assert trust_check.revoke(home, at(repo))
    assert trust_list.is_trusted(home, api)


@pytest.mark.parametrize("how", ["file", "link", "worktree", "commondir", "inside"])
def test_a_forged_git_folder_is_not_trusted(
    home: str, cloned: Path, tmp_path: Path, how: str
) -> None:
    """An archive can contain any `.git`."""
    git("worktree", "add", "-q", str(tmp_path / "linked"))
    trust_check.trust_project(home, at(cloned), ADA, AT)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    match how:
        case "file":
            (stranger / ".git").write_text(f"gitdir: {cloned}/.git\n")
        case "link":
            (stranger / ".git").symlink_to(cloned / ".git")
        case "worktree":
            (stranger / ".git").write_text(f"gitdir: {cloned}/.git/worktrees/linked\n")
        case "commondir":
            git("init", "-q", str(stranger))
            (stranger / ".git" / "commondir").write_text(f"{cloned}/.git\n")
        case "inside":
            inside = stranger / "worktrees" / "x"
            inside.mkdir(parents=True)
            (inside / "HEAD").write_text("ref: refs/heads/main\n")
            (inside / "commondir").write_text(f"{cloned}/.git\n")
            (inside / "gitdir").write_text(f"{stranger}/.git\n")
            (stranger / ".git").write_text(f"gitdir: {inside}\n")
    project = at(stranger)
    assert project.checkout is not None
    assert os.path.realpath(project.checkout.common_dir) == str(cloned / ".git")
    assert not trust_list.is_trusted(home, project)
    # Trusted itself, it is so alone.
    assert trust_check.revoke(home, at(cloned))
    trust_check.trust_project(home, project, ADA, AT)
    assert trust_list.is_trusted(home, project)
    assert not is_trusted(home, cloned)


def test_a_removed_project_can_be_revoked(home: str, folder: Path) -> None:
    trust_check.trust_project(home, at(folder), ADA, AT)
    shutil.rmtree(folder)
    assert not trust_check.revoke_folder(home, str(folder.parent))
    assert trust_check.revoke_folder(home, str(folder))
    assert trust_list.all_entries(home) == []


@pytest.mark.parametrize("kind", ["data", "folder", "link", "pipe"])
def test_with_an_unreadable_list_nothing_is_trusted(home: str, repo: Path, kind: str) -> None:
    os.mkdir(home)
    path = Path(trust_list.path_of(home))
    contents = [b"", b"\x00\xff", b"[]", b"{", b"null", b"[" * 100_000, b'{"a": NaN, "a" 1}']
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
    for data in contents if kind == "data" else [b""]:
        if kind == "data":
            path.write_bytes(data)
            assert not trust_check.revoke(home, at(repo))
            assert path.read_bytes() == data
        assert trust_list.is_broken(home)
        assert not is_trusted(home, repo)
        assert trust_list.all_entries(home) == []
        assert trust_check.trust_project(home, at(repo), ADA, AT)
        assert not trust_list.is_broken(home)
        assert is_trusted(home, repo)
        if kind == "data":
            assert (Path(home) / "trusted.json.broken").read_bytes() == data


def test_unknown_entries_are_kept(home: str, repo: Path) -> None:
    os.mkdir(home)
    theirs = {"/a": {"root": "/a", "at": AT, "identity": ADA, "until": 7}, "/b": 3, "/c": {"at": 1}}
    Path(trust_list.path_of(home)).write_text(json.dumps(theirs))
    assert trust_list.all_entries(home) == [TrustEntry("/a", "/a", AT, ADA, has_given=False)]
    trust_check.trust_project(home, at(repo), ADA, AT)
    assert trust_check.revoke(home, at(repo))
    assert json.loads(Path(trust_list.path_of(home)).read_text()) == theirs


names = st.binary(min_size=1, max_size=20).map(lambda name: name.translate(None, b"/\0."))


@given(st.lists(names.filter(bool), unique=True, max_size=5), st.data())
@settings(
    max_examples=effort.times(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_folder_can_be_trusted(
    tmp_path: Path, home: str, names: list[bytes], data: st.DataObject
) -> None:
    shutil.rmtree(home, ignore_errors=True)
    folders = [os.fsdecode(os.fsencode(tmp_path / "any") + b"/" + name) for name in names]
    for folder in folders:
        os.makedirs(os.path.join(folder, ".ctx"), exist_ok=True)
    projects = [Project(folder, None) for folder in folders]
    kept = data.draw(st.sets(st.sampled_from(range(len(projects))))) if projects else set()
    for project in projects:
        trust_check.trust_project(home, project, ADA, AT)
    for number, project in enumerate(projects):
        assert number in kept or trust_check.revoke(home, project)
    expected = sorted(project.root for number, project in enumerate(projects) if number in kept)
    assert [trusted.root for trusted in trust_list.all_entries(home)] == expected


def _trust_one(home: str, folder: str) -> None:
    trust_check.trust_project(home, Project(folder, None), ADA, AT)


def test_concurrent_additions_are_all_kept(home: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    folders = [tmp_path / "projects" / str(number) for number in range(12)]
    for folder in folders:
        (folder / ".ctx").mkdir(parents=True)
    processes = [context.Process(target=_trust_one, args=(home, str(each))) for each in folders]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert len(trust_list.all_entries(home)) == 12
