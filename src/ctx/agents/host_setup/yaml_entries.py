"""Our extension in Goose's `config.yaml`.

ctx has no parser for YAML, so it edits only files in the form that Goose itself writes: a top-level
`extensions:` with one entry for each extension below it. Any other form is refused. Our entry is
the first one, so that removing its lines restores the file. A blank line above it shows that
`extensions:` was there before, without entries.
"""

import json
import re
from collections.abc import Iterator

from ctx.agents.host_setup import jsonc
from ctx.agents.host_setup.host_files import NAME, server_command
from ctx.agents.host_setup.host_setups import HostFile
from ctx.errors import SettingsUnreadable

_KEY = re.compile(r"extensions:[ \t]*(?:#.*)?\s*\Z")
_OTHER_FORM = re.compile(
    r"(?m)^(?:[\"']extensions[\"'][ \t]*:|extensions[ \t]*:.*\S|[{\[]|%|\.\.\.|--- ?\S)"
)
_INDENT = re.compile(r"[ ]*")


def goose_extension(path: str) -> HostFile:
    return HostFile("mcp", path, with_extension, without_extension, with_extension(None))


def with_extension(text: str | None) -> str:
    """The text with our extension; None: there is no file."""
    end = jsonc.line_end_of(text or "")
    if text is None:
        return _joined(["extensions:", *_entry("  ")], end)
    lines = text.splitlines(keepends=True)
    header = _header(text, lines)
    if header is None:
        return text + end + _joined(["extensions:", *_entry("  ")], end)
    indent = _indent_of_entries(lines, header)
    span = _our_span(lines, header)
    if span is not None:
        ours = _joined(_entry(_INDENT.match(lines[span[0]])[0]), end)  # type: ignore[index]
        is_whole = lines[span[1] - 1].endswith(("\n", "\r"))
        ours = ours if is_whole else ours.removesuffix(end)
        return "".join(lines[: span[0]]) + ours + "".join(lines[span[1] :])
    entry = _joined(_entry(indent or "  "), end)
    if indent:
        return "".join(lines[: header + 1]) + entry + "".join(lines[header + 1 :])
    if not lines[header].endswith(("\n", "\r")):
        return text + end + end + entry.removesuffix(end)
    return "".join(lines[: header + 1]) + end + entry + "".join(lines[header + 1 :])


def without_extension(text: str | None) -> str | None:
    """The text without our extension. None if it contained nothing else."""
    if text is None:
        return None
    lines = text.splitlines(keepends=True)
    header = _header(text, lines)
    span = None if header is None else _our_span(lines, header)
    if header is None or span is None:
        return text
    end = jsonc.line_end_of(text)
    above, below = lines[: span[0]], lines[span[1] :]
    if span[0] == header + 2 and not lines[header + 1].strip():
        kept = "".join(above[:-1])
        return (kept if lines[span[1] - 1].endswith(end) else kept.removesuffix(end)) + "".join(
            below
        )
    if _indent_of_entries(above + below, header):
        return "".join(above + below)
    rest = "".join(above[:header]).removesuffix(end), "".join(below)
    return None if not header and not below else end.join(filter(None, rest)) or ""


def _entry(indent: str) -> list[str]:
    program, *arguments = server_command()
    unit = "  "
    return [
        f"{indent}{NAME}:",
        f"{indent}{unit}enabled: true",
        f"{indent}{unit}type: stdio",
        f"{indent}{unit}name: {NAME}",
        f"{indent}{unit}description: Memory of past work in this project",
        f"{indent}{unit}cmd: {json.dumps(program, ensure_ascii=False)}",
        f"{indent}{unit}args: {json.dumps(arguments, ensure_ascii=False)}",
        f"{indent}{unit}timeout: 300",
    ]


def _joined(lines: list[str], end: str) -> str:
    return "".join(f"{line}{end}" for line in lines)


def _header(text: str, lines: list[str]) -> int | None:
    """The line `extensions:`; None if there is none. SettingsUnreadable for any other form."""
    headers = [number for number, line in enumerate(lines) if _KEY.match(line)]
    other = _OTHER_FORM.search(text)
    if len(headers) > 1 or (other and not _KEY.match(other[0])):
        line = text.count("\n", 0, other.start()) + 1 if other else headers[1] + 1
        raise SettingsUnreadable(f"line {line}: ctx cannot edit YAML in this form.")
    return headers[0] if headers else None


def _entries(lines: list[str], header: int) -> Iterator[int]:
    """The lines of the entries, up to the next key at the top."""
    for number in range(header + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "#")):
            return
        yield number


def _indent_of_entries(lines: list[str], header: int) -> str:
    """The indentation of the first entry; empty if there is none."""
    for number in _entries(lines, header):
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            found = _INDENT.match(lines[number])
            return found[0] if found else ""
    return ""


def _our_span(lines: list[str], header: int) -> tuple[int, int] | None:
    """The lines of our entry; None if there is none. SettingsUnreadable for one of others."""
    indent = _indent_of_entries(lines, header)
    numbers = list(_entries(lines, header))
    first = next((at for at in numbers if lines[at].rstrip() == f"{indent}{NAME}:"), None)
    if first is None:
        return None
    last = first + 1
    while last in numbers and lines[last].startswith(f"{indent} ") and lines[last].strip():
        last += 1
    body = "".join(lines[first:last])
    if not re.search(r"(?m)^\s*(?:-\s+|args:.*)[\"']?mcp\b", body) or "ctx" not in body[6:]:
        raise SettingsUnreadable(f"line {first + 1}: `extensions.{NAME}` is not an entry of ctx.")
    return first, last
