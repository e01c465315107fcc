"""Edits settings.json, and changes only our own hooks.

The settings belong to the user: comments, order, spacing, line ends and the hooks of others are
kept. Removing our hooks restores the file byte for byte, without any other information. That needs
one convention: in brackets that were empty before, a blank line precedes our first entry. These
brackets stay when our entries are removed. Other brackets that become empty were ours.

    "hooks": {

      "Stop": [
        …
      ]
    }

The client reads only plain JSON. A file with comments can still be edited, and `unreadable`
explains why the client does not load it.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ctx.agents.host_setup import jsonc
from ctx.agents.host_setup.jsonc import Element, Style, Value

IsOurs = Callable[[str], bool]
"""Decides whether a command line is ours."""

FOR_ALL = ("", "*", ".*")
"""Matchers that match everything."""
WITHOUT_MATCHER = ("UserPromptSubmit", "Stop")
"""Our events for which the client ignores matchers."""
FOR_SOME = ("PreToolUse",)
"""Our events that are registered for some calls only."""
FORMER = ("Edit|MultiEdit|Write|NotebookEdit",)
"""Matchers that ctx wrote in earlier versions."""


class RegisteredHook(NamedTuple):
    """A hook of ours in the settings."""

    event: str
    matcher: str
    hook: Mapping[str, Any]

    @property
    def command(self) -> str:
        return str(self.hook["command"])

    @property
    def is_narrowed(self) -> bool:
        """Whether a matcher restricts the hook to some events."""
        return self.matcher not in FOR_ALL and self.event not in (*WITHOUT_MATCHER, *FOR_SOME)


class NamedEvent(NamedTuple):
    """An event with hooks in a settings file."""

    event: str
    place: str
    """`line 3, column 5`."""


class UnmanagedHook(NamedTuple):
    """A hook that runs ctx but was not written by it."""

    event: str
    place: str
    """`line 3, column 5`."""
    line: str
    """The command."""


class _HookEntry(NamedTuple):
    """A hook, and the elements that contain it, from the value of `hooks` on."""

    event: Element
    group: Element
    hook: Element

    @property
    def matcher(self) -> str:
        # Other types match nothing.
        return str(self.group.value.plain.get("matcher") or "")


def registered_hooks(text: str, is_ours: IsOurs) -> tuple[RegisteredHook, ...]:
    """Our hooks that the client would run, in the order of the text."""
    ours = [entry for entry in _hooks(text) if _is_our_hook(entry.hook.value.plain, is_ours)]
    return tuple(
        RegisteredHook(entry.event.key, entry.matcher, entry.hook.value.plain) for entry in ours
    )


def unmanaged_hooks(text: str, is_ours: IsOurs, mentions: IsOurs) -> tuple[UnmanagedHook, ...]:
    """Hooks that run ctx in a form that it does not write, in the order of the text."""
    others = []
    for entry in _hooks(text):
        hook = entry.hook.value.plain
        line = _line(hook)
        # Without a shell, it is not our form, even if the words are the same.
        if not _is_our_hook(hook, is_ours) and (mentions(line) or is_ours(line)):
            place = jsonc.place(text, entry.hook.start)
            others.append(UnmanagedHook(entry.event.key, place, line))
    return tuple(others)


def named_events(text: str) -> Iterator[NamedEvent]:
    """All events with hooks, ours and those of others."""
    hooks = jsonc.last(jsonc.parse(text).root, "hooks")
    if hooks is not None and isinstance(hooks.value.plain, dict):
        for event in hooks.value.elements:
            yield NamedEvent(event.key, jsonc.place(text, event.start))


def unreadable(text: str) -> str:
    """Why the client does not load a text that we can parse; empty if it does."""
    at = None if jsonc.is_blank(text) else jsonc.parse(text).not_json
    if at is None:
        return ""
    what = "a comma" if text[at] == "," else "a comment"
    return f"{jsonc.place(text, at)}: {what} that plain JSON does not have"


def without_effect(text: str) -> str:
    """Why no hook of a file has any effect; empty if they have."""
    if reason := unreadable(text):
        return f"{reason}; Claude Code ignores a file that contains this"
    settings = {} if jsonc.is_blank(text) else jsonc.parse(text).root.plain
    if isinstance(settings, dict) and settings.get("disableAllHooks") is True:
        return "`disableAllHooks` is set; Claude Code runs no hooks until it is removed"
    return ""


def with_hooks(text: str | None, entries: Mapping[str, Mapping[str, Any]], is_ours: IsOurs) -> str:
    """The text with these hooks, in one matcher group per event; None: there is no file.

    Existing hooks of ours are updated in place, and removed from events that are no longer wanted.
    """
    commands = [hook["command"] for group in entries.values() for hook in group["hooks"]]
    assert all(map(is_ours, commands)), "the added hooks could not be read back"
    if text is None or jsonc.is_blank(text):
        style = jsonc.style_of(text or "", None)
        whole = style.lines(as_settings(entries), "") + style.line_end
        return whole if text is None else text + style.line_end + whole
    root = jsonc.parse(text).root
    style = jsonc.style_of(text, root)
    if not isinstance(root.plain, dict):
        raise jsonc.syntax_error(text, root.start, "the settings should be an object, { … }")
    member = jsonc.last(root, "hooks")
    if member is None:
        return jsonc.insert_element(
            text, root, style, style.member("hooks", as_settings(entries)["hooks"])
        )
    hooks = member.value
    if not isinstance(hooks.plain, dict):
        raise jsonc.syntax_error(text, hooks.start, "the hooks should be an object, { … }")
    # From here on only this value changes: the rest of the text is not parsed again.
    while (changed := _step(text, hooks, style, entries, is_ours)) != text:
        text, hooks = changed, jsonc.member_at(changed, hooks.start)
    return text


def as_settings(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings that contain only our hooks."""
    return {"hooks": {event: [group] for event, group in entries.items()}}


