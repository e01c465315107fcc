"""The message of a `git commit`, as the command line has it.

It sums up a change in a sentence, and often says why the change was made.
"""

import re

LONGEST = 2_000

_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,60}\bcommit\b")
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?[ \t]*\n")
_MESSAGE = re.compile(
    r"\s(?:-[a-z]{0,4}m|--message)[ =]?(?:\"((?:[^\"\\]|\\.){0,4000})\"|'([^']{0,4000})')",
    re.DOTALL,
)
_TRAILER = re.compile(r"[A-Z][\w-]{2,40}: \S.*|.{0,4}Generated with .*")


def commit_message(command: str) -> str:
    """The message without its trailers; empty if the command has none."""
    commit = _COMMIT.search(command)
    if commit is None:
        return ""
    heredoc = _HEREDOC.search(command, commit.end())
    if heredoc:
        message = command[heredoc.end() :].partition(f"\n{heredoc[1]}")[0]
    else:
        options = _MESSAGE.finditer(command, commit.end() - 1)
        message = "\n\n".join(option[1] or option[2] or "" for option in options)
    lines = message[: 2 * LONGEST].strip().splitlines()
    while len(lines) > 1 and (not lines[-1].strip() or _TRAILER.fullmatch(lines[-1].strip())):
        lines.pop()
    return "\n".join(lines)[:LONGEST].strip()
