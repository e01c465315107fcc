"""Our part of a host's file is added and removed; nothing else changes."""

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agents.host_setup import json_entries, jsonc, toml_tables, yaml_entries
from ctx.agents.host_setup.host_files import is_our_server
from ctx.errors import SettingsUnreadable
from tests import effort
from tests.agents.host_setup.settings_documents import documents

PATH = ("mcpServers", "ctx")
ENTRY = {"command": "/opt/ctx/bin/ctx", "args": ["mcp"]}
TABLE = ("mcp_servers", "ctx")


def with_entry(text: str | None) -> str:
    return json_entries.with_entry(text, PATH, ENTRY, is_our_server)


def without_entry(text: str | None) -> str | None:
    return json_entries.without_entry(text, PATH, is_our_server)


def with_table(text: str | None) -> str:
    return toml_tables.with_table(text, TABLE, ENTRY, is_our_server)


def without_table(text: str | None) -> str | None:
    return toml_tables.without_table(text, TABLE, is_our_server)


@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "// mine\n",
        "{}",
        "{\n}\n",
        '{"mcpServers": {}}',
        '{\n  "mcpServers": {\n  }\n}\n',
        '{\r\n\t"a": [1, 2], // one\r\n\t"mcpServers": {"x": {"command": "y"}},\r\n}\r\n',
        '\ufeff{ "mcpServers": { /* none */ } }',
        '{"mcpServers": {"x": {}}, "mcpServers": {"y": {}}}',
    ],
)
def test_a_json_entry_comes_and_goes(before: str | None) -> None:
    after = with_entry(before)
    assert jsonc.parse(after).root.plain["mcpServers"]["ctx"] == ENTRY
    assert with_entry(after) == after
    assert without_entry(after) == before


@settings(deadline=None, max_examples=effort.times(60))
@given(documents())
def test_a_json_entry_comes_and_goes_in_any_document(before: str) -> None:
    after = with_entry(before)
    plain = {} if jsonc.is_blank(before) else jsonc.parse(before).root.plain
    assert jsonc.parse(after).root.plain == plain | {"mcpServers": {"ctx": ENTRY}}
    assert without_entry(after) == before


def test_what_the_user_added_to_our_entry_stays() -> None:
    mine = '{"mcpServers": {"ctx": {"command": "/old/ctx", "args": ["mcp"], "trust": true}}}'
    entry = jsonc.parse(with_entry(mine)).root.plain["mcpServers"]["ctx"]
    assert entry == {**ENTRY, "trust": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "the file should be an object"),
        ('{"mcpServers": []}', "`mcpServers` should be an object"),
        ('{"mcpServers": {"ctx": {"command": "/x/other"}}}', "is not an entry of ctx"),
        ('{"mcpServers": {"ctx": 1}}', "is not an entry of ctx"),
        ('{"a": }', "not a JSON value"),
    ],
)
def test_json_that_cannot_be_edited_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsUnreadable, match=problem):
        with_entry(text)


CONFIG = """\
model = "gpt-5.5"   # mine
notify = [
  "a",
  # "b",
]

[mcp_servers.other]
command = 'x'
env = { A = "[mcp_servers.ctx]" }
"""


@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "\n",
        "a = 1",
        "a = 1\n\n\n",
        CONFIG,
        CONFIG.replace("\n", "\r\n"),
        CONFIG.rstrip(),
        "[mcp_servers]\n",
        "[a]\nb = '''\n[mcp_servers.x]\n'''\n",
        "d = 2026-11-17T10:00:00Z\n# the end",
    ],
)
def test_a_toml_table_comes_and_goes(before: str | None) -> None:
    after = with_table(before)
    assert tomllib.loads(after)["mcp_servers"]["ctx"] == ENTRY
    assert after.startswith(before or "")
    assert with_table(after) == after
    assert without_table(after) == before


REVIEW = '[hooks.state."/home/you/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'


@pytest.mark.parametrize("before", ["", "a = 1", "a = 1\n", CONFIG])
@pytest.mark.parametrize("later", [REVIEW, f"\n{REVIEW}", f"# reviewed\n{REVIEW}"])
def test_a_toml_table_goes_from_the_middle(before: str, later: str) -> None:
    """Codex writes its reviews behind our table."""
    left = without_table(with_table(before) + later)
    assert left is not None
    assert tomllib.loads(left) == tomllib.loads(before) | tomllib.loads(later)
    assert left.endswith(later)
    assert left.startswith(before)


