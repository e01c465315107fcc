"""Which hooks are registered with the client, and their command lines.

An event that a client does not know makes older ones ignore every hook of the file. So for a user,
only events that all clients on this machine know are registered. Project settings and plugins are
used on other machines with unknown clients: they get the events that every client knows.

For a user, a hook runs with the interpreter of ctx, which needs no PATH and is fastest. In shared
settings it runs plain `ctx`, and says nothing where ctx is not installed. A missing program must
not block the client, which interprets exit code 2 as a veto, so no command fails.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.host_setup.hook_commands import command_line, entry_ending, entry_script, hook_name
from ctx.agents.host_setup.settings_file import RegisteredHook
from ctx.context import layers
from ctx.hook_files.spool import EVENTS, PRE_EDIT

ENTRY = entry_script("claude-code")
"""The script that a user's settings name."""

Group = dict[str, Any]
"""A matcher and its hooks, in the format of the client's settings."""

# Events that are only captured. If the client supports it, it does not wait for their hooks.
_CAPTURES = ("post-tool-use", "post-tool-use-failure", "subagent-stop")
# The first version that is known to support asynchronous hooks.
_SINCE = {"post-tool-use-failure": (2, 1, 15)}
_ASYNC_SINCE = (2, 1, 15)
# The tools of the client that read or change a file. No other call of a tool waits for a hook. The
# agent reads a context with the result of the call: before an edit, it has read the file.
_MATCHERS = {PRE_EDIT: "Read|Edit|MultiEdit|Write|NotebookEdit"}
# Hooks enforce a shorter limit themselves. Without this one, SessionEnd would have 1.5 s, in which
# a busy machine may not even start the interpreter.
_TIMEOUT_S = 10

_SCRIPT = entry_ending("claude-code")
# Matches a command that runs a hook of ctx anywhere in a line: between other commands, after a
# variable, in quotes.
_SOMEWHERE = re.compile(
    rf"""
    (?: (?<![\w.-]) ctx ["']? (?: \s+ -\S+ (?: \s+ [^-\s]\S* )? ){{0,9}} \s+ hook
      | {re.escape(_SCRIPT)} ["']?
    )
    \s+ (?: {"|".join(EVENTS)} ) (?![\w-])
    """,
    re.VERBOSE,
)


def user_entries(
    versions: Iterable[str | None],
    *,
    interpreter: str,
    budget: int,
    present: Iterable[RegisteredHook] = (),
) -> dict[str, Group]:
    """The hooks for a user whose clients have these versions; None: unknown.

    What is registered already stays if no known version forbids it: which clients are found depends
    on the PATH of the shell.
    `budget` is the size of the context at the start, in tokens. One hook can return only so much: a
    larger context comes in parts.
    """
    numbers = [_numbers(version) for version in versions]
    # If no client is installed yet, any version may be installed later.
    oldest = min(numbers, default=())
    kept: dict[str, bool] = {}
    if not oldest:
        oldest_known = min(filter(None, numbers), default=_ASYNC_SINCE)
        kept = {
            str(word_of(each.command)): each.hook.get("async") is True
            for each in present
            if oldest_known >= _ASYNC_SINCE
        }

    def command(word: str) -> str:
        return command_line(word, HOOKS, interpreter=interpreter, entry=ENTRY)

    return _entries(oldest, command, parts=layers.parts(budget), kept=kept)


def project_entries() -> dict[str, Group]:
    """The hooks for a project's settings."""
    return _entries((), plain_command, parts=1, kept={})


def plugin_entries() -> dict[str, list[Group]]:
    """The hooks of a plugin, in the format of its `hooks.json`."""
    return {event: [group] for event, group in project_entries().items()}


def plain_command(word: str) -> str:
    return f"ctx hook {word} || true"


def is_ours(command: str) -> bool:
    """Whether ctx wrote a command line, with any interpreter and from any folder."""
    return word_of(command) is not None


def mentions(command: str) -> bool:
    """Whether a line that ctx did not write seems to run a hook of ctx.

    Such a line belongs to the user: it is reported, but never changed.
    """
    if is_ours(command):
        return False
    return (
        hook_name(command, _SCRIPT, with_program=True) is not None
        or _SOMEWHERE.search(command) is not None
    )


def word_of(command: str) -> str | None:
    """The hook that a command line runs; None if it runs none of ours, or other commands too."""
    word = hook_name(command, _SCRIPT, with_program=True)
    return word if word in EVENTS else None


def _entries(
    oldest: tuple[int, ...],
    command: Callable[[str], str],
    *,
    parts: int,
    kept: Mapping[str, bool],
) -> dict[str, Group]:
    registered: dict[str, Group] = {}
    for word, event in EVENTS.items():
        if oldest < _SINCE.get(word, ()) and word not in kept:
            continue
        hook: dict[str, Any] = {"type": "command", "command": command(word), "timeout": _TIMEOUT_S}
        if word in _CAPTURES and (oldest >= _ASYNC_SINCE or kept.get(word)):
            hook["async"] = True
        further = range(2, parts + 1) if word == "session-start" else ()
        more = [{**hook, "command": command(f"{word} --part {part}")} for part in further]
        registered[event] = {"matcher": _MATCHERS.get(word, ""), "hooks": [hook, *more]}
    return registered


def _numbers(version: str | None) -> tuple[int, ...]:
    """`2.1.15` as comparable numbers; empty if it is unknown."""
    match = re.match(r"\d+(?:\.\d+)*", version or "", re.ASCII)
    return tuple(map(int, match[0].split("."))) if match else ()
