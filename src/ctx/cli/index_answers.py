"""The input and output of `ctx debug index`."""

from collections.abc import Mapping
from typing import Any

from ctx.cli import code
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, Table, plain
from ctx.cli.settings import Settings
from ctx.errors import NotAProject, StoreNotTrusted
from ctx.operations import debug_index
from ctx.operations.debug_index import IndexLookup


def show(key: str | None, settings: Settings, output: Output) -> None:
    workspace = None
    try:
        workspace = open_workspace(settings, output)
    except (NotAProject, StoreNotTrusted):
        # The code index works without a store.
        if not debug_index.is_about_code(key):
            raise
    result = debug_index.look_up(workspace, code.codebase_for_command(settings), key)
    output.show(result, _render)
    if result.age:
        code.print_index_age(result.age, output)
    elif debug_index.is_about_code(key):
        output.note("There is no code index yet. To create it: `ctx code index`")


def _render(result: IndexLookup) -> list[Block]:
    if not result.entries and not result.code:
        offered = " or ".join(f"`{name}`" for name in result.near)
        hint = f" Did you mean {offered}?" if offered else ""
        return [Line(f"The index has nothing under {result.key}.{hint}")]
    blocks: list[Block] = [_entry(entry) for entry in result.entries]
    if result.code:
        blocks.append(Line("In the code", "heading"))
        blocks += [_entry(entry) for entry in result.code]
    return blocks


def _entry(entry: Mapping[str, Any]) -> Block:
    rows = [
        (name, line)
        for name, value in entry.items()
        for line in (map(_one_line_value, value) if isinstance(value, tuple) else [str(value)])
    ]
    return Table(("what", "value"), rows)


def _one_line_value(value: Any) -> str:
    """One of several values, without its empty fields."""
    fields = plain(value)
    if not isinstance(fields, dict):
        return str(value)
    return ", ".join(f"{name} {_value_text(fields[name])}" for name in fields if fields[name])


def _value_text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
