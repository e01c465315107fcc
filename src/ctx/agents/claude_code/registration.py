"""Which hooks are registered with the client, and as what command lines.

An event that a client does not know makes older ones drop every hook of the file. So only what
all clients on this machine know is registered for a user. A project's settings and a plugin
travel to machines whose clients nobody knows: they get what every client knows.

For a user, a hook is run by the interpreter that ctx runs by, which needs no PATH and costs
least. In what travels it is plain `ctx`. A program that is not there any more must not stand in
anybody's way: the client takes an exit code of 2 as a veto, so every line ends in `|| true`.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ctx.context import layers
from ctx.hook_files.spool import EVENTS

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "entry.py")
"""The script that a user's settings name."""

Group = dict[str, Any]
"""A matcher and its hooks, as the client's settings have them."""

# What only captures. Where the client can, it does not wait for these.
_CAPTURES = ("post-tool-use", "post-tool-use-failure", "subagent-stop")
# The first version that is known to have what others do not.
_SINCE = {"post-tool-use-failure": (2, 1, 15)}
_ASYNC_SINCE = (2, 1, 15)
# Hooks keep a shorter time themselves. Without this, a session's end would have 1.5 s, within
# which a busy machine may not even have started the interpreter.
_TIMEOUT_S = 10

_SCRIPT = "/ctx/agents/claude_code/entry.py"
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
# What runs a hook of ours somewhere in a line: between two commands, behind a variable, in quotes.
_SOMEWHERE = re.compile(
    rf"""
    (?: (?<![\w.-]) ctx ["']? (?: \s+ -\S+ (?: \s+ [^-\s]\S* )? ){{0,9}} \s+ hook
      | {re.escape(_SCRIPT)} ["']?
    )
    \s+ (?: {"|".join(EVENTS)} ) (?![\w-])
    """,
    re.VERBOSE,
)
# Two paths and a word are never longer, however they are quoted. To take a longer line apart
# would take seconds.
_LONGEST = 64 * 1024


def user_entries(
    versions: Iterable[str | None], *, interpreter: str, budget: int
) -> dict[str, Group]:
    """What is registered for a user whose clients have these versions; None: it is not known.

    `budget` is what an agent is given at the start, in tokens. One hook can give only so much:
    a larger context comes in parts.
    """
    known = [_numbers(version) for version in versions]
    # Where there is no client yet, it may become any.
    oldest = min(known, default=())

    def command(word: str) -> str:
        return command_line(word, interpreter=interpreter, entry=ENTRY)

    return _entries(oldest, command, parts=layers.parts(budget))


def project_entries() -> dict[str, Group]:
    """What is registered in a project, for whoever works there."""
    return _entries((), plain_command, parts=1)


def plugin_entries() -> dict[str, list[Group]]:
    """What a plugin registers, in the shape of its `hooks.json`."""
    return {event: [group] for event, group in project_entries().items()}


def command_line(word: str, *, interpreter: str, entry: str) -> str:
    """How a user's settings run a hook, whatever characters the paths have."""
    return f"{shlex.join([interpreter, '-I', '-S', entry])} {word} || true"


def plain_command(word: str) -> str:
    return f"ctx hook {word} || true"


def is_ours(command: str) -> bool:
    """Whether a command line is one that we write, by whatever interpreter and from wherever."""
    return word_of(command) is not None


def mentions(command: str) -> bool:
    """Whether a line that is not as we write it seems to run a hook of ours all the same.

    Such a line is its owner's: it is never changed, only spoken of.
    """
    if is_ours(command):
        return False
    return _named(command) is not None or _SOMEWHERE.search(command) is not None


def word_of(command: str) -> str | None:
    """Which hook a command line runs; None: none of ours, or something else besides."""
    word = _named(command)
    return word if word in EVENTS else None


def _named(command: str) -> str | None:
    """The hook that a line names, known or not, if it has the form of our lines.

    Variables, other programs and other commands are more than we write. Who has put them there
    would lose them if the line were taken for ours.
    """
    if len(command) > _LONGEST or not ("hook" in command or _SCRIPT in command):
        return None
    lexer = shlex.shlex(command.strip(), posix=True, punctuation_chars=True)
    # A line's end begins another command.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        words = list(lexer)
    except ValueError:
        return None
    if words[-2:] == ["||", "true"]:
        del words[-2:]
    if words[-2:-1] == ["--part"] and words[-1].isdecimal():
        del words[-2:]
    match words:
        case [_, "-I", "-S", script, word] if script.endswith(_SCRIPT):
            pass
        case [program, "hook", word] if os.path.basename(program) == "ctx":
            pass
        case _:
            return None
    return word if _WORD.fullmatch(word) else None


def interpreter() -> str:
    """The interpreter that this ctx runs by: a link stays, where an update changes its target."""
    return sys.executable or "python3"


def _entries(
    oldest: tuple[int, ...], command: Callable[[str], str], *, parts: int
) -> dict[str, Group]:
    registered: dict[str, Group] = {}
    for word, event in EVENTS.items():
        if oldest < _SINCE.get(word, ()):
            continue
        hook: dict[str, Any] = {"type": "command", "command": command(word), "timeout": _TIMEOUT_S}
        if word in _CAPTURES and oldest >= _ASYNC_SINCE:
            hook["async"] = True
        further = range(2, parts + 1) if word == "session-start" else ()
        more = [{**hook, "command": command(f"{word} --part {part}")} for part in further]
        registered[event] = {"matcher": "", "hooks": [hook, *more]}
    return registered


def _numbers(version: str | None) -> tuple[int, ...]:
    """`2.1.15` as numbers that can be compared; nothing where it is not known."""
    found = re.match(r"\d+(?:\.\d+)*", version or "", re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else ()