def test_a_toml_table_goes_with_the_tables_in_it() -> None:
    mine = with_table("a = 1\n") + '\n[mcp_servers.ctx.env]\nA = "b"\n\n[c]\nd = 1\n'
    assert with_table(mine) == mine
    left = without_table(mine)
    assert left is not None
    assert tomllib.loads(left) == {"a": 1, "c": {"d": 1}}


def test_a_toml_table_is_updated_in_place() -> None:
    mine = (
        "a = 1\n\n[mcp_servers.ctx]\n# mine\nstartup_timeout_sec = 5\n"
        'command = "/old/ctx"\nargs = ["mcp"]\n'
    )
    assert with_table(mine) == mine.replace("/old/ctx", "/opt/ctx/bin/ctx")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = ", "end of document: invalid value"),
        ("a = 1\nb = \n", "line 2"),
        ("mcp_servers = { x = { command = 'y' } }\n", "cannot be changed"),
        ("mcp_servers = 1\n", "cannot be changed"),
        ("[mcp_servers.ctx]\ncommand = 'other'\n", "not a table of ctx"),
        ("[a]\n[a]\n", "line"),
        ("a = " + "[" * 5000, "nested|line"),
    ],
)
def test_toml_that_cannot_be_edited_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsUnreadable, match=problem):
        with_table(text)


@settings(deadline=None, max_examples=effort.times(60))
@given(st.lists(st.sampled_from([*CONFIG.splitlines(keepends=True), "\n", "# c", "x = '''\n"])))
def test_toml_is_edited_or_refused(lines: list[str]) -> None:
    before = "".join(lines)
    try:
        after = with_table(before)
    except SettingsUnreadable:
        return
    assert without_table(after) == before


GOOSE = """\
GOOSE_PROVIDER: openai
extensions:
  developer:
    bundled: true
    enabled: true
    type: builtin
GOOSE_MODEL: m  # mine
"""


@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "a: 1",
        GOOSE,
        GOOSE.replace("\n", "\r\n"),
        "extensions:\n",
        "extensions:",
        "extensions: # none\n\na: 1\n",
        "a: |\n  text\n  more\n",
        "---\na: 1\nextensions:\n    # mine\n    x: {enabled: true}\n",
    ],
)
def test_a_yaml_entry_comes_and_goes(before: str | None) -> None:
    after = yaml_entries.with_extension(before)
    entry = yaml.safe_load(after)["extensions"]["ctx"]
    assert is_our_server(entry)
    assert (entry["enabled"], entry["type"]) == (True, "stdio")
    others = yaml.safe_load(before or "") or {}
    left = yaml.safe_load(after)
    del left["extensions"]["ctx"]
    assert left | {"extensions": None} == others | {"extensions": None} or left == others
    assert yaml_entries.with_extension(after) == after
    assert yaml_entries.without_extension(after) == before


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {a: {enabled: true}}\n",
        "'extensions':\n  a: 1\n",
        "{extensions: {}}",
        "extensions:\n  a: 1\nextensions:\n  b: 1\n",
        "extensions:\n  ctx:\n    cmd: something\n",
    ],
)
def test_yaml_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(SettingsUnreadable):
        yaml_entries.with_extension(text)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "/x/bin/ctx", "args": ["mcp"]}, True),
        ({"type": "local", "command": ["ctx", "mcp"]}, True),
        ({"command": "/x/python", "args": ["-P", "-m", "ctx", "mcp"]}, True),
        ({"cmd": "ctx", "args": ["mcp"]}, True),
        ({"command": {"path": "/x/ctx", "args": []}, "args": ["mcp"]}, True),
        ({"command": "npx", "args": ["ctx", "mcp"]}, False),
        ({"command": "ctx", "args": ["serve"]}, False),
        ({"command": None, "args": None}, False),
        ("ctx mcp", False),
        (None, False),
    ],
)
def test_our_server_is_recognized(entry: Any, expected: bool) -> None:
    assert is_our_server(entry) is expected


@pytest.mark.parametrize("edit", [with_entry, with_table, yaml_entries.with_extension])
def test_a_new_file_ends_with_a_line_end(edit: Callable[[str | None], str]) -> None:
    assert edit(None).endswith("\n")
    assert not json.dumps(edit(None)).endswith("\\n\\n")