def without_hooks(text: str, is_ours: IsOurs) -> str | None:
    """The text without our hooks. None if it contained nothing else and was created for them."""
    left: str | None = text
    while left is not None and not jsonc.is_blank(left):
        root = jsonc.parse(left).root
        # Also in a duplicate member `hooks`, which has no effect. The last one is removed first, in
        # the reverse order of insertion.
        for member in reversed(list(_members(root, everywhere=True))):
            if member.key == "hooks" and any(_our_hooks(member.value, is_ours, everywhere=True)):
                left = _remove_our_hooks(left, member, is_ours)
                break
        else:
            break
    return left


def _remove_our_hooks(text: str, member: Element, is_ours: IsOurs) -> str | None:
    """The text without our hooks in one member `hooks`, and without the member if it contained
    nothing else.

    Only the member is parsed again after each removal.
    """
    hooks = member.value
    while ours := list(_our_hooks(hooks, is_ours, everywhere=True)):
        left = _remove_hook(text, hooks, ours[-1])
        if left is None:
            root = jsonc.parse(text).root
            [member] = [element for element in root.elements if element.start == member.start]
            left = jsonc.remove_element(text, [(root, member)])
            return jsonc.without_root(text, root) if left is None else left
        text, hooks = left, jsonc.member_at(left, hooks.start)
    return text


def _step(
    text: str,
    hooks: Value,
    style: Style,
    entries: Mapping[str, Mapping[str, Any]],
    is_ours: IsOurs,
) -> str:
    """The text with the first difference fixed; unchanged if there is none."""
    ours = list(_our_hooks(hooks, is_ours))
    for event, group in entries.items():
        present = [entry for entry in ours if entry.event.key == event]
        if not present:
            return _with_group(text, hooks, style, event, group)
        for entry in present:
            old = jsonc.last(entry.group.value, "matcher")
            siblings = [each.value.plain for each in _list_of(entry).elements]
            is_all_ours = all(_is_our_hook(each, is_ours) for each in siblings)
            if old is not None and entry.matcher in FORMER and is_all_ours:
                new = json.dumps(group["matcher"])
                return text[: old.value.start] + new + text[old.value.end :]
        # Hooks stay under the matcher that the user gave them.
        for matcher in dict.fromkeys(entry.matcher for entry in present):
            beside = [entry for entry in present if entry.matcher == matcher]
            changed = _with_these(text, hooks, style, beside, list(group["hooks"]))
            if changed != text:
                return changed
    # Last, so that the value of `hooks` is never empty in between.
    unwanted = [entry for entry in ours if entry.event.key not in entries]
    return _without_one_of_several(text, hooks, unwanted[-1]) if unwanted else text


