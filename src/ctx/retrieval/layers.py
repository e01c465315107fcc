"""The context of a session: what an agent is given when it starts.

It is the view `default`, by the statements that lie beside its query, within a budget. The same
memory gives the same text, byte for byte: there is no time in it.

Hooks load this module: it takes connections and gives text, and loads nothing that a hook cannot
afford.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple
from zlib import crc32

from ctx import clock, tokens
from ctx.ids import NodeId, Ulid
from ctx.memory import model
from ctx.retrieval.compose import STATE, Composed, Entry, Frame, LeftOut, compose, item, short_item
from ctx.retrieval.contexts import MOST_PARTS, NOTHING, NOTHING_YET, Context, Item
from ctx.retrieval.entries import Loaded, load

LARGEST_ANSWER = 10_000
"""What the client takes of one hook, in UTF-16 units; what is longer it cuts."""
LARGEST_PART = 2_500
"""Tokens of a part: no text of so many has as many units, and there is room for more beside it."""

_HOW = (
    ' `<ctx:recall query="WORDS"/>` in an answer finds more for the next prompt, `ctx recall WORDS`'
    ' in a shell at once. `<ctx:remember type="decision" tags="tier:reference">…</ctx:remember>` in'
    " an answer, outside of code, keeps something. The skill `ctx` says the rest."
)
PREFACE = f"This is what memory (ctx) holds for this work.{_HOW}"
EMPTY = f"{NOTHING_YET}{_HOW}"
CHANGED = "This has changed in memory (ctx) since this conversation was last given it."

Connections = Sequence[Connection]
"""The stores that a context is made of, the one of the project first."""

_TIERS = (model.PINNED, model.WORKING, model.REFERENCE)
# Of nodes that are not shown, so many are counted.
_MOST_COUNTED = 500
_MOST_STATE = 40
_LONG_PREVIEW = 2_000
_SMALL = 400


class Wanted(NamedTuple):
    """For whom a context is, and how much of it."""

    project: str | None
    task: str | None
    budget: int
    part: int = 1
    """A budget that no single answer can hold is given in parts, each of which is whole."""
    notice: str = ""
    """What else there is to say before the nodes."""


def context(connections: Connections, wanted: Wanted, first: Sequence[NodeId] = ()) -> Context:
    """The view `default`; before everything else the nodes that an agent was at."""
    parts_before = islice(_in_parts(connections, wanted, first), wanted.part)
    return [NOTHING, *parts_before][-1]


def _in_parts(
    connections: Connections, wanted: Wanted, first: Sequence[NodeId] = ()
) -> Iterator[Context]:
    """One part after the other, until there is nothing left; the last is empty then."""
    budget = min(wanted.budget // parts(wanted.budget), LARGEST_PART)
    before = there(connections, first)
    past: set[NodeId] = set()
    while True:
        ids = _without(past, chain(before, _matching(connections, wanted)))
        first_id = next(ids, None)
        is_empty = first_id is None and not past
        found = ids if first_id is None else chain([first_id], ids)
        preface = _preface(budget, is_empty=is_empty) + wanted.notice
        part = _composed(connections, found, before, budget, preface.strip())
        yield part
        if not part.items:
            return
        past.update(each.id for each in part.items)


def _preface(budget: int, *, is_empty: bool) -> str:
    """Where there is hardly room for nodes, they are more important."""
    if budget <= _SMALL:
        return ""
    return EMPTY if is_empty else PREFACE


def parts(budget: int) -> int:
    """Over how many answers a budget is spread."""
    return max(1, min(MOST_PARTS, -(-budget // LARGEST_PART)))


def changed(connections: Connections, wanted: Wanted, given: dict[str, str]) -> Context:
    """What the context has now and a receipt has not, or not in this state."""
    found = islice(_in_parts(connections, wanted), parts(wanted.budget))
    now = [each for part in found for each in part.items]
    news = [each.id for each in now if given.get(each.id) != each.digest]
    seen = {each.id for each in now}
    gone = _gone(connections, [node_id for node_id in given if node_id not in seen])
    if not news and not gone:
        return NOTHING
    budget = min(wanted.budget, LARGEST_PART)
    preface = CHANGED + (_told_gone(gone, budget // 3) if gone else "") + wanted.notice
    return _composed(connections, iter(news), (), budget, preface)


def there(connections: Connections, node_ids: Iterable[str]) -> list[NodeId]:
    """Those of the nodes that still hold: neither deleted nor superseded nor put away."""
    return [NodeId(Ulid(each)) for each in node_ids if not _gone(connections, [each])]


def _told_gone(gone: Sequence[str], most: int) -> str:
    """What is no longer in it, as far as there is room for it."""
    count = len(gone)
    while count > 1 and tokens.estimate(", ".join(gone[:count])) > most:
        count //= 2
    more = f" and {len(gone) - count:,} more" if count < len(gone) else ""
    return f" No longer in it: {', '.join(gone[:count])}{more}."


def state(
    connections: Connections, project: str | None, task: str | None, session: str
) -> list[NodeId]:
    """What an agent is at, as far as memory knows: its task, working nodes, open questions, and
    what it said in this session. The newest first."""
    sql = (
        "SELECT type <> 'task', id FROM nodes AS n WHERE superseded_by IS NULL AND id IN ("
        "  SELECT * FROM (SELECT node_id FROM tags WHERE tag = 'tier:working'"
        "   ORDER BY node_id DESC LIMIT ?5)"
        "  UNION SELECT * FROM (SELECT id FROM nodes WHERE type = 'open-question'"
        "   ORDER BY id DESC LIMIT ?5)"
        "  UNION SELECT * FROM (SELECT subject FROM records WHERE session = ?1 AND session <> ''"
        "   AND kind = 'node.put' ORDER BY subject DESC LIMIT ?5))"
        " AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id AND tag = 'tier:off-context')"
        " AND (SELECT min(tag <> 'project:' || ?2) FROM tags WHERE node_id = n.id"
        "  AND tag >= 'project:' AND tag < 'project;') IS NOT 1"
        " AND (?3 IS NULL OR (SELECT min(tag <> 'task:' || ?3) FROM tags WHERE node_id = n.id"
        "  AND tag >= 'task:' AND tag < 'task;') IS NOT 1)"
        " ORDER BY type <> 'task', id DESC LIMIT ?4"
    )
    values = (session, project or "", task, _MOST_STATE, _MOST_STATE * 50)
    rows = [row for connection in connections for row in connection.execute(sql, values)]
    rows.sort(key=lambda row: row[1], reverse=True)
    rows.sort(key=lambda row: row[0])
    return [row[1] for row in rows[:_MOST_STATE]]


def is_timeless(connections: Connections) -> bool:
    """Whether the view does not ask how old something is, so that its context can be kept."""
    return '["ago",' not in (_compiled(connections) or "").replace(" ", "")


def _compiled(connections: Connections) -> str | None:
    """The statements of the view: the project's, where it has one, else the user's."""
    for connection in connections:
        row = connection.execute("SELECT compiled FROM views WHERE name = 'default'").fetchone()
        if row:
            return str(row[0]) if row[0] else None
    return None


def items_of(connections: Connections, node_ids: Iterable[NodeId]) -> list[tuple[Item, str]]:
    """Nodes that were asked for, as items of a list: whole, unless one would fill an answer."""
    found = []
    for each in load(connections, node_ids):
        text = item(each.entry, with_tags=True)
        if units(text) > LARGEST_ANSWER // 2:
            text = short_item(each.entry, with_tags=True, characters=_LONG_PREVIEW)
        found.append((_item(each, tokens.estimate(text)), text))
    return found


def fitted(blocks: Sequence[str], most: int, missing: Callable[[int], str]) -> tuple[str, int]:
    """As many blocks as an answer can hold, one below the other, and how many that is.

    What is missing is said at the end.
    """
    left = most - max((units(missing(n)) for n in range(1, len(blocks) + 1)), default=0)
    shown = 0
    for block in blocks:
        left -= units(block)
        if left < 0:
            break
        shown += 1
    text = "".join(blocks[:shown])
    return (text if shown == len(blocks) else text + missing(len(blocks) - shown)), shown


def units(text: str) -> int:
    """Its length in UTF-16, which is how the client counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _composed(
    connections: Connections,
    ids: Iterator[NodeId],
    first: Sequence[NodeId],
    budget: int,
    preface: str,
) -> Context:
    loaded: list[Loaded] = []
    read = 0

    def reading() -> Iterator[NodeId]:
        nonlocal read
        for node_id in ids:
            read += 1
            yield node_id

    def entries() -> Iterator[Entry]:
        for each in load(connections, reading()):
            loaded.append(each)
            yield _placed(each, first)

    def left_out(shown: int) -> LeftOut:
        more = sum(1 for _ in islice(ids, _MOST_COUNTED))
        if next(ids, None) is not None:
            return LeftOut(more, or_more=True)
        return LeftOut(read - shown + more)

    done = compose(entries(), left_out, budget, Frame(preface=preface))
    return Context(done.text, done.token_count, _items(loaded, done))


