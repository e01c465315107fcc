"""`make dist`: the same bytes for the same commit, and only files that belong to ctx."""

import email
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from ctx import __version__
from tests.conftest import git

ROOT = Path(__file__).parents[1]
NAME = f"ctx_memory-{__version__}"
MOST_BYTES = 12_000_000
COPIED = (
    *("src", "scripts", "docs/man", "tests/golden/stores"),
    *("Makefile", "pyproject.toml", "constraints.txt"),
)
PAGES = ("README.md", "CHANGELOG.md", "LICENSE", ".gitignore")
STRAYS = (".ctx/store.db", "src/ctx/.ctx/notes.md", "src/ctx/draft.py", "tests/test_draft.py")


class Built(NamedTuple):
    """What `make dist` wrote in one clone."""

    clone: Path
    sdist: Path
    wheel: Path

    def tracked(self) -> set[str]:
        return set(git("ls-files", cwd=self.clone).splitlines())

    def manual(self) -> set[str]:
        return {name for name in self.tracked() if name.startswith("docs/man/")}


def make_dist(clone: Path, umask: int) -> Built:
    """Run `make dist` with the interpreter of the tests, which has what it needs."""
    venv = Path(sys.prefix)
    installed = venv / ".installed"
    words = ["make", "-o", str(installed), "dist", f"VENV={venv}"]
    done = subprocess.run(
        words, cwd=clone, umask=umask, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = sorted(os.listdir(clone / "dist"))
    assert names == [f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"]
    return Built(clone, clone / "dist" / names[1], clone / "dist" / names[0])


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, Built]:
    """The same commit in two folders: one clean, one with other files in it."""
    space = tmp_path_factory.mktemp("dist")
    first, second = space / "first", space / "another folder" / "second"
    listed = [path for each in COPIED for path in files_below(ROOT / each)]
    for path in (*listed, *(ROOT / page for page in PAGES)):
        copy = first / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        copy.chmod(path.stat().st_mode & 0o777)
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "A Person")
            patch.setenv(f"GIT_{role}_EMAIL", "person@example.org")
        git("init", "-q", "-b", "main", cwd=first)
        git("add", "-A", cwd=first)
        git("commit", "-qm", "A release", cwd=first)
        second.parent.mkdir()
        git("clone", "-q", str(first), str(second), cwd=space)
    for stray in STRAYS:
        (second / stray).parent.mkdir(parents=True, exist_ok=True)
        (second / stray).write_text("not committed\n")
    return make_dist(first, 0o022), make_dist(second, 0o077)


def files_below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts]


def test_two_clones_give_the_same_bytes(builds: tuple[Built, Built]) -> None:
    first, second = builds
    assert first.sdist.read_bytes() == second.sdist.read_bytes()
    assert first.wheel.read_bytes() == second.wheel.read_bytes()


def test_the_wheel_has_every_file_of_the_package_and_no_other(
    builds: tuple[Built, Built],
) -> None:
    built = builds[0]
    sources = {name for name in built.tracked() if name.startswith("src/ctx/")}
    with zipfile.ZipFile(built.wheel) as wheel:
        infos = wheel.infolist()
        metadata = email.message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA"))
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert {info.filename for info in infos} == {
        *(name.removeprefix("src/") for name in sources),
        *(f"{NAME}.data/data/share/man/man1/{Path(page).name}" for page in built.manual()),
        *(f"{NAME}.dist-info/{name}" for name in about),
    }
    assert len({info.date_time for info in infos}) == 1
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    for name in ("py.typed", "search/data/static.table", "code/languages/rust.scm"):
        assert f"ctx/{name}" in {info.filename for info in infos}


def test_the_sdist_has_what_the_wheel_is_built_from(builds: tuple[Built, Built]) -> None:
    built = builds[0]
    with tarfile.open(built.sdist) as sdist:
        members = sdist.getmembers()
    sources = {name for name in built.tracked() if name.startswith("src/ctx/")}
    assert {member.name for member in members} == {
        f"{NAME}/{name}"
        for name in {*sources, *built.manual(), *PAGES, "pyproject.toml", "PKG-INFO"}
    }
    assert len({member.mtime for member in members}) == 1
    assert {member.uid for member in members} | {member.gid for member in members} == {0}


def test_both_are_small(builds: tuple[Built, Built]) -> None:
    assert builds[0].sdist.stat().st_size < MOST_BYTES
    assert builds[0].wheel.stat().st_size < MOST_BYTES
