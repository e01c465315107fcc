"""settings.json, changed without touching anything but our own hooks.

The client's settings are their owner's: comments, order, spacing and line ends stay as they are,
and so do the hooks of others. What is put in can be taken out again to the byte, by looking at
the text alone. That needs one convention. Brackets that held nothing before get an empty line
above our first entry, and stay when our entries go; others that are left empty were ours.

    "hooks": {

      "Stop": [
        …
      ]
    }

The client itself reads plain JSON only. A file with comments is changed with care all the same,
and `unreadable` says why the client will not see it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ctx.agents.claude_code import jsonc
from ctx.agents.claude_code.jsonc import Document, Element, Value

IsOurs = Callable[[str], bool]
"""Tells our command lines from those of others."""

_UNIT = "  "
_LINE_END = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE_IS_EMPTY = re.compile(r"[ \t]*(?:[\r\n]|\Z)")


class Registered(NamedTuple):
    """A hook of ours as the settings have it."""

    event: str
    matcher: str
    hook: Mapping[str, Any]

    @property
    def command(self) -> str:
        return str(self.hook["command"])


class _Found(NamedTuple):
    """A hook of ours: the elements that lead to it, from the member `hooks` of the root on."""

    hooks: Element
    event: Element
    group: Element
    hook: Element


def registered(text: str, is_ours: IsOurs) -> tuple[Registered, ...]:
    """Our hooks that the client would run, in the order of the text."""
    if jsonc.is_blank(text):
        return ()
    hooks = []
    for found in _ours(jsonc.parse(text), is_ours):
        matcher = found.group.value.plain.get("matcher", "")
        hooks.append(Registered(found.event.key, str(matcher), found.hook.value.plain))
    return tuple(hooks)


def unreadable(text: str) -> str:
    """Why the client does not load a text that we can read; empty where it does."""
    at = None if jsonc.is_blank(text) else jsonc.parse(text).not_json
    if at is None:
        return ""
    what = "a comma" if text[at] == "," else "a comment"
    return f"{jsonc.place(text, at)}: {what} that plain JSON does not have"


def without_effect(text: str) -> str:
    """Why no hook of a file has any effect, whatever it says; empty where they have."""
    if reason := unreadable(text):
        return f"{reason}; Claude Code loads nothing of a file with such a thing in it"
    said = {} if jsonc.is_blank(text) else jsonc.parse(text).root.plain
    if isinstance(said, dict) and said.get("disableAllHooks") is True:
        return "`disableAllHooks` is set; Claude Code runs no hook as long as it is"
    return ""


def with_hooks(text: str | None, entries: Mapping[str, Mapping[str, Any]], is_ours: IsOurs) -> str:
    """The text with these hooks, each event's as one matcher group; None: there is no file.

    Hooks of ours that are there already are brought up to date where they stand, and taken out
    of events that are not wanted any more.
    """
    commands = [hook["command"] for group in entries.values() for hook in group["hooks"]]
    assert all(map(is_ours, commands)), "what is put in could not be found again"
    if text is None or jsonc.is_blank(text):
        style = _Style("\n", _UNIT) if text is None else _style(text, None)
        whole = style.lines(as_settings(entries), "") + style.line_end
        return whole if text is None else text + style.line_end + whole
    while (changed := _step(text, entries, is_ours)) != text:
        text = changed
    return text


def as_settings(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of somebody who has nothing but our hooks."""
    return {"hooks": {event: [group] for event, group in entries.items()}}


def without_hooks(text: str, is_ours: IsOurs) -> str | None:
    """The text without our hooks. None: it held nothing else, and was made for them."""
    left: str | None = text
    while left is not None and not jsonc.is_blank(left):
        # From the last one on: each goes as it came.
        found = list(_ours(jsonc.parse(left), is_ours, everywhere=True))
        if not found:
            break
        left = _without(left, found[-1])
    return left


