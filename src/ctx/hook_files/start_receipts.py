"""What a session was given when it started, in small files: a resumed one is not given it again.

Each says of the items of one part by what they are known again, and in which state they were.

Hooks load this module.
"""

import json

from ctx.hook_files import live

MOST_PARTS = 8
"""A context is given in so many parts, at most."""


def before(home: str, session: str) -> "dict[str, str]":
    """All parts of it; nothing where the session was given nothing."""
    return of_session(home, session) or {}


def of_session(home: str, session: str) -> "dict[str, str] | None":
    """The same; None where nobody knows of a start of the session.

    One that started where memory was empty was told just that.
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
    """Remember all of it in one place, instead of what the parts remember."""
    for part in range(2, MOST_PARTS + 1):
        live.remove(home, _name(session, part))
    note_part(home, session, 1, given)


def note_part(home: str, session: str, part: int, given: "dict[str, str]") -> None:
    """A conversation that begins anew has forgotten what it was given before."""
    live.write(home, _name(session, part), json.dumps(given))


def _name(session: str, part: int) -> str:
    # Parts are given at the same time: each has a file of its own.
    return f"{session}.receipt" if part == 1 else f"{session}.receipt-{part}"