def _items(loaded: Sequence[Loaded], done: Composed) -> tuple[Item, ...]:
    return tuple(_item(loaded[at], cost) for at, cost in zip(done.shown, done.costs, strict=True))


def _item(each: Loaded, cost: int) -> Item:
    return Item(each.node.id, each.entry.label, each.node.updated_at, cost, _digest(each))


def _digest(each: Loaded) -> str:
    entry = each.entry
    state = (entry.content, entry.rationale, entry.tier, [*entry.depends_on], entry.superseded_by)
    told = (*state, entry.author) if entry.author else state
    return f"{crc32(json.dumps(told).encode()):08x}"


def _placed(each: Loaded, first: Sequence[NodeId]) -> Entry:
    return each.entry._replace(tier=STATE, kept=True) if each.node.id in first else each.entry


def _without(past: set[NodeId], ids: Iterable[NodeId]) -> Iterator[NodeId]:
    """Each once."""
    seen = set(past)
    for node_id in ids:
        if node_id not in seen:
            seen.add(node_id)
            yield node_id


def _matching(connections: Connections, wanted: Wanted) -> Iterator[NodeId]:
    """The nodes of the view in the order in which they are wanted: by tier, the newest first.

    In a tier, the first store comes first.
    """
    compiled = _compiled(connections)
    if compiled is None:
        return
    found = [_in_tiers(connection, compiled, wanted) for connection in connections]
    if len(found) > 1:
        from heapq import merge

        found = [merge(*found, key=itemgetter(0))]
    yield from (node_id for ranked in found for _, node_id in ranked)