def _step(text: str, entries: Mapping[str, Mapping[str, Any]], is_ours: IsOurs) -> str:
    """The text with the first thing changed that is not as wanted; itself, where all is."""
    document = jsonc.parse(text)
    ours = list(_ours(document, is_ours))
    for event, group in entries.items():
        present = [found for found in ours if found.event.key == event]
        if not present:
            return _with_group(text, document, event, group)
        changed = _with_these(text, document, present, list(group["hooks"]))
        if changed != text:
            return changed
    # Last, so that there is always something left to hold on to.
    unwanted = [found for found in ours if found.event.key not in entries]
    return _without_one_of_several(text, unwanted[-1]) if unwanted else text


def _with_these(
    text: str, document: Document, present: list[_Found], wanted: list[Mapping[str, Any]]
) -> str:
    """The text with one of an event's hooks changed, put in or taken out, if that is needed."""
    standing = [found.hook.value.plain for found in present]
    missing = [hook for hook in wanted if hook not in standing]
    surplus = [
        found
        for number, found in enumerate(present)
        # The same hook twice is once too many.
        if standing[number] not in wanted or standing[number] in standing[:number]
    ]
    style = _style(text, document)
    if missing and surplus:
        old = surplus[0].hook
        shown = style.lines(missing[0], _indent(text, old.start))
        return text[: old.start] + shown + text[old.end :]
    if missing:
        beside = _list_of(present[-1])
        return _inserted(text, beside, style, lambda indent: style.lines(missing[0], indent))
    return _without_one_of_several(text, surplus[-1]) if surplus else text


def _with_group(text: str, document: Document, event: str, group: Mapping[str, Any]) -> str:
    """The text with a matcher group for an event, and with what must hold it."""
    root, style = document.root, _style(text, document)
    if not isinstance(root.plain, dict):
        raise jsonc.wrong(text, root.start, "the settings should be an object, { … }")
    hooks = jsonc.last(root, "hooks")
    if hooks is None:
        return _inserted(text, root, style, style.member("hooks", {event: [group]}))
    if not isinstance(hooks.value.plain, dict):
        raise jsonc.wrong(text, hooks.value.start, "the hooks should be an object, { … }")
    groups = jsonc.last(hooks.value, event)
    if groups is None:
        return _inserted(text, hooks.value, style, style.member(event, [group]))
    if not isinstance(groups.value.plain, list):
        raise jsonc.wrong(text, groups.value.start, f"{event} should be a list, [ … ]")
    return _inserted(text, groups.value, style, lambda indent: style.lines(group, indent))


def _ours(document: Document, is_ours: IsOurs, *, everywhere: bool = False) -> Iterator[_Found]:
    """Our hooks in the order of the text.

    `everywhere`: also those in a member that counts for nothing, because another one with the
    same key follows.
    """
    for hooks in _members(document.root, everywhere=everywhere):
        if hooks.key != "hooks":
            continue
        for event in _members(hooks.value, everywhere=everywhere):
            for group in _items(event.value):
                for siblings in _members(group.value, everywhere=everywhere):
                    for hook in _items(siblings.value) if siblings.key == "hooks" else ():
                        if _is_our_hook(hook.value.plain, is_ours):
                            yield _Found(hooks, event, group, hook)


def _is_our_hook(hook: Any, is_ours: IsOurs) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and is_ours(command)


def _members(holder: Value, *, everywhere: bool) -> Iterable[Element]:
    if not isinstance(holder.plain, dict):
        return ()
    return holder.elements if everywhere else {each.key: each for each in holder.elements}.values()


def _items(holder: Value) -> tuple[Element, ...]:
    return holder.elements if isinstance(holder.plain, list) else ()


class _Style(NamedTuple):
    """How a file is written, for what is added to it."""

    line_end: str
    unit: str

    def lines(self, value: Any, indent: str) -> str:
        """A value, one thing a line, as the client itself writes its settings."""
        shown = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return shown.replace("\n", self.line_end + indent)

    def member(self, key: str, value: Any) -> Callable[[str], str]:
        return lambda indent: f"{json.dumps(key)}: {self.lines(value, indent)}"


def _style(text: str, document: Document | None) -> _Style:
    """Line ends as the first one; indentation as the first member of the document has it."""
    line_end = found[0] if (found := _LINE_END.search(text)) else "\n"
    unit = ""
    if document and document.root.elements:
        first = document.root.elements[0]
        unit = _own_indent(text, first.start) or ""
        unit = unit.removeprefix(_indent(text, document.root.start))
    return _Style(line_end, unit or _UNIT)


