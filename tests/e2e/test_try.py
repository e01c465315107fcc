"""`make try`: it installs ctx, the demo works, and the README shows its real output."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import installed, page_examples

ROOT = Path(__file__).parents[2]
CTX = Path(sys.executable).with_name("ctx")


def excerpt(chapter: str) -> str:
    """The layers of a context: from its first heading to its closing rule."""
    lines = [line.removeprefix("  │").removeprefix(" ") for line in chapter.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("## "))
    return "\n".join(lines[first : lines.index("---")]).rstrip() + "\n"


def test_page_examples_of_the_readme() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "try", CTX],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    parts = re.split(r"^━━ (.*)$", done.stdout, flags=re.MULTILINE)
    assert "The agent is scripted: no model is used." in " ".join(parts[0].split())
    chapters = dict(zip(parts[1::2], parts[2::2], strict=True))
    _, first, second, third, last = chapters.values()
    assert "fails (1)" in first
    assert "passes" in first
    assert "test_refreshes_once" in first
    for context in (second, third):
        assert "Session.get" in context
    assert "never by callers" in second
    assert "bank/client.py" in third
    assert "ten tokens a minute" in " ".join(last.replace("│", " ").split())
    assert "Models:" not in last
    page_examples.check_excerpt(ROOT / "README.md", "make try, session 2", excerpt(second))


# What `make try` installs first. A pretended Python installs nothing, so that this takes no time.

PYTHON = """#!/bin/sh
case "$*" in
    *'print('*) echo {version} ;;
    *'sys.exit('*) [ {version} != 3.10 ] ;;
    '-m venv '*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *' pip install '*) {pip} ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    (folder / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("sh", "make", "mktemp", "rm", "mkdir", "cp", "sleep", "tail", "touch", "git"):
        (folder / "bin" / name).symlink_to(installed.program(name))
    return folder


def write_python(clone: Path, version: str = "3.12", pip: str = ":") -> None:
    program = clone / "bin" / "python3"
    program.write_text(PYTHON.format(version=version, pip=pip))
    program.chmod(0o755)


def install(clone: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", ".venv/.runs"],
        cwd=clone,
        env={"PATH": f"{clone}/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def own_lines(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """What the installation printed, without what make adds to a failure."""
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    return [line for line in lines if not line.startswith("make: ")]


def test_an_old_python_is_refused_in_a_sentence(clone: Path) -> None:
    write_python(clone, version="3.10")
    done = install(clone)
    assert done.returncode != 0
    assert own_lines(done) == [
        "ctx needs Python 3.11 or newer, and `python3` is Python 3.10.",
        "Install a newer one, or name another: make try PYTHON=python3.12",
    ]
    assert not (clone / ".venv").exists()


def test_a_failed_installation_shows_why(clone: Path) -> None:
    write_python(clone, pip="echo 'No route to host'; exit 1")
    done = install(clone)
    assert done.returncode != 0
    assert "Installing ctx into .venv (once, about a minute) failed:" in done.stderr
    assert "No route to host" in done.stderr
    assert not (clone / ".venv" / ".runs").exists()
