"""Reads the graph of the MCP reference memory server, `memory.json` or `memory.jsonl`.

    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["writes Rust"]}
    {"type": "relation", "from": "Ada", "to": "Shop", "relationType": "works_on"}

An entity with its observations becomes a fact, and a relation becomes an edge. The entities have no
times. A name is unique within a file, so the path is part of the id.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from ctx.exchange.foreign import foreign_items, jsonl
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, LocatedDraft, SkippedItem
from ctx.ids import NodeId, Ulid
from ctx.memory.model import Draft, Edge, Evidence

PROGRAM = "mcp-memory"
SOURCE = f"source:{PROGRAM}"


class _Relation(NamedTuple):
    place: str
    from_name: str
    to_name: str
    type: str


def is_line(value: object) -> bool:
    """Whether a parsed line is one of this format."""
    if not isinstance(value, dict):
        return False
    keys = {"entity": {"name", "entityType"}, "relation": {"from", "to", "relationType"}}
    named = value.get("type")
    return isinstance(named, str) and keys.get(named, {"no such type"}) <= value.keys()


@contextmanager
def reading(path: str) -> Iterator[ForeignSource]:
    with jsonl.open_lines(path) as (total, lines):
        yield ForeignSource(PROGRAM, total, _items(lines, os.path.realpath(path)))


def _items(lines: Iterator[bytes], path: str) -> Iterator[Item]:
    names: set[str] = set()
    relations: list[_Relation] = []
    for place, value in jsonl.values(lines):
        if isinstance(value, SkippedItem):
            yield value
        elif value.get("type") == "relation":
            ends = [value.get(key) for key in ("from", "to", "relationType")]
            texts = [end for end in ends if isinstance(end, str)]
            relation = _Relation(place, *texts) if len(texts) == len(ends) else None
            if relation is None:
                yield SkippedItem(place, "it is not a relation between two names")
            else:
                relations.append(relation)
        elif value.get("type") == "entity":
            yield _entity(place, value, names, path)
        else:
            yield SkippedItem(place, "it is neither an entity nor a relation")
    for relation in dict.fromkeys(relations):
        yield _edge(relation, names, path)


def _entity(
    place: str, value: Mapping[str, Any], names: set[str], path: str
) -> LocatedDraft | SkippedItem:
    name, kind, said = (value.get(key) for key in ("name", "entityType", "observations"))
    if not isinstance(name, str) or not name.strip():
        return SkippedItem(place, "the entity has no name")
    if name in names:
        return SkippedItem(place, "an entity of this name is above")
    names.add(name)
    kind = kind.strip() if isinstance(kind, str) else ""
    observations = (
        [each for each in said if isinstance(each, str)] if isinstance(said, list) else []
    )
    head = f"{name} ({kind})" if kind else name
    body = "".join(f"\n- {' '.join(each.split())}" for each in observations)
    draft = Draft(
        _node_id(path, name),
        "fact",
        f"{head}\n{body}" if body else head,
        "",
        "",
        tags=foreign_items.tags(SOURCE),
        metadata={"path": path, "entity": name, "entity_type": kind},
    )
    return LocatedDraft(place, draft)


def _edge(relation: _Relation, names: set[str], path: str) -> Edge | SkippedItem:
    missing = [name for name in (relation.from_name, relation.to_name) if name not in names]
    if missing:
        return SkippedItem(relation.place, f"there is no entity {missing[0][:80]!r}")
    edge_type = foreign_items.edge_type(relation.type)
    from_id, to_id = (_node_id(path, name) for name in (relation.from_name, relation.to_name))
    edge_id = foreign_items.derived_id(None, PROGRAM, from_id, relation.type, to_id)
    evidence = Evidence(PROGRAM, reason=relation.type).metadata()
    return Edge(Ulid(edge_id), from_id, to_id, edge_type, "", evidence)


def _node_id(path: str, name: str) -> NodeId:
    return foreign_items.derived_id(None, PROGRAM, path, name)