def _indent(text: str, position: int) -> str:
    """The white space with which the line of a position begins."""
    line = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    before = text[line:position]
    return before[: len(before) - len(before.lstrip(" \t"))]


def _own_indent(text: str, position: int) -> str | None:
    """The same, if nothing else stands before the position on its line."""
    indent = _indent(text, position)
    return indent if text[: position - len(indent)].endswith(("\n", "\r")) else None


def _inserted(text: str, holder: Value, style: _Style, shown: Callable[[str], str]) -> str:
    """The text with one more element in an object or array, behind all others."""
    outer = _indent(text, holder.start)
    if not holder.elements:
        indent = outer + style.unit
        piece = style.line_end + indent + shown(indent)
        if holder.space == holder.start + 1:
            closing = holder.end - 1
            whole = style.line_end + piece + style.line_end + outer
            return text[:closing] + whole + text[closing:]
        # Brackets with a comment in them are known to be theirs by that.
        return text[: holder.space] + piece + text[holder.space :]
    last = holder.elements[-1]
    own = _own_indent(text, last.start)
    indent = outer + style.unit if own is None else own
    piece = style.line_end + indent + shown(indent)
    # A comment behind the last element speaks of that one, and stays beside it.
    if last.comma is None:
        point = jsonc.end_of_comments(text, last.end)
        return f"{text[: last.end]},{text[last.end : point]}{piece}{text[point:]}"
    point = jsonc.end_of_comments(text, last.comma + 1)
    return f"{text[:point]}{piece},{text[point:]}"


def _without_one_of_several(text: str, found: _Found) -> str:
    left = _without(text, found)
    assert left is not None
    return left


def _without(text: str, found: _Found) -> str | None:
    """The text without one of our hooks, and without what only held it."""
    root = jsonc.parse(text).root
    line_end = _style(text, None).line_end
    holders = [
        (_list_of(found), found.hook),
        (found.event.value, found.group),
        (found.hooks.value, found.event),
        (root, found.hooks),
    ]
    # A group that holds nothing but this hook goes as a whole.
    if len(holders[0][0].elements) == 1:
        del holders[0]
    for holder, element in holders:
        tail = text[element.end : holder.end - 1]
        # Where there are comments, somebody else has been here.
        is_alone = element.space == holder.start + 1 and not tail.strip(" \t\r\n")
        if len(holder.elements) > 1 or not is_alone:
            return _cut(text, holder, element)
        above = text[element.space : element.start].rstrip(" \t")
        if above.endswith(line_end * 2):
            theirs = above.removesuffix(line_end * 2)
            return text[: element.space] + theirs + text[holder.end - 1 :]
    return _without_root(text, root, line_end)


def _list_of(found: _Found) -> Value:
    """The list that a hook stands in, beside others of its group."""
    lists = (member.value for member in found.group.value.elements)
    return next(each for each in lists if found.hook in each.elements)


def _without_root(text: str, root: Value, line_end: str) -> str | None:
    """What is left where the whole object was ours: nothing, or the blank file that was there."""
    before, behind = text[: root.start], text[root.end :]
    if behind.strip():
        return f"{before}{text[root.start]}{text[root.end - 1]}{behind}"
    if before in ("", jsonc.BYTE_ORDER_MARK):
        return None
    return before.removesuffix(line_end)


def _cut(text: str, holder: Value, element: Element) -> str:
    """The text without an element and its comma, or, if it has none, the one before it."""
    position = holder.elements.index(element)
    before, behind = text[: element.space], text[element.end :]
    following = holder.elements[position + 1 : position + 2]
    if not position and following and following[0].space == (element.comma or 0) + 1:
        # The next one takes its place: the empty line above the first means something.
        return text[: element.start] + text[following[0].start :]
    if element.comma is not None:
        behind = text[element.end : element.comma] + text[element.comma + 1 :]
    elif position:
        comma = holder.elements[position - 1].comma
        assert comma is not None
        before = text[:comma] + text[comma + 1 : element.space]
    if element.below_comment and not _REST_OF_LINE_IS_EMPTY.match(behind):
        before += text[element.space : element.start]
    return before + behind
