"""Splits Markdown into front matter and sections."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEAD_LINE = re.compile(r"(\s*)([\w-]+)\s*:(?:\s+(.*))?$")
# Blocks that other programs write into people's files are skipped; they have their own importers.
_WRITTEN_BY_PROGRAMS = re.compile(
    r"<claude-mem-context>.*?(?:</claude-mem-context>|\Z)|<!-- ctx:.*?(?:<!-- ctx:end -->|\Z)",
    re.DOTALL,
)


class ParsedMarkdown(NamedTuple):
    head: Mapping[str, str]
    """The front matter."""
    inner_head: Mapping[str, str]
    """The nested values of the front matter."""
    body: str
    first_line: int
    """The number of the body's first line."""


class MarkdownSection(NamedTuple):
    heading: str
    above: tuple[str, ...]
    """The enclosing headings, its own last."""
    line: int
    body: str

    @property
    def text(self) -> str:
        return f"{self.heading}\n\n{self.body}" if self.heading else self.body


def parse(text: str) -> ParsedMarkdown:
    """The front matter and body of a page, without blocks of other programs. Keeps line numbers."""
    # Not `splitlines`, which also splits at characters that other programs do not.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    head: dict[str, str] = {}
    inner: dict[str, str] = {}
    start = 0
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() in ("---", "..."):
                head, inner = _head(lines[1:number])
                start = number + 1
                break
    body = "\n".join(lines[start:])
    body = _WRITTEN_BY_PROGRAMS.sub(lambda match: "\n" * match[0].count("\n"), body)
    return ParsedMarkdown(head, inner, body, start + 1)


def _head(lines: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Parse `key: value`, one level of nesting, and multi-line texts; more is not used."""
    levels: tuple[dict[str, str], dict[str, str]] = ({}, {})
    key, level, indent = "", 0, -1
    for line in lines:
        match = _HEAD_LINE.match(line)
        depth = len(line) - len(line.lstrip())
        if indent >= 0 and depth > indent and line.strip():
            levels[level][key] = f"{levels[level][key]} {line.strip()}".strip()
            continue
        indent = -1
        if not match:
            continue
        key, level = match[2], int(depth > 0)
        value = (match[3] or "").strip()
        if value[:1] in (">", "|"):
            value, indent = "", depth
        levels[level].setdefault(key, value.strip("\"'"))
    kept = ({k: v for k, v in level.items() if v} for level in levels)
    return next(kept), next(kept)


def sections(parsed: ParsedMarkdown) -> list[MarkdownSection]:
    """The text under each heading. Without headings, each block is a section."""
    above: list[tuple[int, str]] = []
    result: list[MarkdownSection] = []
    lines: list[str] = []
    started = parsed.first_line

    def end() -> None:
        body = "\n".join(lines).strip("\n").rstrip()
        skipped = next((n for n, line in enumerate(lines) if line.strip()), 0)
        names = tuple(name for _, name in above)
        if body.strip():
            result.append(
                MarkdownSection(names[-1] if names else "", names, started + skipped, body)
            )
        lines.clear()

    has_headings = False
    for number, line, is_code in numbered_lines(parsed):
        heading = None if is_code else _HEADING.match(line)
        if heading and heading[2]:
            end()
            has_headings = True
            level = len(heading[1])
            above = [heading for heading in above if heading[0] < level]
            above.append((level, heading[2].strip()))
            started = number + 1
        else:
            lines.append(line)
    end()
    return result if has_headings else _blocks(parsed)


def _blocks(parsed: ParsedMarkdown) -> list[MarkdownSection]:
    """Blocks between blank lines; a line that ends in a colon joins the next block."""
    blocks: list[MarkdownSection] = []
    lines: list[str] = []
    started = parsed.first_line
    for number, line, is_code in numbered_lines(parsed):
        leads_on = is_code or (bool(lines) and lines[-1].rstrip().endswith(":"))
        if line.strip() or leads_on:
            started = started if lines else number
            lines.append(line)
        elif lines:
            blocks.append(MarkdownSection("", (), started, "\n".join(lines).rstrip()))
            lines = []
    if "".join(lines).strip():
        blocks.append(MarkdownSection("", (), started, "\n".join(lines).rstrip()))
    return blocks


def distinct(sections: Iterable[MarkdownSection]) -> list[tuple[MarkdownSection, str | int]]:
    """Identical sections once, each with what else identifies it if others have its headings."""
    unique = list({(each.above, each.body): each for each in sections if each.body}.values())
    alike = Counter(section.above for section in unique)
    return [(each, each.body if alike[each.above] > 1 else 0) for each in unique]


def without_code(body: str) -> str:
    """A page without code blocks and code spans."""
    lines = [
        line for _, line, is_code in numbered_lines(ParsedMarkdown({}, {}, body, 1)) if not is_code
    ]
    return re.sub(r"`[^`\n]*`", "", "\n".join(lines))


def numbered_lines(parsed: ParsedMarkdown) -> Iterator[tuple[int, str, bool]]:
    """The lines with their numbers, and whether they are in a code block."""
    fence = ""
    for number, line in enumerate(parsed.body.split("\n"), start=parsed.first_line):
        match = _FENCE.match(line)
        if fence:
            yield number, line, True
            if match and match[1].startswith(fence) and not line.strip(" `~\t"):
                fence = ""
        else:
            fence = match[1] if match else ""
            yield number, line, bool(fence)
