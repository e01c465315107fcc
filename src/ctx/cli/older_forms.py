"""Older forms of options. They keep working, and a person at a terminal gets a hint.

An older option is hidden, and its hint is collected in the parsed options. `--project NAME` cannot
be an option beside `--project`, so it is rewritten before the words are parsed.
"""

import argparse
from typing import Any

from ctx.cli import options as shared

_PROJECT = "--project"
_PROJECT_NAME = "--project-name"


def older_option(
    parser: "argparse._ActionsContainer", name: str, instead: str, **described: Any
) -> None:
    """An option that help no longer shows. `instead` says what to write."""
    action = parser.add_argument(name, action=_OlderOption, help=argparse.SUPPRESS, **described)
    action.instead = instead  # type: ignore[attr-defined]


class _OlderOption(argparse.Action):
    instead = ""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        option: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, value)
        namespace.hints = [*getattr(namespace, "hints", ()), f"{option}: {self.instead}"]


def hints(options: argparse.Namespace) -> list[str]:
    """What to write instead of the options that were used."""
    return getattr(options, "hints", [])


def rewritten(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """The words with `--project NAME` as `--project-name NAME`, and the hints.

    Only for a command that has both options. `--project` alone is the project you are in.
    """
    end = words.index("--") if "--" in words else len(words)
    if not any(word.partition("=")[0] == _PROJECT for word in words[:end]):
        return words, []
    for word in words[:end]:
        if inner := shared.subcommands_of(parser).get(word):
            parser = inner
            break
    if _PROJECT_NAME not in parser._option_string_actions:
        return words, []
    new: list[str] = []
    hints: list[str] = []
    position = 0
    while position < end:
        name, equals, value = words[position].partition("=")
        position += 1
        if name == _PROJECT and not equals and position < end:
            following = words[position]
            if not following.startswith("-"):
                value, equals = following, "="
                position += 1
        if name == _PROJECT and equals:
            new.append(f"{_PROJECT_NAME}={value}")
            import shlex

            typed = shlex.quote(value)
            hints = [f"{_PROJECT} {typed} is now `{_PROJECT_NAME} {typed}`."]
        else:
            new.append(f"{name}{equals}{value}")
    return [*new, *words[end:]], hints