def _with_these(
    text: str,
    hooks: Value,
    style: Style,
    present: list[_HookEntry],
    wanted: list[Mapping[str, Any]],
) -> str:
    """The text with one hook of an event changed, inserted or removed, if necessary."""
    standing = [entry.hook.value.plain for entry in present]
    missing = [hook for hook in wanted if hook not in standing]
    surplus = [
        entry
        for number, entry in enumerate(present)
        # A hook must not be registered twice.
        if standing[number] not in wanted or standing[number] in standing[:number]
    ]
    if missing and surplus:
        old = surplus[0].hook
        shown = style.lines(missing[0], jsonc.indent_at(text, old.start))
        return text[: old.start] + shown + text[old.end :]
    if missing:
        beside = _list_of(present[-1])
        return jsonc.insert_element(
            text, beside, style, lambda indent: style.lines(missing[0], indent)
        )
    return _without_one_of_several(text, hooks, surplus[-1]) if surplus else text


def _with_group(text: str, hooks: Value, style: Style, event: str, group: Mapping[str, Any]) -> str:
    """The text with a matcher group for an event, and with the elements that must contain it."""
    groups = jsonc.last(hooks, event)
    if groups is None:
        return jsonc.insert_element(text, hooks, style, style.member(event, [group]))
    if not isinstance(groups.value.plain, list):
        raise jsonc.syntax_error(text, groups.value.start, f"{event} should be a list, [ … ]")
    return jsonc.insert_element(
        text, groups.value, style, lambda indent: style.lines(group, indent)
    )


def _hooks(text: str) -> Iterator[_HookEntry]:
    """All hooks that the client would run, ours and those of others."""
    member = None if jsonc.is_blank(text) else jsonc.last(jsonc.parse(text).root, "hooks")
    return iter(()) if member is None else _hook_entries(member.value, everywhere=False)


def _our_hooks(hooks: Value, is_ours: IsOurs, *, everywhere: bool = False) -> Iterator[_HookEntry]:
    """Our hooks in the order of the text."""
    for entry in _hook_entries(hooks, everywhere=everywhere):
        if _is_our_hook(entry.hook.value.plain, is_ours):
            yield entry


def _hook_entries(hooks: Value, *, everywhere: bool) -> Iterator[_HookEntry]:
    """The hooks in a value of `hooks`.

    `everywhere`: also those in a duplicate member, which has no effect.
    """
    for event in _members(hooks, everywhere=everywhere):
        for group in _items(event.value):
            for siblings in _members(group.value, everywhere=everywhere):
                for hook in _items(siblings.value) if siblings.key == "hooks" else ():
                    yield _HookEntry(event, group, hook)


def _is_our_hook(hook: Any, is_ours: IsOurs) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and not hook.get("args") and is_ours(command)


def _line(hook: Any) -> str:
    """The command of a hook as a shell would run it; empty if it has none."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str):
        return ""
    arguments = hook.get("args")
    # If the hook has arguments, the command is a single word, which no shell splits.
    return shlex.join([command, *map(str, arguments)]) if isinstance(arguments, list) else command


def _members(holder: Value, *, everywhere: bool) -> Iterable[Element]:
    if not isinstance(holder.plain, dict):
        return ()
    return holder.elements if everywhere else {item.key: item for item in holder.elements}.values()


def _items(holder: Value) -> tuple[Element, ...]:
    return holder.elements if isinstance(holder.plain, list) else ()


def _without_one_of_several(text: str, hooks: Value, entry: _HookEntry) -> str:
    left = _remove_hook(text, hooks, entry)
    assert left is not None
    return left


def _remove_hook(text: str, hooks: Value, entry: _HookEntry) -> str | None:
    """The text without one of our hooks, and without elements that contained only it. None if all
    of `hooks` would be removed."""
    holders = [
        (_list_of(entry), entry.hook),
        (entry.event.value, entry.group),
        (hooks, entry.event),
    ]
    # A group with no other hook is removed as a whole.
    if len(holders[0][0].elements) == 1:
        del holders[0]
    return jsonc.remove_element(text, holders)


def _list_of(entry: _HookEntry) -> Value:
    """The list that contains a hook and the others of its group."""
    lists = (member.value for member in entry.group.value.elements)
    return next(value for value in lists if entry.hook in value.elements)
