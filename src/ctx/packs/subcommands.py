"""Find the code that implements a command that a task names: `shop place-order --gift`.

The functions and files of commands are named alike in most projects: `place_order` in
`cli/orders.py`, `cmd_place_order`, `NewPlaceOrderCmd`, `PlaceOrderCommand` in
`commands/placeOrder.ts`.
"""

import json
import re

from ctx.code import file_roles
from ctx.code.lookup import Code, LocatedItem

_MOST = 3
"""A name that more items have is not the name of a command."""
_MOST_CHECKED = 60
_SEPARATORS = re.compile(r"[-_:]")
_COMMAND_FOLDERS = frozenset(
    "__main__ actions bin cli cmd cmds command commands console main subcommand subcommands"
    " tasks verbs".split()
)
# Names of the function, class or file of a command, beside the name of the command itself.
_SNAKE = ("cmd_{}", "{}_cmd", "command_{}", "{}_command", "do_{}", "run_{}", "handle_{}")
_CAMEL = ("{}Cmd", "{}Command", "{}Action")
_PASCAL = (
    "{}Cmd",
    "{}Command",
    "Cmd{}",
    "New{}Cmd",
    "New{}Command",
    "NewCmd{}",
    "new{}Cmd",
    "run{}",
)


def implementing(code: Code, command: str) -> list[LocatedItem]:
    """The items that implement a command of this project: a program, and the words after it."""
    program, *words = command.split()
    if not words or not _is_own(code, program):
        return []
    for count in range(len(words), 0, -1):
        if meant := _named_like(code, "-".join(words[:count])):
            return meant
    return []


def _named_like(code: Code, name: str) -> list[LocatedItem]:
    first, *others = parts = [part for part in _SEPARATORS.split(name) if part]
    snake = "_".join(parts)
    pascal = "".join(part.capitalize() for part in parts)
    camel = first + "".join(part.capitalize() for part in others)
    plain = {name, snake, "-".join(parts), camel, pascal}
    telling = {
        *(form.format(snake) for form in _SNAKE),
        *(form.format(camel) for form in _CAMEL),
        *(form.format(pascal) for form in _PASCAL),
    }
    rows = code.connection.execute(
        "SELECT id FROM items WHERE name IN (SELECT value FROM json_each(?)) LIMIT ?",
        (json.dumps([*telling, *plain]), _MOST_CHECKED),
    )
    meant = []
    for item in code.located(id for (id,) in rows):
        folders = re.split(r"[/.]", item.path.lower())
        own = re.split(r"::|[.#/]", item.name)[-1]
        if file_roles.role_of(item.path) == file_roles.BESIDE:
            continue
        if own in telling or not _COMMAND_FOLDERS.isdisjoint(folders):
            meant.append(item)
    # A function in a file of the same name is more specific than the file.
    paths = {item.path for item in meant if item.kind != "module"}
    meant = [item for item in meant if item.kind != "module" or item.path not in paths]
    return meant if len(meant) <= _MOST else []


def _is_own(code: Code, program: str) -> bool:
    """Whether a program is part of this project: a file or a folder has its name."""
    names = program, program.replace("-", "_")
    return any(
        code.connection.execute(query, names).fetchone()
        for query in (
            "SELECT 1 FROM items WHERE name IN (?, ?) AND parent IS NULL LIMIT 1",
            (
                "SELECT 1 FROM files WHERE instr('/' || path, '/' || ? || '/')"
                " OR instr('/' || path, '/' || ? || '/') LIMIT 1"
            ),
        )
    )
