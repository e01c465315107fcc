"""The tasks of `bench/tasks.py`: one TOML file each, in `bench/two_sessions/`.

kind, language     for the tables
[files]            the repository at the beginning
[programs]         programs on the PATH of the first session; the second one does not see them
[[first]]          the first session, step by step: `user`, `agent`, `reads`, `edits` or `runs`
[second]           the prompt of the second session, and a shell script that checks its result
[scripted]         what the scripted model looks for in its prompt, and what it writes
"""

import os
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "two_sessions"
_CHECK_S = 60


class ScriptedAnswer(NamedTuple):
    """How the scripted model solves a task."""

    needs: str
    """A regular expression for what only the first session said."""
    path: str
    right: str
    wrong_path: str
    wrong: str
    """What it writes without that knowledge."""


class Task(NamedTuple):
    name: str
    kind: str
    language: str
    files: Mapping[str, str]
    programs: Mapping[str, str]
    first: Sequence[Mapping[str, str]]
    prompt: str
    check: str
    scripted: ScriptedAnswer

    def write_files(self, folder: Path) -> None:
        for path, text in self.files.items():
            write(folder, path, text)

    def is_solved(self, folder: Path) -> bool:
        """Whether the check succeeds. It may run code that the model has written."""
        try:
            done = subprocess.run(
                ["/bin/sh", "-e", "-c", self.check],
                cwd=folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


def read_task(path: Path) -> Task:
    found = tomllib.loads(path.read_text("utf-8"))
    script = found["scripted"]
    answer = ScriptedAnswer(
        script["needs"],
        script["path"],
        script["right"],
        script.get("wrong_path", script["path"]),
        script["wrong"],
    )
    second = found["second"]
    return Task(
        path.stem,
        found["kind"],
        found["language"],
        found["files"],
        found.get("programs", {}),
        found["first"],
        second["prompt"],
        second["check"],
        answer,
    )


def all_tasks() -> list[Task]:
    return [read_task(path) for path in sorted(FOLDER.glob("*.toml"))]
