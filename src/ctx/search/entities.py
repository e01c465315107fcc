"""What a task names explicitly: paths, symbols, error codes, tasks, quoted text, stack frames.

People paste anything. So a text is read line by line, each line up to a limit, and only a limited
number of each kind is kept. Nothing here checks whether a thing exists: the caller looks it up.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

MOST = 50
"""Of each kind. A longer stack trace repeats itself."""

_LONGEST_TEXT = 400_000
_LONGEST_LINE = 4_000
_MOST_LINES = 3_000
_LONGEST_NAME = 160
_MOST_FRAMES = 1_000

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
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "vs", "etc", "U.S"})

# One frame per line. Each pattern is tried only on lines that contain its marker, and is compiled
# for the first such line.
_PYTHON = r'\s*File "([^"]{1,400})", line (\d{1,9})(?:, in (.{1,160}))?'
_JAVASCRIPT = r"\s*at (?:(?:async |new )?([^()]{1,160}?) )?\(?((?:file://)?[^()\s]{1,400}?):(\d{1,9}):\d{1,9}\)?\s*$"
_JAVA = r"\s*at ([\w.$/<>@-]{1,300})\(([\w.$-]{1,160}):(\d{1,9})\)"
_GDB = (
    r"\s*#\d{1,4}\s+(?:0x[0-9a-fA-F]{1,16} in )?([^\s(]{1,160})"
    r"[^\n]{0,300} at ([^\s:]{1,300}):(\d{1,9})"
)
_SANITIZER = r"\s*#\d{1,4}\s+0x[0-9a-fA-F]{1,16} in (\S{1,160}) (/[^\s:]{1,300}):(\d{1,9})"
_RUST_NAME = r"\s{1,8}\d{1,4}: (?:0x[0-9a-f]{1,16} - )?(\S{1,200})\s*$"
_RUST_PLACE = r"\s+at (\S{1,300}?):(\d{1,9})(?::\d{1,9})?\s*$"
_PANIC = r".{0,120}?panicked at (?:'[^']{0,200}', )?([^\s:]{1,300}):(\d{1,9}):\d{1,9}"
_GO_NAME = r"([\w./*()-]{1,250})\([^)]{0,200}\)\s*$"
_GO_PLACE = r"\t(\S{1,300}\.go):(\d{1,9})"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


class CodeFrame(NamedTuple):
    """A place in the code: a frame of a pasted stack trace, or a line that is named."""

    path: str
    """As in the trace, which is often from another machine."""
    line: int
    name: str
    """The function; empty if the trace does not name it."""


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
    frames = _frames(lines)
    lines_read: set[str] = set()
    for number, line in enumerate(lines):
        if line and number not in frames and line not in lines_read:
            lines_read.add(line)
            _read_line(line, entities)
    places = [frame for _, frame in sorted(frames.items()) if frame] + list(entities.places)
    return Entities(
        tuple(entities.paths)[:MOST],
        tuple(entities.names)[:MOST],
        tuple(entities.codes)[:MOST],
        tuple(entities.tasks)[:MOST],
        tuple(entities.quoted)[:MOST],
        tuple(dict.fromkeys(places))[:MOST],
    )


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


# Stack traces


def _frames(lines: list[str]) -> dict[int, CodeFrame | None]:
    """The frames by a number that sorts them innermost first. None for the other lines of a
    frame."""
    frames: dict[int, CodeFrame | None] = {}
    deepest_last: list[int] = []
    for number, line in enumerate(lines):
        if not line or len(frames) > _MOST_FRAMES:
            continue
        if number - 1 in deepest_last and line.startswith("    "):
            # The source line repeats the frame.
            frames[number] = None
            continue
        frame = _frame(lines, number, line)
        if frame and 'File "' in line:
            deepest_last.append(number)
            frames[number] = frame
            continue
        _turn_round(frames, deepest_last, line)
        if frame:
            frames[number] = frame
            if number and _names_next(lines[number - 1], line):
                frames.setdefault(number - 1, None)
    _turn_round(frames, deepest_last, "")
    return frames


def _turn_round(frames: dict[int, CodeFrame | None], numbers: list[int], line: str) -> None:
    """Python prints the innermost frame last: reverse the frames at the end of a trace."""
    if not numbers or line.startswith("    "):
        return
    turned = [frames[number] for number in reversed(numbers)]
    frames.update(zip(numbers, turned, strict=True))
    numbers.clear()


def _frame(lines: list[str], number: int, line: str) -> CodeFrame | None:
    if 'File "' in line and (match := _pattern(_PYTHON).match(line)):
        return CodeFrame(match[1], int(match[2]), _function(match[3]))
    above = lines[number - 1] if number else ""
    bare = line.lstrip()
    if bare.startswith("at "):
        if match := _pattern(_JAVA).match(line):
            return _java(match)
        if named := _pattern(_RUST_NAME).match(above):
            if match := _pattern(_RUST_PLACE).match(line):
                return CodeFrame(match[1], int(match[2]), _function(named[1]))
        elif match := _pattern(_JAVASCRIPT).match(line):
            return CodeFrame(match[2].removeprefix("file://"), int(match[3]), _function(match[1]))
    elif bare.startswith("#") and (
        match := _pattern(_SANITIZER).match(line) or _pattern(_GDB).match(line)
    ):
        return CodeFrame(match[2], int(match[3]), _function(match[1]))
    elif line.startswith("\t") and (match := _pattern(_GO_PLACE).match(line)):
        above_match = _pattern(_GO_NAME).match(above)
        return CodeFrame(
            match[1],
            int(match[2]),
            _function(above_match[1].rpartition("/")[2] if above_match else ""),
        )
    elif "panicked at" in line and (match := _pattern(_PANIC).match(line)):
        return CodeFrame(match[1], int(match[2]), "")
    return None


def _names_next(above: str, line: str) -> bool:
    """Whether a line only names the function of the next line."""
    if line.startswith("\t"):
        return _pattern(_GO_NAME).match(above) is not None
    return line.lstrip().startswith("at ") and _pattern(_RUST_NAME).match(above) is not None


def _java(match: re.Match[str]) -> CodeFrame:
    """Java prints the class and the file name, which together give the path from the source
    root."""
    qualified = match[1].rpartition("/")[2]
    package = qualified.split(".")[:-2]
    return CodeFrame("/".join([*package, match[2]]), int(match[3]), _function(qualified))


def _function(name: str | None) -> str:
    """The function name in a trace, without what a runtime adds."""
    bare = (name or "").strip().removeprefix("async ").removeprefix("new ")
    bare = re.sub(
        r"::h[0-9a-f]{16}$|::\{\{closure\}\}|\.func\d+|\(\*?(\w+)\)|<anonymous>|<module>",
        r"\1",
        bare,
    )
    return bare.strip(" .:<>")[:_LONGEST_NAME]


def innermost(frames: Iterable[CodeFrame]) -> Iterator[CodeFrame]:
    """Frames without duplicates; those of libraries and of the runtime last."""
    places: set[tuple[str, int]] = set()
    others: list[CodeFrame] = []
    for frame in frames:
        if (frame.path, frame.line) in places:
            continue
        places.add((frame.path, frame.line))
        if _pattern(_OF_OTHERS).search(frame.path):
            others.append(frame)
        else:
            yield frame
    yield from others


_OF_OTHERS = r"site-packages|dist-packages|node_modules|/rustc/|\.cargo/|^node:|/lib/python\d|/usr/"
