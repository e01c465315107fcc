"""What a task names explicitly: paths, symbols, error codes, tasks, quoted text, stack frames.

People paste anything. So a text is read line by line, each line up to a limit, and only a limited
number of each kind is kept. Nothing here checks whether a thing exists: the caller looks it up.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice, pairwise, takewhile
from typing import NamedTuple

from ctx.search import trace_frames
from ctx.search.trace_frames import CodeFrame

MOST = 50
"""Of each kind. A longer stack trace repeats itself."""

_LONGEST_TEXT = 400_000
_LONGEST_LINE = 4_000
_MOST_LINES = 3_000
_LONGEST_NAME = 160

# The quotation marks of quoted text. A quotation ends with its line.
_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{3,200})\"|(?<!\w)'([^'\n]{3,200})'(?!\w)"
    r"|“([^”\n]{2,200})”|「([^」\n]{2,200})」|«([^»\n]{2,200})»"
)
_WORD = re.compile(r"[^\s\"'`“”「」«»<>()\[\]{},;|=*]+(?:\(\))?")
_TASK = re.compile(r"(?:task|decision)_\d{1,9}(?!\w)", re.IGNORECASE | re.ASCII)
_CODE = re.compile(r"[A-Z]{1,6}\d{3,5}", re.ASCII)
_NO_CODES = frozenset({"SHA224", "SHA256", "SHA384", "SHA512", "ISO8601", "BASE64", "RFC3339"})
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:(?:::|[.#])[^\W\d]\w*)*")
_QUALIFIED = re.compile(r"::|[.#]")
_ENDINGS = frozenset(
    "bash c cc cfg cjs clj conf cpp cs css cts cu cxx d dart ex exs fs go gradle h hh hpp hs html"
    " ini java jl js json jsx kt kts less lock lua m md mjs ml mm mts nim php pl proto ps1 py pyi"
    " pyx r rb rs rst sass scala scss sh sql svelte swift tf toml ts tsx txt vue xml yaml yml"
    " zig".split()
)
_LINE_BEHIND = re.compile(r"(.{1,400}?)(?::(\d{1,9}))(?::\d{1,9})?:?", re.DOTALL)
_IN_WORDS = re.compile(
    r"(?<![^\s\"'`(),])([^\s\"'`(),]{3,200}+)[\"'`,]{0,2} (?:at |on |in )?line (\d{1,9})(?!\w)"
)
_FENCE = re.compile(r" {0,3}(?:`{3,9}|~{3,9})[ \t]*(\w{0,20})")
_SHELLS = frozenset(
    "bash bat cmd console fish powershell sh shell shellsession terminal zsh".split()
)
_PROMPT = re.compile(r"\s{0,8}(?:\([\w.-]{1,40}\) )?[\w.@:~/-]{0,60}[$%❯] +(?=\w|\./)")
_INLINE = re.compile(r"`([^`\n]{3,200})`")
# Programs that run another one.
_RUNNERS = frozenset(
    "bundle bunx cargo deno dotnet env exec hatch node npx pdm pipenv pipx pnpm poetry pwsh py"
    " python python3 rake ruby run sudo time tox uv uvx yarn".split()
)
_PROGRAM = re.compile(r"(?:\.{0,2}[\w./-]{0,100}/)?[A-Za-z][\w-]{1,40}(?:\.\w{1,40}){0,3}")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9]{1,30}(?:[-_:][a-z0-9]{1,30}){0,5}")
_LONGEST_COMMAND = 300
_MOST_SUBCOMMANDS = 3
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "vs", "etc", "U.S"})


class Entities(NamedTuple):
    """All entities in the order of their first mention."""

    paths: tuple[str, ...]
    names: tuple[str, ...]
    """Symbols, qualified as they were written: `Client.connect`, `core::net::Client`."""
    codes: tuple[str, ...]
    tasks: tuple[str, ...]
    """`task_0043`, `decision_0007`."""
    quoted: tuple[str, ...]
    frames: tuple[CodeFrame, ...]
    """Innermost first, whatever order the language prints them in."""
    commands: tuple[str, ...] = ()
    """A program and the words after it, without options: `shop place-order`."""


class _EntityCollector:
    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self.codes: dict[str, None] = {}
        self.tasks: dict[str, None] = {}
        self.quoted: dict[str, None] = {}
        self.places: dict[CodeFrame, None] = {}
        """Lines that are named outside of a trace."""


def find(text: str) -> Entities:
    if len(text) > _LONGEST_TEXT:
        # The question is at the beginning or at the end.
        text = f"{text[: _LONGEST_TEXT // 2]}\n{text[-_LONGEST_TEXT // 2 :]}"
    entities = _EntityCollector()
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], *lines[-_MOST_LINES // 2 :]]
    trace = trace_frames.read(lines)
    lines_read: set[str] = set()
    for number, line in enumerate(lines):
        if line and number not in trace.lines and line not in lines_read:
            lines_read.add(line)
            _read_line(line, entities)
    places = [*trace.frames, *entities.places]
    return Entities(
        tuple(entities.paths)[:MOST],
        tuple(entities.names)[:MOST],
        tuple(entities.codes)[:MOST],
        tuple(entities.tasks)[:MOST],
        tuple(entities.quoted)[:MOST],
        tuple(dict.fromkeys(places))[:MOST],
        tuple(dict.fromkeys(_commands(lines)))[:MOST],
    )


def _commands(lines: Iterable[str]) -> Iterator[str]:
    """The commands in inline code, at a prompt, and in the code blocks of a shell."""
    is_shell = False
    for line in lines:
        if fence := _FENCE.match(line):
            is_shell = fence[1].lower() in _SHELLS
        elif is_shell or _PROMPT.match(line):
            yield from _command(_PROMPT.sub("", line))
        else:
            for marked in _INLINE.findall(line) if "`" in line else ():
                yield from _command(marked)


def _command(text: str) -> Iterator[str]:
    words = [word for word in text[:_LONGEST_COMMAND].split() if "=" not in word]
    while words and (words[0] in _RUNNERS or words[0].startswith("-")):
        words.pop(0)
    if not words or not _PROGRAM.fullmatch(words[0]):
        return
    program = words[0].rpartition("/")[2].partition(".")[0]
    # Options may come first. What follows the name of the command is its arguments.
    rest = dropwhile(lambda word: word.startswith("-"), words[1:])
    names = list(islice(takewhile(_SUBCOMMAND.fullmatch, rest), _MOST_SUBCOMMANDS))
    if names:
        yield " ".join((program, *names))


def _read_line(line: str, entities: _EntityCollector) -> None:
    for marked in _QUOTED.finditer(line):
        inside = (marked[marked.lastindex or 1] or "").strip()
        if marked.lastindex == 1 and _is_identifier(bare := inside.removesuffix("()")):
            # Inline code is a name, even a plain word, unless it looks like a file.
            if not _looks_like_path(bare):
                entities.names.setdefault(bare[:_LONGEST_NAME])
        elif inside and not _looks_like_path(inside):
            entities.quoted.setdefault(inside)
    for mention in _IN_WORDS.finditer(line) if " line " in line else ():
        if _looks_like_path(mention[1]):
            entities.places.setdefault(
                CodeFrame(mention[1].removeprefix("./"), int(mention[2]), "")
            )
    for word in _WORD.findall(line):
        _read_word(word, entities)


def _read_word(word: str, entities: _EntityCollector) -> None:
    if "://" in word:
        return
    is_called = word.endswith("()")
    bare = word.removesuffix("()").strip(".:!?…-~&$@\\") or word
    if _TASK.fullmatch(bare):
        entities.tasks.setdefault(bare.lower())
    elif _CODE.fullmatch(bare):
        if bare not in _NO_CODES:
            entities.codes.setdefault(bare)
    elif _looks_like_path(bare):
        placed = _LINE_BEHIND.fullmatch(bare)
        path = (placed[1] if placed else bare).removeprefix("./")[:400]
        entities.paths.setdefault(path)
        if placed:
            entities.places.setdefault(CodeFrame(path, int(placed[2]), ""))
    elif _is_identifier(bare) and (is_called or _looks_like_name(bare)):
        entities.names.setdefault(bare[:_LONGEST_NAME])


def _looks_like_path(word: str) -> bool:
    placed = _LINE_BEHIND.fullmatch(word)
    path = placed[1] if placed else word
    if any(character.isspace() for character in path):
        return False
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if dot and stem and ending.lower() in _ENDINGS and "::" not in path:
        return True
    # `and/or` is not a path: a path needs a file extension or more folders.
    return bool(slash) and name != "" and folder.count("/") >= 1 and folder.strip("./") != ""


def _is_identifier(word: str) -> bool:
    return len(word) <= _LONGEST_NAME and _IDENTIFIER.fullmatch(word) is not None


def _looks_like_name(word: str) -> bool:
    """Whether a word in running text can only come from code."""
    if word in _ABBREVIATIONS or len(word) < 3:
        return False
    parts = _QUALIFIED.split(word)
    if len(parts) > 1:
        # A missing space after a sentence does not make a qualified name.
        return "::" in word or all(len(part) > 1 for part in parts)
    if "_" in word.strip("_") or word.startswith("__"):
        return True
    return any(one.islower() and other.isupper() for one, other in pairwise(word))
