"""Splits a command line into its parts: which programs ran, whether one was ctx, what to store.

The parsing is approximate: quoted text and here-documents are skipped, and the rest is split at
`&&`, `||`, `;`, `|` and line ends.
"""

import posixpath
import re
from typing import NamedTuple

_LONGEST_READ = 8_000
_LONGEST_TEXT = 1_000
_PIECE = re.compile(
    r"""(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?P<end>&&|\|\||[;|\n])|(?:(?!&&)[^'"\\;|\n])+|.""",
    re.DOTALL,
)
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Words before the actual command.
_BEFORE = frozenset(
    "sudo time nice nohup env command exec then do else if while ! ( {"
    " npx bunx pnpx uvx xvfb-run stdbuf".split()
)
_RUNNERS = frozenset({"uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pnpm", "yarn", "bundle"})
_RUN = frozenset({"run", "exec"})
_PREPARING = frozenset(
    "cd pushd popd export set source . unset alias umask ulimit sleep wait true :".split()
)
_FILTERS = frozenset(
    "head tail grep rg jq sed awk cut sort uniq wc cat tee less more tr column python3 echo".split()
)
_READING = frozenset(
    "cat head tail less more grep egrep fgrep rg ag sed awk cut sort uniq wc jq yq find fd ls tree"
    " stat file diff echo printf which type pwd date env ps top curl wget man history git gh"
    " docker kubectl psql sqlite3 xxd od strings".split()
)
_HOOKED = frozenset("git gh".split())
_CHECKING = frozenset(
    "pytest mypy pyright ruff flake8 pylint black tox nox tsc eslint jest vitest mocha prettier"
    " cargo rustc clippy go gofmt golangci-lint javac mvn gradle gradlew ctest phpunit rspec"
    " rubocop shellcheck".split()
)


class CommandPart(NamedTuple):
    text: str
    joint: str
    """The separator before it: empty, `&&`, `||`, `;`, `|` or a line end."""
    verb: str
    """The program, without its folder."""
    is_own: bool
    """Whether it is ctx itself."""


class CommandLine(NamedTuple):
    parts: tuple[CommandPart, ...]
    text: str
    """The stored form: without calls of ctx and without here-documents."""

    @property
    def is_own(self) -> bool:
        """Whether only ctx was run; a `cd` before it or a filter after it does not count."""
        return any(part.is_own for part in self.parts) and all(
            part.is_own
            or part.verb in _PREPARING
            or (part.joint == "|" and part.verb in _FILTERS)
            or part.verb == "echo"
            for part in self.parts
        )

    @property
    def has_own(self) -> bool:
        return any(part.is_own for part in self.parts)

    @property
    def verb(self) -> str:
        """The main program of the line."""
        every = (part.verb for part in self.parts if part.verb not in _PREPARING)
        return next(every, "")

    @property
    def only_reads(self) -> bool:
        """Whether its output shows no result of a check."""
        return self.verb in _READING

    @property
    def may_check_first(self) -> bool:
        """Whether it may run other programs first, as git does with hooks."""
        return self.verb in _HOOKED

    @property
    def checks(self) -> bool:
        """Whether it is a checker whose exit code is that of the line."""
        return self.verb in _CHECKING and not any(part.joint in ("|", "||") for part in self.parts)

    @property
    def folder(self) -> str:
        """The target of a leading `cd`, as written; empty without one."""
        first = self.parts[0] if self.parts else None
        words = first.text.split() if first and first.verb == "cd" else []
        return words[1].strip("'\"") if len(words) == 2 else ""

    @property
    def words(self) -> list[str]:
        """All words that may be a file name."""
        every = (word.strip("'\"<>(),:=") for part in self.parts for word in part.text.split())
        return [word.rpartition("=")[2] for word in every if "/" in word or "." in word][:100]


def read(command: str) -> CommandLine:
    without = _without_here_documents(command[:_LONGEST_READ])
    parts = tuple(_parts(without))
    text = without
    if any(part.is_own for part in parts):
        kept = [part for part in parts if not part.is_own]
        text = "".join(f" {part.joint} {part.text}" for part in kept).lstrip(" &|;\n")
    text = text.strip()
    return CommandLine(
        parts, text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
    )


def _without_here_documents(command: str) -> str:
    lines = command.split("\n")
    kept: list[str] = []
    until = ""
    for line in lines:
        if until:
            if line.strip() == until:
                until = ""
            continue
        kept.append(line)
        if here := _HERE.search(line):
            until = here[2]
            kept[-1] += " …"
    return "\n".join(kept)


def _parts(text: str) -> list[CommandPart]:
    found: list[CommandPart] = []
    joint, words = "", ""
    for piece in _PIECE.finditer(text):
        if piece["end"]:
            if words.strip():
                found.append(_part(words.strip(), joint))
            joint, words = piece["end"], ""
        else:
            words += piece[0]
    if words.strip():
        found.append(_part(words.strip(), joint))
    return found


def _part(text: str, joint: str) -> CommandPart:
    words = text.split(None, 40)[:40]
    at = 0
    while at < len(words) and (words[at] in _BEFORE or _ASSIGNMENT.match(words[at])):
        at += 1
    if words[at : at + 1] == ["timeout"]:
        at += 2
    if at + 1 < len(words) and words[at] in _RUNNERS and words[at + 1] in _RUN:
        at += 2
    verb = posixpath.basename(words[at].strip("'\"")) if at < len(words) else ""
    if verb.startswith("python") and words[at + 1 : at + 2] == ["-m"] and at + 2 < len(words):
        verb = words[at + 2].partition(".")[0]
    return CommandPart(text, joint, verb, verb == "ctx")
