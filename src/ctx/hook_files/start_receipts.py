"""The context that a session received at its start: a resumed session does not receive it again.

Each file maps the keys of one part's items to a digest of their state.

Hooks load this module.
"""

import json

from ctx.hook_files import live

MOST_PARTS = 8
"""The most parts of a context."""


def given(home: str, session: str) -> "set[str]":
    """The ids of the items of all parts, and the digests of their texts."""
    items = of_session(home, session) or {}
    return {*items.values(), *(key.rpartition(":")[2] for key in items)}


def of_session(home: str, session: str) -> "dict[str, str] | None":
    """The items of all parts with their digests; None if no start of the session is known.

    A session that started with empty memory has an empty receipt.
    """
    known: dict[str, str] | None = None
    for part in range(1, MOST_PARTS + 1):
        try:
            given = json.loads(live.read(home, _name(session, part)) or "null")
        except ValueError:
            continue
        if isinstance(given, dict):
            known = {**(known or {}), **given}
    return known


def note(home: str, session: str, given: "dict[str, str]") -> None:
    """Store everything in the first file and remove the others."""
    for part in range(2, MOST_PARTS + 1):
        live.remove(home, _name(session, part))
    note_part(home, session, 1, given)


def note_part(home: str, session: str, part: int, given: "dict[str, str]") -> None:
    """Store one part. A new conversation does not know what an earlier one received."""
    live.write(home, _name(session, part), json.dumps(given))


def _name(session: str, part: int) -> str:
    # Parts are written concurrently, so each has its own file.
    return f"{session}.receipt" if part == 1 else f"{session}.receipt-{part}"
