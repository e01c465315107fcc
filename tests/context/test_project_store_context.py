"""How a hook reads the memory of a project, without writing anything."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ctx import layout
from ctx.context import project_store_context
from ctx.context.contexts import ProjectStoreState
from ctx.layout import Project
from ctx.project import trust_check
from tests.conftest import Ctx, git


@pytest.fixture
def home(surroundings: Path) -> str:
    return str(surroundings / ".ctx")


@pytest.fixture
def project(repo: Path, ctx: Ctx, home: str) -> Project:
    """A project with one committed node."""
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "Known.").code == 0
    assert ctx("commit", "-m", "One").code == 0
    assert ctx("list").code == 0
    found = layout.find_project(str(repo), home)
    assert found is not None
    return found


@contextmanager
def reading(home: str, project: Project) -> Iterator[ProjectStoreState]:
    found = project_store_context.read(home, project)
    try:
        yield found
    finally:
        if found.connection is not None:
            found.connection.close()


def store_version(home: str, project: Project) -> str:
    with reading(home, project) as found:
        assert found.is_current
        assert found.notice == ""
        return found.version


def contents(found: ProjectStoreState) -> list[str]:
    assert found.connection is not None
    return [row[0] for row in found.connection.execute("SELECT content FROM nodes ORDER BY id")]


def test_every_change_of_the_store_gives_a_new_version(
    home: str, project: Project, ctx: Ctx
) -> None:
    with reading(home, project) as found:
        assert contents(found) == ["Known."]
        assert project_store_context.current(project) == found._replace(connection=None)
    seen = [store_version(home, project)]
    assert store_version(home, project) == seen[0]

    def is_another() -> None:
        seen.append(store_version(home, project))
        assert len(set(seen)) == len(seen)

    assert ctx("add", "--type=fact", "Staged.").code == 0
    is_another()
    with reading(home, project) as found:
        assert contents(found) == ["Known.", "Staged."]
        assert project_store_context.current(project) == found._replace(connection=None)
    assert ctx("commit", "-m", "Two").code == 0
    assert ctx("list").code == 0
    is_another()
    document = Path(project.narrative, "notes.md")
    for text in ("# Notes\n", "# More notes\n", None):
        document.write_text(text) if text else document.unlink()
        with reading(home, project) as found:
            assert (found.version, found.notice, found.is_current) == (
                "behind",
                project_store_context.BEHIND,
                False,
            )
            assert contents(found) == ["Known.", "Staged."]
        assert ctx("list").code == 0
        is_another() if text else None
        assert store_version(home, project) == project_store_context.current(project).version


def test_each_branch_is_read_from_its_own_index(home: str, project: Project, ctx: Ctx) -> None:
    git("add", ".")
    git("commit", "-qm", "One")
    git("checkout", "-qb", "other")
    assert ctx("add", "--type=fact", "Elsewhere.").code == 0
    assert ctx("commit", "-m", "Two").code == 0
    assert ctx("list").code == 0
    git("add", ".")
    git("commit", "-qm", "Two")
    git("checkout", "-q", "main")
    with reading(home, project) as found:
        assert found.version == "behind"
        assert contents(found) == ["Known.", "Elsewhere."]
    assert ctx("list").code == 0
    with reading(home, project) as found:
        assert found.is_current
        assert contents(found) == ["Known."]


def test_without_a_readable_index_nothing_is_shown(home: str, project: Project) -> None:
    notice = project_store_context.MISSING
    missing = ProjectStoreState(version="missing", notice=notice, is_current=False)
    [path] = Path(project.indexes).glob("*/store.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert project_store_context.read(home, project) == missing
    path.write_bytes(b"?" * 4096)
    assert project_store_context.read(home, project) == missing
    path.unlink()
    assert project_store_context.read(home, project) == missing


def test_a_project_that_is_untrusted_or_damaged_is_unreadable(home: str, project: Project) -> None:
    # A stray file is not a head.
    Path(project.heads, "junk").touch()
    assert project_store_context.read(home, project).version != "unreadable"
    Path(project.heads, "junk").unlink()
    os.rename(project.narrative, f"{project.narrative}.away")
    os.symlink("/", project.narrative)
    assert project_store_context.read(home, project).version == "unreadable"
    assert trust_check.trusted_project(home, project.root) == project
    trust_check.revoke(home, project)
    assert project_store_context.read(home, project) == ProjectStoreState(
        version="not trusted", notice=project_store_context.NOT_TRUSTED
    )
    assert trust_check.trusted_project(home, project.root) is None