def _in_tiers(
    connection: Connection, compiled: str, wanted: Wanted
) -> Iterator[tuple[int, NodeId]]:
    scope = "task" if wanted.task else ""
    ((mode, statements),) = json.loads(compiled).items()
    now_ms = clock.now_ms()
    if mode == "text":
        yield from _ranked(connection, statements[scope], wanted, now_ms)
        return
    for tier, sql, values in statements[scope]:
        filled = [_filled(value, wanted, now_ms) for value in values]
        for row in connection.execute(sql, filled):
            yield _rank(tier), row[0]


def _rank(tier: str | None) -> int:
    return _TIERS.index(tier) if tier in _TIERS else len(_TIERS)


def _ranked(
    connection: Connection, statements: Sequence[Any], wanted: Wanted, now_ms: int
) -> Iterator[tuple[int, NodeId]]:
    rows: list[tuple[NodeId, float, str | None]] = []
    for _, sql, values in statements:
        filled = [_filled(value, wanted, now_ms) for value in values]
        if rows := connection.execute(sql, filled).fetchall():
            break
    rows.sort(reverse=True)
    rows.sort(key=lambda row: row[1])
    ranks = [_rank(model.tier((row[2] or "").split(","))) for row in rows]
    for at in sorted(range(len(rows)), key=lambda at: ranks[at]):
        yield ranks[at], rows[at][0]


def _filled(value: Any, wanted: Wanted, now_ms: int) -> str | int:
    match value:
        case ["project"]:
            # Outside of any project, nothing of one is shown.
            return f"project:{wanted.project or ''}"
        case ["task"]:
            return f"task:{wanted.task}"
        case ["ago", age_ms, behind]:
            return f"{clock.iso(max(now_ms - age_ms, clock.YEAR_1000_MS))}{behind}"
        case _:
            known: str | int = value
            return known


def _gone(connections: Connections, node_ids: Sequence[str]) -> list[str]:
    """Those of the nodes that are deleted, superseded or put away, rather than merely not shown."""
    found = []
    for node_id in node_ids:
        rows = [
            row
            for connection in connections
            for row in connection.execute(
                "SELECT type, superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM tags"
                " WHERE node_id = id AND tag = 'tier:off-context') FROM nodes WHERE id = ?",
                (node_id,),
            )
        ]
        if not any(row[1] for row in rows):
            found.append(f"[{rows[0][0] if rows else 'node'}:{node_id[:12]}]")
    return found
