"""The lines of a file that the chunks of a pack show, found by their text.

The snippet of a chunk consists of lines of the file with `… line 9` between them. It is compared
with the file from the end to the start, so that the line of a class above a method is the nearest
one of that text. A signature is written in one line and without its body: it counts by the lines
that it covers in the file.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ctx.code import encoding
from ctx.packs.file_excerpts import GAP
from ctx.packs.prompt_pack import Chunk


class Files:
    """The lines of the files of a working tree."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines: dict[str, list[str]] = {}

    def lines(self, path: str) -> list[str]:
        if path not in self._lines:
            try:
                text = encoding.decode(Path(self._root, path).read_bytes()).text
            except OSError:
                text = ""
            self._lines[path] = text.removesuffix("\n").split("\n")
        return self._lines[path]


def shown_by_path(chunks: Sequence[Chunk], files: Files) -> Mapping[str, set[int]]:
    """The lines that the chunks show together."""
    found: dict[str, set[int]] = {}
    for chunk in chunks:
        if chunk.path is not None:
            shown = found.setdefault(chunk.path, set())
            shown |= lines_of(chunk, files.lines(chunk.path))
    return found


def lines_of(chunk: Chunk, lines: Sequence[str]) -> set[int]:
    """The lines that a chunk shows of its file."""
    filled = [number for number, line in enumerate(lines, 1) if line.strip()]
    texts = [lines[number - 1].strip() for number in filled]
    end = bisect_right(filled, chunk.last_line or len(lines))
    shown: set[int] = set()
    blocks = list(_blocks(chunk.snippet))
    for block in reversed(blocks):
        size = len(block)
        for start in range(end - size, -1, -1):
            if all(map(_is_line, block, texts[start : start + size])):
                shown.update(range(filled[start], filled[start + size - 1] + 1))
                end = start
                break
        else:
            if len(blocks) == 1:
                return _of_signature(block, lines, chunk)
    return shown


def _blocks(snippet: str) -> Iterator[list[str]]:
    """The lines between the gaps, without blank ones."""
    block: list[str] = []
    for line in map(str.strip, snippet.split("\n")):
        if line == GAP or line.startswith(f"{GAP} line "):
            if block:
                yield block
            block = []
        elif line:
            block.append(line)
    if block:
        yield block


def _is_line(shown: str, line: str) -> bool:
    """Long lines are cut."""
    return shown == line or (shown.endswith(GAP) and line.startswith(shown[: -len(GAP)]))


def _of_signature(block: Sequence[str], lines: Sequence[str], chunk: Chunk) -> set[int]:
    """The lines of a signature, which the first sentence of its documentation may follow."""
    first, last = chunk.first_line or 1, min(chunk.last_line or len(lines), len(lines))
    for wanted in ("".join("".join(block[:size]).split()) for size in range(len(block), 0, -1)):
        joined = ""
        for end in range(first, last + 1):
            joined += "".join(lines[end - 1].split())
            if wanted in joined:
                start = first
                while wanted in (rest := joined.removeprefix("".join(lines[start - 1].split()))):
                    joined, start = rest, start + 1
                return set(range(start, end + 1))
    return {first}
