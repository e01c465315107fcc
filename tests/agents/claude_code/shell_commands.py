"""Shell commands in a text, and a check that they are valid."""

import re
import shlex

from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named, completed


def fences(text: str, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell_lines(text: str) -> list[str]:
    """The lines of shell blocks, and the ctx commands in the text."""
    lines = [line for block in fences(text, "bash") for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    codes = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    return lines + [code for code in codes if code.startswith("ctx ")]


def try_to_type(line: str) -> None:
    """Parse a line; an invalid one raises UsageError."""
    words = shlex.split(line)
    assert words[0] == "ctx"
    leading, name, rest = options.split(words[1:])
    if name is None:
        assert words == ["ctx", "--version"]
        return
    assert name in COMMANDS
    if len(words) == 2:
        # It is named, and perhaps not meant to be typed without an argument.
        return
    module, parser = command_named(name)
    parser.parse_args(leading + completed(module, rest))
