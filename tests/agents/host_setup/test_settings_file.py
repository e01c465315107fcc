"""Our hooks are added to settings.json and removed from it; nothing else changes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agents.host_setup import jsonc
from ctx.agents.host_setup.settings_file import (
    FORMER,
    RegisteredHook,
    UnmanagedHook,
    registered_hooks,
    unmanaged_hooks,
    unreadable,
    with_hooks,
    without_effect,
    without_hooks,
)
from ctx.errors import SettingsUnreadable
from tests import effort
from tests.agents.host_setup.settings_documents import EVENTS, documents, gaps

Entries = dict[str, dict[str, Any]]


def is_ours(command: str) -> bool:
    return command.startswith("ctx hook ")


def hook(word: str) -> dict[str, Any]:
    return {"type": "command", "command": f"ctx hook {word}", "timeout": 10}


def group(*words: str) -> dict[str, Any]:
    return {"matcher": "", "hooks": [hook(word) for word in words]}


STOP: Entries = {"Stop": group("stop")}
BOTH: Entries = {"SessionStart": group("start"), "Stop": group("stop")}

NEW = """\
{
  "hooks": {
    "Stop": [
      {
        "matcher": "",
        "hooks": [
          {
            "type": "command",
            "command": "ctx hook stop",
            "timeout": 10
          }
        ]
      }
    ]
  }
}
"""
# What a group looks like inside of something, on one line: the tests below say where it stands.
GROUP = json.dumps(group("stop"))


def squeezed(text: str | None) -> str | None:
    """A text with our group on one line."""
    if text is None:
        return None
    start = text.find('{\n        "matcher"')
    end = text.find("}\n        ]\n      }", start) + len("}\n        ]\n      }")
    return text if start < 0 else text[:start] + "OURS" + text[end:]


def test_a_missing_file_is_created() -> None:
    assert with_hooks(None, STOP, is_ours) == NEW
    assert without_hooks(NEW, is_ours) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n  "a": 1\n}\n',
            '{\n  "a": 1,\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  }\n}\n',
        ),
        # Comments stay beside what they speak of; where there was a comma, there is one again.
        (
            '{\n  "a": 1 // one\n}\n',
            '{\n  "a": 1, // one\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  }\n}\n',
        ),
        (
            '{\n  "a": 1, // 1\n  // 2\n}',
            '{\n  "a": 1, // 1\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  },\n  // 2\n}',
        ),
        (
            '{"hooks": {\n    "Stop": [\n      {"hooks": []} /* theirs */\n    ]}}',
            '{"hooks": {\n    "Stop": [\n      {"hooks": []}, /* theirs */\n      OURS\n    ]}}',
        ),
        # Brackets that were empty get an empty line, by which they are known to be theirs.
        ("{}\n", '{\n\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  }\n}\n'),
        ("{\n}\n", '{\n\n\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  }\n}\n'),
        (
            '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
            '{\n  "hooks": {\n    "Stop": [\n\n      OURS\n    ]\n  }\n}\n',
        ),
        # A file in one line is left in its line.
        ('{"a": 1}', '{"a": 1,\n  "hooks": {\n    "Stop": [\n      OURS\n    ]\n  }}'),
        ("", "\n" + NEW),
        ("// mine", "// mine\n" + NEW),
        # Of two members with one key the last counts.
        (
            '{\n  "hooks": {"Stop": []},\n  "hooks": {}\n}',
            '{\n  "hooks": {"Stop": []},\n  "hooks": {\n\n    "Stop": [\n      OURS\n    ]\n  }\n}',
        ),
    ],
)
def test_our_hooks_are_inserted_at_the_expected_place(before: str, after: str) -> None:
    written = with_hooks(before, STOP, is_ours)
    assert squeezed(written) == squeezed(after)
    assert with_hooks(written, STOP, is_ours) == written
    assert without_hooks(written, is_ours) == before


@pytest.mark.parametrize("unit", ["\t", "   ", "    "])
def test_our_hooks_follow_the_style_of_the_file(unit: str) -> None:
    value = {"a": [1], "hooks": {"Stop": [group("stop")]}}
    before = json.dumps({"a": [1]}, indent=unit).replace("\n", "\r\n")
    assert with_hooks(before, STOP, is_ours) == json.dumps(value, indent=unit).replace("\n", "\r\n")


def test_our_hooks_are_updated_in_place() -> None:
    old = {"type": "command", "command": "ctx hook stop", "async": True}
    before = """\
{
  "hooks": {
    // Ours comes first here, and only for one tool.
    "Stop": [{"matcher": "Bash", "hooks": [
      %s, /* beside */
      {"type": "command", "command": "make"}
    ]}],
    "Old": [{"hooks": [%s]}],
    "Older": [{"hooks": [{"type": "command", "command": "make"}, %s]}]
  }
}
""" % (json.dumps(old), json.dumps(old), json.dumps(old))  # noqa: UP031
    after = """\
{
  "hooks": {
    // Ours comes first here, and only for one tool.
    "Stop": [{"matcher": "Bash", "hooks": [
      {
        "type": "command",
        "command": "ctx hook stop",
        "timeout": 10
      }, /* beside */
      {"type": "command", "command": "make"}
    ]}],
    "Older": [{"hooks": [{"type": "command", "command": "make"}]}]
  }
}
"""
    assert with_hooks(before, STOP, is_ours) == after
    assert (
        without_hooks(after, is_ours)
        == """\
{
  "hooks": {
    // Ours comes first here, and only for one tool.
    "Stop": [{"matcher": "Bash", "hooks": [ /* beside */
      {"type": "command", "command": "make"}
    ]}],
    "Older": [{"hooks": [{"type": "command", "command": "make"}]}]
  }
}
"""
    )


def test_comments_stay_valid() -> None:
    ours = json.dumps(hook("stop"))
    before = '{"hooks": {"Stop": [{"hooks": [ // c\n  %s, {"command": "make"}]}]}}' % ours  # noqa: UP031
    assert without_hooks(before, is_ours) == (
        '{"hooks": {"Stop": [{"hooks": [ // c\n  {"command": "make"}]}]}}'
    )
    before = '{"hooks": {"Stop": [{"hooks": [{"command": "make"}, // c\n%s]}]}}' % ours  # noqa: UP031
    assert without_hooks(before, is_ours) == (
        '{"hooks": {"Stop": [{"hooks": [{"command": "make"} // c\n]}]}}'
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "line 1, column 1: the settings should be an object, { … }."),
        ('{\n  "hooks": []\n}', "line 2, column 12: the hooks should be an object, { … }."),
        (
            '{"hooks":\r\n{\r\n"Stop": {}}}',
            "line 3, column 9: Stop should be a list, [ … ].",
        ),
        ('{"a": 1', "line 1, column 8: a } is missing at the end."),
        ('{"a": [1', "line 1, column 9: a ] is missing at the end."),
        ('{"a" 1}', "line 1, column 6: expected a colon."),
        ('{"a":', "line 1, column 6: something is missing at the end."),
        ('{"a": 1\n"b": 2}', "line 2, column 1: a comma, or }, is expected here."),
        ('{"a": [1 2]}', "line 1, column 10: a comma, or ], is expected here."),
        ("{,}", "line 1, column 2: expected a name in quotes, or }."),
        ('{"a": tru}', "line 1, column 7: this is not a JSON value."),
        ('{"a": 01}', "line 1, column 8: a comma, or }, is expected here."),
        (
            '{"a": "\\x"}',
            "line 1, column 7: this text has no end, or a character that needs a \\.",
        ),
        ('{"a": 1 /* }', "line 1, column 9: a comma, or }, is expected here."),
        ("{} {}", "line 1, column 4: nothing should follow here."),
        ("[" * 200, "line 1, column 101: this is nested too deeply."),
    ],
)
def test_invalid_settings_are_refused_with_their_line(text: str, told: str) -> None:
    with pytest.raises(SettingsUnreadable) as raised:
        with_hooks(text, STOP, is_ours)
    assert raised.value.message == told


def test_our_hooks_are_removed_from_a_duplicate_key() -> None:
    for text in ("[]", '{"hooks": 3}', '{"hooks": {"Stop": {}, "X": [1, {"hooks": {}}]}}', " "):
        assert without_hooks(text, is_ours) == text
    text = '{"hooks": {"Stop": [%s]}, "hooks": {}}' % GROUP  # noqa: UP031
    assert without_hooks(text, is_ours) == '{"hooks": {}}'
    assert registered_hooks(text, is_ours) == ()


def test_registered_hooks_are_listed() -> None:
    text = with_hooks('{"hooks": {"Stop": [{"hooks": [{"command": "make"}]}]}}', BOTH, is_ours)
    assert registered_hooks(text, is_ours) == (
        RegisteredHook("Stop", "", hook("stop")),
        RegisteredHook("SessionStart", "", hook("start")),
    )
    assert registered_hooks(text, is_ours)[0].command == "ctx hook stop"


def test_a_changed_matcher_is_kept() -> None:
    """Each of several groups is updated separately."""
    old = {"type": "command", "command": "ctx hook start"}
    groups = [{"matcher": each, "hooks": [old]} for each in ("startup", "resume")]
    text = with_hooks(json.dumps({"hooks": {"SessionStart": groups}}), BOTH, is_ours)
    found = registered_hooks(text, is_ours)
    assert found == (
        RegisteredHook("SessionStart", "startup", hook("start")),
        RegisteredHook("SessionStart", "resume", hook("start")),
        RegisteredHook("Stop", "", hook("stop")),
    )
    assert [each.is_narrowed for each in found] == [True, True, False]
    assert with_hooks(text, BOTH, is_ours) == text


def test_a_matcher_of_an_earlier_version_is_updated() -> None:
    """Unless it also decides when a hook of the user runs."""
    wanted = {"PreToolUse": {"matcher": "Read|Edit", "hooks": [hook("edit")]}}
    theirs = {"type": "command", "command": "make lint"}
    for hooks, matcher in (([], "Read|Edit"), ([theirs], FORMER[0])):
        old = {"matcher": FORMER[0], "hooks": [hook("edit"), *hooks]}
        text = with_hooks(json.dumps({"hooks": {"PreToolUse": [old]}}), wanted, is_ours)
        assert json.loads(text) == {"hooks": {"PreToolUse": [{**old, "matcher": matcher}]}}


@pytest.mark.parametrize(
    ("event", "matcher", "is_narrowed"),
    [
        ("PostToolUse", "", False),
        ("PostToolUse", "*", False),
        ("PostToolUse", ".*", False),
        ("PostToolUse", None, False),
        ("PostToolUse", "Bash", True),
        # The client does not look at it here.
        ("Stop", "Bash", False),
    ],
)
def test_narrow_matchers_are_recognised(event: str, matcher: str | None, is_narrowed: bool) -> None:
    text = json.dumps({"hooks": {event: [{"matcher": matcher, "hooks": [hook("x")]}]}})
    assert [each.is_narrowed for each in registered_hooks(text, is_ours)] == [is_narrowed]


def test_modified_hooks_of_ctx_are_mentioned() -> None:
    text = """\
{"hooks": {"Stop": [{"hooks": [
  {"type": "command", "command": "make"},
  {"type": "command", "command": "ctx hook stop"},
  {"type": "command", "command": "X=1 ctx hook stop"},
  {"type": "command", "command": "ctx", "args": ["hook", "stop"]},
  {"type": "prompt", "prompt": "ctx hook stop"}, 3, null
]}]}}"""
    others = (
        UnmanagedHook("Stop", "line 4, column 3", "X=1 ctx hook stop"),
        UnmanagedHook("Stop", "line 5, column 3", "ctx hook stop"),
    )

    def mentions(command: str) -> bool:
        return command.startswith("X=1 ctx hook ")

    assert unmanaged_hooks(text, is_ours, mentions) == others
    # They are not ours to change.
    assert [each.command for each in registered_hooks(text, is_ours)] == ["ctx hook stop"]
    lines = text.splitlines(keepends=True)
    assert without_hooks(text, is_ours) == "".join([*lines[:2], *lines[3:]])
    assert unmanaged_hooks("", is_ours, mentions) == unmanaged_hooks("[]", is_ours, mentions) == ()


def test_reasons_why_the_client_ignores_a_file_are_found() -> None:
    assert unreadable('\ufeff{"a": "// no comment", "b": [",]"]}\r\n') == ""
    assert unreadable('{\n  "a": 1, // one\n}') == (
        "line 2, column 9: a comma that plain JSON does not have"
    )
    assert unreadable('{ // c\n  "a": 1,\n}') == (
        "line 1, column 3: a comment that plain JSON does not have"
    )


def test_reasons_why_hooks_have_no_effect_are_found() -> None:
    assert without_effect("") == without_effect("{}") == ""
    assert without_effect('{"disableAllHooks": false}') == ""
    assert without_effect('{"disableAllHooks": true}') == (
        "`disableAllHooks` is set; Claude Code runs no hooks until it is removed"
    )
    assert without_effect('{"disableAllHooks": true,}') == (
        "line 1, column 25: a comma that plain JSON does not have; Claude Code ignores a"
        " file that contains this"
    )


def entries_of(events: list[str], words: list[str]) -> Entries:
    return {event: group(*words) for event in events}


wanted = st.builds(
    entries_of,
    st.lists(st.sampled_from([*EVENTS, "SessionEnd"]), unique=True, min_size=1),
    st.lists(st.sampled_from("abc"), unique=True, min_size=1),
)


@settings(deadline=None, max_examples=effort.times(60))
@given(documents() | gaps | st.just("\ufeff"), wanted)
def test_adding_and_removing_hooks_restores_every_byte(text: str, entries: Entries) -> None:
    written = with_hooks(text, entries, is_ours)
    assert with_hooks(written, entries, is_ours) == written
    assert without_hooks(written, is_ours) == text


@settings(deadline=None, max_examples=effort.times(40))
@given(documents(), wanted, wanted)
def test_an_update_in_between_restores_every_byte(text: str, old: Entries, new: Entries) -> None:
    written = with_hooks(with_hooks(text, old, is_ours), new, is_ours)
    found = sorted((each.event, each.command) for each in registered_hooks(written, is_ours))
    wanted = [(event, each["command"]) for event in new for each in new[event]["hooks"]]
    assert found == sorted(wanted)
    assert without_hooks(written, is_ours) == text


def with_ours(plain: dict[str, Any], entries: Entries) -> dict[str, Any]:
    """The expected settings as a value, with events in any order."""
    hooks = {event: list(groups) for event, groups in plain.get("hooks", {}).items()}
    for event, ours in entries.items():
        hooks.setdefault(event, []).append(ours)
    return {**plain, "hooks": hooks}


@settings(deadline=None, max_examples=effort.times(40))
@given(documents(), wanted)
def test_only_our_hooks_are_added(text: str, entries: Entries) -> None:
    written = with_hooks(text, entries, is_ours)
    assert jsonc.parse(written).root.plain == with_ours(jsonc.parse(text).root.plain, entries)
    # A text that the client can read stays one.
    if not unreadable(text):
        assert json.loads(written.removeprefix("\ufeff")) == jsonc.parse(written).root.plain


@settings(deadline=None, max_examples=effort.times(60))
@given(documents(), st.data())
def test_json_is_recognised_as_in_the_standard_library(text: str, data: st.DataObject) -> None:
    """Mostly invalid texts: one character is replaced by another."""
    at = data.draw(st.integers(0, max(len(text) - 1, 0)))
    typed = data.draw(st.sampled_from(["", ",", "}", "]", "{", '"', ":", "1", "\\", "/", "\x01"]))
    mangled = (text[:at] + typed + text[at + 1 :]).removeprefix("\ufeff")
    try:
        expected = json.loads(mangled)
    except ValueError:
        expected = "no JSON"
    try:
        document = jsonc.parse(mangled)
        found = document.root.plain if document.not_json is None else "no JSON"
    except SettingsUnreadable:
        found = "no JSON"
    assert found == expected
