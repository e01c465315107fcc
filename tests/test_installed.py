"""A program that is missing is named at the end of the run, or the run fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed import program

ROOT = Path(__file__).parent.parent


def run_fish_tests(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The tests of one shell, on a PATH without it."""
    (folder / "bin").mkdir()
    for name in ("git", "sh"):
        (folder / "bin" / name).symlink_to(program(name))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/cli/test_completion.py", "-k", "fish"],
        cwd=ROOT,
        env={**os.environ, "PATH": str(folder / "bin"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_missing_program_is_listed_with_how_to_install_it(tmp_path: Path) -> None:
    ran = run_fish_tests(tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert "fish is not installed, 2 tests skipped: apt-get install fish\n" in ran.stdout


@pytest.mark.slow
def test_a_missing_program_is_a_failure_where_all_are_required(tmp_path: Path) -> None:
    ran = run_fish_tests(tmp_path, CTX_TEST_REQUIRE_ALL="1")
    assert ran.returncode == 1, ran.stdout
    assert "fish is not installed: apt-get install fish" in ran.stdout


@pytest.mark.parametrize("name", ["zsh", "fish", "groff", "node", "cargo", "git", "make"])
def test_ci_checks_for_the_program(name: str) -> None:
    assert f"command -v {name} " in (ROOT / ".ci" / "run").read_text()
