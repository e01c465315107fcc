"""Asking jedi where calls lead. It evaluates the code in its own way, and runs none of it."""

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
    """A place where something is called by its name."""

    path: str
    line: int
    column: int
    """From 0, in characters, as jedi counts them: where the last name begins."""
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
    """What the name is."""
    called: tuple[Definition, ...]
    """The functions and classes among them; where there are none, those that it holds."""


class Judge:
    """Jedi, in a process of its own: it may take long, and it may fail in any way."""

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
            return Answer(tuple(map(cls._told, named)), tuple(map(cls._told, called)))
        finally:
            signal.alarm(0)

    @classmethod
    def _callable(cls, names: "Sequence[Name]") -> "list[Name]":
        """The functions and classes among them, where they are defined: what jedi says of an
        import that it could not follow is not where that is."""
        return [
            each
            for each in names
            if each.type in ("function", "class")
            and (cls._inside(each.module_path) is None or DEFINES.match(each.get_line_code()))
        ]

    @classmethod
    def _told(cls, name: "Name") -> Definition:
        module, full = name.module_name or "", name.full_name or name.name
        names = tuple(full.removeprefix(module).lstrip(".").split("."))
        path, line = cls._inside(name.module_path), name.line or 0
        if path is None and (name.module_path or Path()).suffix == ".pyi":
            # Jedi brings stubs of its own for some packages: this may be the package itself.
            path, line = cls._module(module), 0
        return Definition(path, line, names, name.type)

    @classmethod
    def _inside(cls, path: Path | None) -> str | None:
        """The path from the root, also of a copy that is installed somewhere."""
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
        """Where a file is that can be imported."""
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
            # Waits for it, and keeps what went wrong.
            future.exception()
            if sys.stdout.isatty():
                print(f"\r{number} of {len(asked)}", end="", flush=True)
            yield call, future
