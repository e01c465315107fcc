"""Ask jedi for the target of calls. Jedi evaluates the code without running it."""

import filecmp
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctx.code.source_model import NameMention

if TYPE_CHECKING:
    from jedi import Project  # type: ignore[import-untyped]
    from jedi.api.classes import Name  # type: ignore[import-untyped]

DEFINES = re.compile(r"\s*(async\s+def|def|class)\b")
MOST_SECONDS = 60
"""For one question."""


class Call(NamedTuple):
    """A place where something is called by name."""

    path: str
    line: int
    column: int
    """The column of the last name: from 0, in characters, as in jedi."""
    text: str
    mention: NameMention


class Definition(NamedTuple):
    path: str | None
    """From the root; None outside of it."""
    line: int
    """0 where only its names are known."""
    names: tuple[str, ...]
    """From the file inward."""
    type: str

    def __str__(self) -> str:
        return f"{self.path or 'outside'}:{self.line} {'.'.join(self.names)} ({self.type})"


class Answer(NamedTuple):
    named: tuple[Definition, ...]
    """The definitions of the name."""
    called: tuple[Definition, ...]
    """The functions and classes among them; if there are none, those of its value."""


class Judge:
    """Jedi in its own process, because it may be slow and may fail in any way."""

    root: str
    project: "Project"

    @classmethod
    def start(cls, root: str, cache: str) -> None:
        import jedi

        jedi.settings.cache_directory = Path(cache, str(os.getpid()))
        signal.signal(signal.SIGALRM, cls._give_up)
        beside = [folder for name in ("src", "lib") if os.path.isdir(folder := f"{root}/{name}")]
        cls.root = root
        cls.project = jedi.Project(root, added_sys_path=beside)

    @staticmethod
    def _give_up(*_: object) -> None:
        raise TimeoutError

    @classmethod
    def ask(cls, call: Call) -> Answer:
        import jedi

        signal.alarm(MOST_SECONDS)
        try:
            path = os.path.join(cls.root, call.path)
            code = Path(path).read_bytes().decode("utf-8", "replace")
            environment = jedi.InterpreterEnvironment()
            script = jedi.Script(code, path=path, project=cls.project, environment=environment)
            named = script.goto(call.line, call.column, follow_imports=True)
            called = cls._callable(named) or cls._callable(script.infer(call.line, call.column))
            return Answer(tuple(map(cls._definition, named)), tuple(map(cls._definition, called)))
        finally:
            signal.alarm(0)

    @classmethod
    def _callable(cls, names: "Sequence[Name]") -> "list[Name]":
        """The functions and classes among them, at their definitions.

        Jedi's answer for an import that it could not follow is not a definition.
        """
        return [
            each
            for each in names
            if each.type in ("function", "class")
            and (cls._inside(each.module_path) is None or DEFINES.match(each.get_line_code()))
        ]

    @classmethod
    def _definition(cls, name: "Name") -> Definition:
        module, full = name.module_name or "", name.full_name or name.name
        names = tuple(full.removeprefix(module).lstrip(".").split("."))
        path, line = cls._inside(name.module_path), name.line or 0
        if path is None and (name.module_path or Path()).suffix == ".pyi":
            # Jedi has its own stubs for some packages: this may be the package itself.
            path, line = cls._module(module), 0
        return Definition(path, line, names, name.type)

    @classmethod
    def _inside(cls, path: Path | None) -> str | None:
        """The path relative to the root, also for an installed copy."""
        if path is None:
            return None
        real = Path(os.path.realpath(path))
        if "site-packages" in real.parts:
            tail = Path(*real.parts[len(real.parts) - real.parts[::-1].index("site-packages") :])
            own = cls._own(tail.as_posix())
            if own and filecmp.cmp(Path(cls.root, own), real, shallow=False):
                return own
        return real.relative_to(cls.root).as_posix() if real.is_relative_to(cls.root) else None

    @classmethod
    def _module(cls, name: str) -> str | None:
        path = name.replace(".", "/")
        return cls._own(f"{path}/__init__.py") or cls._own(f"{path}.py")

    @classmethod
    def _own(cls, path: str) -> str | None:
        """The location of an importable file."""
        for folder in ("", "src/", "lib/"):
            if os.path.isfile(f"{cls.root}/{folder}{path}"):
                return folder + path
        return None


def answers(calls: list[Call], root: str, cache: str) -> "Iterator[tuple[Call, Future[Answer]]]":
    with ProcessPoolExecutor(
        os.cpu_count(), multiprocessing.get_context("spawn"), Judge.start, (root, cache)
    ) as judges:
        asked = [(call, judges.submit(Judge.ask, call)) for call in calls]
        for number, (call, future) in enumerate(asked, 1):
            # Wait for it, and keep its error.
            future.exception()
            if sys.stdout.isatty():
                print(f"\r{number} of {len(asked)}", end="", flush=True)
            yield call, future
