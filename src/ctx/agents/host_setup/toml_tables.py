"""One table of ours in a TOML file of another program, such as `[mcp_servers.ctx]`.

It is added at the end, and the rest stays as it is, to the byte. One line end above our table is
ours too, so that removing both restores the file, whether or not its last line was complete. Every
edit is checked: what it yields must be the same settings, with or without our table.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from ctx.agents.host_setup import jsonc
from ctx.errors import SettingsUnreadable

IsOurs = Callable[[Any], bool]

_HEADER = re.compile(r"[ \t]*\[")
_POSITION = re.compile(r"\(at (.+)\)\Z")


def read_tables(text: str | None) -> dict[str, Any]:
    """All settings. SettingsUnreadable names the line of an error."""
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        where = _POSITION.search(str(error))
        place = where[1] if where else "here"
        what = str(error).removesuffix(where[0] if where else "").strip().rstrip(".")
        raise SettingsUnreadable(f"{place}: {what[:1].lower()}{what[1:]}.") from None
    except RecursionError:
        raise SettingsUnreadable("this is nested too deeply.") from None


def read_table(text: str | None, path: tuple[str, str]) -> Any:
    holder = read_tables(text).get(path[0])
    return holder.get(path[1]) if isinstance(holder, dict) else None


def with_table(
    text: str | None, path: tuple[str, str], values: Mapping[str, Any], is_ours: IsOurs
) -> str:
    """The text with a table; None: there is no file.

    Keys that the user has added to our table stay. SettingsUnreadable if the table belongs to
    another program.
    """
    before = read_tables(text)
    present = read_table(text, path)
    if present is None:
        end = jsonc.line_end_of(text or "")
        lines = [f"[{'.'.join(path)}]", *(f"{key} = {_shown(values[key])}" for key in values)]
        table = "".join(f"{line}{end}" for line in lines)
        return _checked(table if text is None else text + end + table, before, path, values)
    if not is_ours(present):
        raise SettingsUnreadable(f"`[{'.'.join(path)}]` is not a table of ctx.")
    wanted = {**present, **values}
    if wanted == present:
        return text or ""
    return _checked(_with_values(text or "", path, values, present), before, path, wanted)


def without_table(text: str | None, path: tuple[str, str], is_ours: IsOurs) -> str | None:
    """The text without our table. None if it contained nothing else and was created for it."""
    if text is None or not is_ours(read_table(text, path)):
        return text
    before = read_tables(text)
    lines = text.splitlines(keepends=True)
    first, last = _span(lines, path)
    above, below = "".join(lines[:first]), "".join(lines[last:])
    while (nested := _span(rest := below.splitlines(keepends=True), path, below=True))[1]:
        # Tables below ours, such as its environment, are not valid without it.
        below = "".join(rest[: nested[0]] + rest[nested[1] :])
    if not above and not below:
        return None
    end = jsonc.line_end_of(text)
    shorter = above.removesuffix(end)
    if not below or shorter.endswith(end) or not shorter:
        above = shorter
    return _checked(above + below, before, path, None)


def _span(lines: list[str], path: tuple[str, str], *, below: bool = False) -> tuple[int, int]:
    """The lines of a table, up to the next header; without the blank lines before that.

    `below`: those of a table in it. (0, 0) if there is none.
    """
    name = r"[ \t]*\.[ \t]*".join(rf"(?:\"{word}\"|'{word}'|{word})" for word in path)
    after = "[.]" if below else "]"
    header = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*{after}")
    first = next((at for at, line in enumerate(lines) if header.match(line)), None)
    if first is None:
        return 0, 0
    following = range(first + 1, len(lines))
    last = next((at for at in following if _HEADER.match(lines[at])), len(lines))
    # An array of several lines may begin one of them with a bracket; such a cut is refused later.
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    while last > first + 1 and lines[last - 1].lstrip().startswith("#"):
        # A comment above the next table belongs to that one.
        last -= 1
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return first, last


def _with_values(
    text: str, path: tuple[str, str], values: Mapping[str, Any], present: Mapping[str, Any]
) -> str:
    """The text with changed values in our table, each on its line."""
    lines = text.splitlines(keepends=True)
    first, last = _span(lines, path)
    for key, value in values.items():
        if present.get(key) == value:
            continue
        own = re.compile(rf"[ \t]*{re.escape(key)}[ \t]*=")
        at = next((at for at in range(first + 1, last) if own.match(lines[at])), None)
        line = f"{key} = {_shown(value)}{jsonc.line_end_of(text)}"
        if at is None:
            lines.insert(first + 1, line)
            last += 1
        else:
            lines[at] = line
    return "".join(lines)


def _checked(
    text: str, before: dict[str, Any], path: tuple[str, str], values: Mapping[str, Any] | None
) -> str:
    """The text, if it has the same settings as before, except for our table."""
    problem = SettingsUnreadable(f"`{'.'.join(path)}` cannot be changed without changing the rest.")
    holder = before.get(path[0], {})
    if not isinstance(holder, dict):
        raise problem
    wanted = {**before, path[0]: (holder := dict(holder))}
    if values is None:
        holder.pop(path[1], None)
    else:
        holder[path[1]] = dict(values)
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        after = {}
    if not holder and path[0] not in after:
        del wanted[path[0]]
    if after != wanted:
        raise problem
    return text


def _shown(value: Any) -> str:
    """A text, a number, a flag or a list of them, as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _basic_string(value) if isinstance(value, str) else str(value)


def _basic_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
