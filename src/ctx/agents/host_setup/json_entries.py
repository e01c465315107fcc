"""One entry of ours in a JSON file of another program, such as `mcpServers.ctx`.

The rest of the file stays as it is, to the byte: comments, order, spacing, line ends. Removing the
entry restores the file without any other information, by the convention of `jsonc`: in brackets
that were empty before, a blank line precedes our entry.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ctx.agents.host_setup import edited_file, jsonc
from ctx.agents.host_setup.jsonc import Element, Value
from ctx.errors import CtxError

IsOurs = Callable[[Any], bool]
"""Decides whether the value of an entry is ours."""


def with_entry(
    text: str | None, path: tuple[str, str], value: Mapping[str, Any], is_ours: IsOurs
) -> str:
    """The text with an entry; None: there is no file.

    Keys that the user has added to our entry stay. SettingsUnreadable if the entry belongs to
    another program.
    """
    whole = {path[0]: {path[1]: value}}
    if text is None or jsonc.is_blank(text):
        style = jsonc.style_of(text or "", None)
        shown = style.lines(whole, "") + style.line_end
        return shown if text is None else text + style.line_end + shown
    root = jsonc.parse(text).root
    style = jsonc.style_of(text, root)
    _require_object(text, root, "the file")
    holder = jsonc.last(root, path[0])
    if holder is None:
        return jsonc.insert_element(text, root, style, style.member(path[0], whole[path[0]]))
    _require_object(text, holder.value, f"`{path[0]}`")
    entry = jsonc.last(holder.value, path[1])
    if entry is None:
        return jsonc.insert_element(text, holder.value, style, style.member(path[1], value))
    present = entry.value.plain
    if not is_ours(present):
        raise jsonc.syntax_error(text, entry.start, f"`{'.'.join(path)}` is not an entry of ctx")
    wanted = {**present, **value}
    if wanted == present:
        return text
    shown = style.lines(wanted, jsonc.indent_at(text, entry.start))
    return text[: entry.value.start] + shown + text[entry.value.end :]


def without_entry(text: str | None, path: tuple[str, str], is_ours: IsOurs) -> str | None:
    """The text without our entry. None if it contained nothing else and was created for it."""
    while text is not None and not jsonc.is_blank(text):
        root = jsonc.parse(text).root
        pair = _last_of_ours(root, path, is_ours)
        if pair is None:
            break
        holder, entry = pair
        left = jsonc.remove_element(text, [(holder.value, entry), (root, holder)])
        text = jsonc.without_root(text, root) if left is None else left
    return text


def _last_of_ours(
    root: Value, path: tuple[str, str], is_ours: IsOurs
) -> tuple[Element, Element] | None:
    """Our entry, and the member that contains it; also one that has no effect."""
    if not isinstance(root.plain, dict):
        return None
    for holder in reversed([member for member in root.elements if member.key == path[0]]):
        if isinstance(holder.value.plain, dict):
            for entry in reversed(holder.value.elements):
                if entry.key == path[1] and is_ours(entry.value.plain):
                    return holder, entry
    return None


def _require_object(text: str, value: Value, what: str) -> None:
    if not isinstance(value.plain, dict):
        raise jsonc.syntax_error(text, value.start, f"{what} should be an object, {{ … }}")


def read_object(path: str) -> Mapping[str, Any]:
    """The settings of a file; empty if they cannot be read."""
    try:
        text = edited_file.read(path)
        plain = jsonc.parse(text).root.plain if text and not jsonc.is_blank(text) else {}
    except (CtxError, OSError):
        return {}
    return plain if isinstance(plain, dict) else {}
