"""Records are stored unchanged, and found by their subject."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.ids import NodeId, Ulid, new_ulid
from ctx.memory import records
from ctx.memory.changes import changing
from ctx.memory.model import from_json
from ctx.memory.records import Record, as_json
from tests import effort
from tests.memory.graphs import WHO, all_records, graph

# What JSON can say: text of any script, but no halves of characters.
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.dictionaries(TEXT, VALUES, max_size=4)


@settings(max_examples=effort.times(40))
@given(BODIES)
def test_a_body_is_encoded_deterministically_and_read_back(body: dict[str, Any]) -> None:
    written = as_json(body)
    assert written == json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert from_json(written) == body
    assert as_json(dict(reversed(body.items()))) == written
    assert as_json(from_json(written)) == written


@settings(max_examples=effort.times(25))
@given(BODIES, TEXT, st.integers(0, 2**63 - 1))
def test_an_inserted_record_is_read_back(body: dict[str, Any], key: str, stamp: int) -> None:
    record = Record(
        new_ulid(), stamp, Ulid("change"), "add", "tag.add", "subject", key, None, body, "s", "cli"
    )
    with graph() as fresh:
        records.insert(fresh.connection, [record])
        assert records.of_change(fresh.connection, "change") == [record]
        assert records.about_key(fresh.connection, "subject", "tag.", key) == [record]
        # What a document says has no time that a clock could follow.
        followed = stamp if stamp < records.BEYOND else 0
        assert records.last_stamp(fresh.connection) == followed


def test_records_are_found_by_their_subject() -> None:
    with graph() as store:
        with changing(store, "add", WHO) as change:
            one = change.add_node("fact", "One.")
            two = change.add_node("fact", "Two.")
            change.tag(one, "a:b")
            change.tag(one, "c")
            change.link(one, two, "DEPENDS_ON", {})
            change.put_view("mine", "type:fact", None)
            said = list(change.records)
        connection = store.connection
        assert records.records_about(connection, one) == [said[0], said[2], said[3], said[4]]
        assert records.records_about(connection, one, "tag.") == [said[2], said[3]]
        assert records.about_key(connection, one, "tag.", "c") == [said[3]]
        assert records.records_of_edges_to(connection, two) == [said[4]]
        assert records.of_change(connection, change.id) == said == all_records(connection)


def test_a_record_of_an_unknown_kind_is_kept_and_skipped() -> None:
    """A newer version wrote it, and can still read it afterwards."""
    with graph() as store:
        with changing(store, "add", WHO) as change:
            node_id = change.add_node("fact", "One.")
            newer = change.records[0]._replace(
                id=new_ulid(), stamp=1 << 60, kind="node.paint", body={"colour": "red"}
            )
        records.insert(store.connection, [newer])
        with changing(store, "tag", WHO) as change:
            change.tag(node_id, "a:b")
            change.update_node(node_id, content="Two.")
            assert change.records[0].stamp == newer.stamp + 1
        assert store.node(NodeId(node_id)).content == "Two."
        assert newer in store.history(node_id)
