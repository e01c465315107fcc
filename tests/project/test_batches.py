"""Records in batches: other versions keep them, and no batch breaks a reader."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock, ids
from ctx.errors import BudgetExceeded
from ctx.ids import NodeId, Ulid
from ctx.memory import records
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.materialise import materialise, materialise_all
from ctx.memory.records import Record
from ctx.objects import object_store
from ctx.objects.in_memory import InMemoryStore
from ctx.objects.object_store import Object, typed
from ctx.objects.object_types import RecordBatch
from ctx.project import batches
from ctx.sqlite.connection import transaction
from tests import effort
from tests.memory.graphs import STEPS, WHO, Step, all_records, graph, run_steps, tables

NODE = Ulid("01M7ESYZ1SB4F8Q5T2V9W3X6K0")
OTHER = Ulid("01M7ESYZ1SB4F8Q5T2V9W3X6K1")
STAMP = 1_760_000_000_000 << clock.COUNTER_BITS
BLOB = typed(RecordBatch(())).id


def batch(*rows: Any) -> Object:
    """A batch with any rows."""
    return typed(RecordBatch(tuple(msgspec.Raw(msgspec.msgpack.encode(row)) for row in rows)))


def row(**other: Any) -> list[Any]:
    """An encoded record with some changed fields."""
    said: dict[str, Any] = {
        "id": OTHER,
        "stamp": STAMP,
        "change": OTHER,
        "action": "add",
        "kind": "node.put",
        "subject": NODE,
        "key": "",
        "target": None,
        "body": '{"content":"One.","type":"fact"}',
        "session": "cli",
        "author": "cli",
    }
    assert other.keys() <= said.keys()
    return list({**said, **other}.values())


def read(*made: Object) -> list[Record]:
    store = InMemoryStore()
    store.write(made)
    return [record for each in made for record in batches.read(store, each.id)]


@settings(max_examples=effort.times(25), deadline=None, derandomize=True)
@given(STEPS)
def test_encoded_records_are_read_back(steps: list[Step]) -> None:
    with graph() as store:
        run_steps(store, steps)
        said = all_records(store.connection)
    found = read(batches.encode_batch(said))
    for before, after in zip(said, found, strict=True):
        if before.kind == "task.set" or before.body.get("outside"):
            # What somebody works on, or relates to elsewhere, is not for a project to say.
            assert after == before._replace(kind=f"?{before.kind}", body={})
        else:
            assert after == before
    assert batches.encode_batch(said) == batches.encode_batch(said)


def test_merged_batches_keep_their_order_and_contain_each_record_once() -> None:
    one, two, three = (row(id=ids.new_ulid()) for _ in range(3))
    store = InMemoryStore()
    first, second = batch(one, two), batch(two, three)
    store.write([first, second])
    joined = batches.merge_batches(store, [first.id, second.id])
    assert joined == batch(one, two, three)
    assert batches.merge_batches(store, [first.id]) == first
    assert batches.merge_batches(store, []) is None


def test_blobs_of_merged_batches_are_kept() -> None:
    record = Record._make([*row()[:8], {}, "cli", "cli"])
    store = InMemoryStore()
    first, second = batches.encode_batch([record], [BLOB]), batches.encode_batch([record])
    store.write([first, second])
    joined = batches.merge_batches(store, [first.id, second.id])
    assert joined == first


def test_what_is_too_large_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(id=ids.new_ulid()) for _ in range(20)]
    whole = batch(*rows)
    monkeypatch.setattr(object_store, "LARGEST_TYPED", 1000)
    parts = object_store.parts_of(whole, "records", "blobs")
    assert len(parts) > 2
    assert read(*parts) == read(whole)
    object_store.refuse_too_large(parts)
    with pytest.raises(BudgetExceeded, match=r"in one object \(record_batch\)"):
        object_store.refuse_too_large([whole])


def test_records_of_a_newer_version_are_kept_and_skipped() -> None:
    newer = [
        [*row(id=ids.new_ulid()), {"colour": "green"}, 7],
        row(id=ids.new_ulid(), kind="node.painted", body='{"colour":"green"}'),
        row(id=ids.new_ulid(), body='{"content":"Two.","mood":["calm"],"type":"koan"}'),
    ]
    made = batch(*newer)
    extended, painted, koan = read(made)
    assert extended == read(batch(newer[0][:11]))[0]
    assert (painted.kind, painted.body) == ("node.painted", {"colour": "green"})
    assert koan.body == {"content": "Two.", "mood": ["calm"], "type": "koan"}

    store = InMemoryStore()
    ours = batch(row(id=ids.new_ulid(), body='{"content":"Ours."}'))
    store.write([made, ours])
    joined = batches.merge_batches(store, [made.id, ours.id])
    assert joined is not None
    kept = msgspec.msgpack.decode(joined.payload)[2]["records"]
    assert kept[:3] == newer


NO_RECORDS: list[Any] = [
    *(7, None, [], {}, row()[:10], row(change=""), row(kind=None), row(subject=7), row(target=7)),
    *(row(id=each) for each in ("not a ULID", OTHER.lower(), b"bytes")),
    row(id=ids.derived_ulid(0, "narrative tasks/a.md 1")),
    *(row(stamp=each) for each in (0, -1, True, 1.5, f"{STAMP}", records.BEYOND, 1 << 61)),
    *(row(stamp=(1 << 64) - 1), row(body={"content": "One."}), row(session=None), row(author=[])),
]


def test_invalid_records_are_left_out() -> None:
    for other in NO_RECORDS:
        sound = row(id=ids.new_ulid())
        assert read(batch(other, sound, other)) == read(batch(sound)), other
    made = typed(RecordBatch((msgspec.Raw(b"\x91\xa1\xff"),)))
    assert read(made) == [], "it is no text"


DEEP = '{"metadata":' + '{"a":' * 400 + "1" + "}" * 401
EDGE = {"kind": "edge.put", "key": f"DEPENDS_ON {OTHER}", "target": OTHER, "body": "{}"}
VIEW = {"kind": "view.put", "subject": "mine"}
WRONG_BODIES = [
    *("", "{", "[]", '"text"', '{"content":"One.","type":"fact"}{}', '{"content":NaN}'),
    *('{"content":"\\ud800"}', '{"content":"a\\u0000b"}', '{"content":""}', '{"content":7}'),
    *('{"content":null}', '{"content":"One.","type":7}', '{"content":"One.","type":"<b>"}'),
    *('{"content":"One.","summary":[]}', '{"content":"One.","metadata":[]}'),
    *('{"content":"One.","metadata":{"n":1e999}}', '{"content":"One.","created_at":7}'),
    '{"content":"One.","metadata":{"n":' + "9" * 6000 + "}}",
    *('{"content":"One.","over":7}', '{"content":"One.","updated_at":"tomorrow"}'),
    *(DEEP, '{"a":' * 5000 + "1" + "}" * 5000),
]
WRONG: list[dict[str, Any]] = [
    *({"body": body} for body in WRONG_BODIES),
    *({"kind": "node.settle", "body": body} for body in ('{"fields":7}', '{"over":[7]}')),
    {"subject": "not a ULID"},
    {"subject": ""},
    {"kind": "node.delete", "subject": "x" * 100_000, "body": "{}"},
    *(
        {"kind": "tag.add", "key": key, "body": "{}"}
        for key in ("", "two words", "a\0b", "tier:golden", "x" * 100_000)
    ),
    {"kind": "tag.add", "key": "a", "body": '{"created_at":{"a":1}}'},
    {**EDGE, "target": None},
    {**EDGE, "target": NODE},
    {**EDGE, "key": "DEPENDS_ON"},
    {**EDGE, "key": f"DEPENDS_ON {NODE}", "target": NODE},
    {**EDGE, "key": f"; DROP TABLE nodes {OTHER}"},
    *({**EDGE, "body": body} for body in ('{"id":7}', '{"metadata":7}', '{"outside":true}')),
    {**VIEW, "body": "{}"},
    {**VIEW, "body": '{"query":7}'},
    *({**VIEW, "body": f'{{"query":"a","budget":{each}}}'} for each in ('"all"', "true", "-1")),
    {**VIEW, "subject": "../mine", "body": '{"query":"a"}'},
    {"kind": "task.set", "subject": "current_task", "body": "{}"},
    {"kind": "undo", "subject": "all", "body": "{}"},
]


def test_a_record_with_an_invalid_body_is_skipped() -> None:
    for other in WRONG:
        [found] = read(batch(row(**other)))
        kind = other.get("kind", "node.put")
        assert (found.kind, found.body) == (f"?{kind}", {}), repr(other)[:80]
        with graph() as fresh:
            before = tables(fresh.connection)
            materialise_twice(fresh, [found])
            assert tables(fresh.connection) == before, repr(other)[:80]


def test_a_later_change_wins_over_a_stamp_in_the_future() -> None:
    """A stamp far in the future does not win for ever."""
    last = batches.latest() - 1
    [far] = read(batch(row(stamp=last)))
    with graph() as fresh:
        materialise_twice(fresh, [far])
        for content in ("Two.", "Three."):
            with changing(fresh, "update", WHO) as change:
                change.update_node(NodeId(NODE), content=content)
                said = list(change.records)
            assert read(batches.encode_batch(said)) == said
            assert fresh.node(NodeId(NODE)).content == content
        with changing(fresh, "delete", WHO) as change:
            change.delete_node(NodeId(NODE))
        assert not fresh.has(NodeId(NODE))


def materialise_twice(fresh: Graph, said: list[Record]) -> None:
    """Apply records to a graph: first alone, then together with all others."""
    with transaction(fresh.connection):
        records.insert(fresh.connection, {record.id: record for record in said}.values())
        materialise(fresh.connection, said)
        for table in ("edges", "tags", "nodes", "views"):
            fresh.connection.execute(f"DELETE FROM {table}")
        materialise_all(fresh.connection)


@pytest.mark.parametrize("word", ["a\nb", "\x1b[31m", "a\0b", "x" * 100_000])
def test_unprintable_names_are_cleaned(word: str) -> None:
    [found] = read(batch(row(action=word, session=word, author=word)))
    assert found.kind == "node.put"
    for name in (found.action, found.session, found.author):
        assert name.isprintable()
        assert len(name) <= 500


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = "content type summary metadata query budget id created_at task over fields".split()
BODIES = st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=4).map(
    lambda body: msgspec.json.encode(body).decode()
)
KINDS = (
    "node.put", "node.delete", "node.restore", "node.settle", "tag.add", "tag.remove", "edge.put",
    "edge.delete", "view.put", "view.delete", "task.set", "undo", "node.unheard_of", "?", "",
)  # fmt: skip
ROWS = st.tuples(
    st.sampled_from([OTHER, NODE, "x"]) | st.builds(ids.new_ulid),
    st.sampled_from([STAMP, STAMP + 1, batches.latest() - 1]) | st.integers(0, 2**64 - 1),
    st.just(OTHER) | st.text(max_size=8),
    st.text(max_size=8),
    st.sampled_from(KINDS),
    st.sampled_from([NODE, OTHER, "mine"]) | st.text(max_size=8),
    st.sampled_from(["", "a", f"SUPERSEDES {NODE}", f"SUPERSEDES {OTHER}"]) | st.text(max_size=8),
    st.sampled_from([None, NODE, OTHER]) | st.text(max_size=8),
    st.just('{"content":"One."}') | BODIES | st.text(max_size=8),
    st.text(max_size=8),
    st.text(max_size=8),
)


@pytest.mark.slow
@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(st.lists(ROWS | ANYTHING, max_size=12))
def test_no_batch_breaks_a_reader(rows: list[Any]) -> None:
    said = read(batch(*rows))
    with graph() as fresh:
        materialise_twice(fresh, said)
        for node in fresh.nodes([NODE, OTHER]):  # type: ignore[list-item]
            for record in fresh.history(node.id):
                assert isinstance(records.describe(record, node.id), str)
        # Whatever the stamps are, what is said next is heard.
        with changing(fresh, "add", WHO) as change:
            change.add_node("fact", "Ours.")
        assert read(batches.encode_batch(change.records)) == change.records
