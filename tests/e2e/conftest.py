"""A project without git, a way to see whether a command left anything in it, and the process that
runs commands which are killed or interrupted."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.layout import project_at
from ctx.objects import commits
from ctx.objects.repository import Repository
from tests.conftest import Ctx, use_home
from tests.e2e import merge_trials, trial_commands
from tests.e2e.forked_commands import Forker, forker
from tests.e2e.planted_text import Planted, a_project


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return folder


@pytest.fixture(scope="session")
def _base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        use_home(home, patch)
        folder = home / "app"
        folder.mkdir()
        merge_trials.git(folder, "init", "-q", "-b", "main")
        trial_commands.ctx(folder, "init")
        trial_commands.ctx(folder, "add", "--type", "fact", "Base.")
        trial_commands.ctx(folder, "commit", "-m", "Base.")
        merge_trials.commit(folder, "Base.")
    return folder


@pytest.fixture
def based(folder: Path, _base: Path, ctx: Ctx) -> Path:
    """A copy of a repository with one fact, which is in memory and in git."""
    copy_project(_base, folder)
    assert ctx("trust", "--yes").code == 0
    return folder


class Saved:
    """Folders as they are now, which a test brings back. They stay, for who works in them."""

    def __init__(self, *places: Path) -> None:
        self._copies = {place: place.with_name(f"{place.name}.saved") for place in places}
        for place, copy in self._copies.items():
            shutil.rmtree(copy, ignore_errors=True)
            if place.exists():
                shutil.copytree(place, copy, symlinks=True)

    def restore(self) -> None:
        for place, copy in self._copies.items():
            if not copy.exists():
                shutil.rmtree(place, ignore_errors=True)
                continue
            for entry in place.iterdir() if place.exists() else ():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            shutil.copytree(copy, place, symlinks=True, dirs_exist_ok=True)


def copy_project(source: Path, target: Path) -> None:
    """Copy a folder and keep hard links: a staged object is a link to the committed one."""
    first: dict[int, str] = {}

    def copy(old: str, new: str) -> None:
        inode = os.stat(old).st_ino
        if inode in first:
            os.link(first[inode], new)
        else:
            first[inode] = shutil.copy2(old, new)

    shutil.copytree(source, target, symlinks=True, copy_function=copy, dirs_exist_ok=True)


@pytest.fixture
def at(ctx: Ctx, surroundings: Path, repo: Path) -> Planted:
    """A project with an agent's session, in which texts are planted."""
    return a_project(ctx, surroundings, repo)


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forker]:
    with forker(tmp_path_factory.mktemp("forked")) as process:
        yield process


def messages(folder: Path) -> set[str]:
    """The messages of all commits of memory but the first."""
    repository = Repository(project_at(str(folder)))
    walked = commits.walk(repository.objects, [id for id, _ in repository.current()])
    return {commit.message for _, commit in walked if commit} - {"Initial commit"}


def state(folder: Path) -> set[str]:
    return {str(path) for path in (folder / ".ctx").rglob("*")}
