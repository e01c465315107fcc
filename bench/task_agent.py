"""A small coding agent for `bench/tasks.py`. It works with any model that answers with text.

Each answer of the model is one action: to read a file, to write one, to search memory, or to end.
There is no action that runs a command, and no path leaves the repository.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.two_session_tasks import write
from ctx import tokens
from ctx.errors import CtxError
from ctx.llm import backends
from ctx.llm.protocol import Backend, Meter, Request

Recall = Callable[[str], str]
"""Searches memory, and returns what an agent would read."""

RECALL_ACTION = "RECALL question"
_SYSTEM = """You are a coding agent. You work in a small repository and solve the task of the user.
Each of your answers is exactly one action, without any other text:

READ path
    shows a file
WRITE path
the whole content of the file, on the following lines
    writes a file
{recall}DONE
    ends your work

Write the file first, then answer DONE."""
_RECALL = f"{RECALL_ACTION}\n    searches what earlier sessions in this repository have said\n"
_ACTION = re.compile(r"^[ \t]*(READ|WRITE|RECALL|DONE)\b[ \t:]*(.*)$", re.MULTILINE)
_FENCE = re.compile(r"\A\s*```[^\n]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_LARGEST_RESULT = 4_000


class Limits(NamedTuple):
    turns: int
    answer_tokens: int
    """The most tokens of one answer."""


class Attempt(NamedTuple):
    """How a session went."""

    turns: int
    tokens: int
    """Of all requests and answers, as the server counts them, else estimated."""
    problem: str = ""
    """Why the model could not be asked; empty if it could."""


class Session:
    """The second session of a task: with `recall` and a context, or without both."""

    def __init__(self, folder: Path, prompt: str, context: str, recall: Recall | None) -> None:
        self._folder = folder
        self._recall = recall
        self._system = _SYSTEM.format(recall=_RECALL if recall else "")
        paths = sorted(
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and ".git" not in path.parts
        )
        known = f"{context.strip()}\n\n" if context.strip() else ""
        listed = "\n".join(paths)
        self._text = f"{known}The files of the repository:\n{listed}\n\nThe task: {prompt}\n"

    def play(self, backend: Backend, meter: Meter, limits: Limits) -> Attempt:
        spent = 0
        for turn in range(1, limits.turns + 1):
            request = Request(self._system, (self._text,), limits.answer_tokens, 0.0)
            try:
                answer = backends.ask(backend, request, meter)
            except CtxError as error:
                return Attempt(turn, spent, error.message)
            estimate = tokens.estimate(self._system + self._text + answer.text)
            spent += answer.usage.tokens if answer.usage else estimate
            result = self._act(answer.text)
            if result is None:
                return Attempt(turn, spent)
            self._text += f"\nYour action:\n{answer.text.strip()}\n\nIts result:\n{result}\n"
        return Attempt(limits.turns, spent)

    def _act(self, answer: str) -> str | None:
        """The result of an action; None after the last one."""
        action = _ACTION.search(answer)
        if action is None:
            return "This is not an action. Answer with READ, WRITE or DONE."
        word, rest = action[1], action[2].strip().strip("`")
        match word:
            case "DONE":
                return None
            case "RECALL":
                if self._recall is None:
                    return "There is no such action."
                return self._recall(rest)[:_LARGEST_RESULT]
            case "READ":
                path = self._inside(rest)
                if path is None or not path.is_file():
                    return f"There is no file {rest}."
                return path.read_text("utf-8", "replace")[:_LARGEST_RESULT]
            case _:
                path = self._inside(rest)
                if path is None or path.is_dir():
                    return f"{rest} cannot be written. Name a file inside the repository."
                text = answer[action.end() :].removeprefix("\n")
                fenced = _FENCE.match(text)
                content = f"{fenced[1]}\n" if fenced else text
                write(self._folder, str(path.relative_to(self._folder.resolve())), content)
                return f"{rest} is written."

    def _inside(self, name: str) -> Path | None:
        """A path in the repository; None if it is outside, or inside of .git."""
        try:
            path = (self._folder / name).resolve()
            inner = path.relative_to(self._folder.resolve())
        except (OSError, ValueError):
            return None
        return path if name and inner.parts and inner.parts[0] != ".git" else None
