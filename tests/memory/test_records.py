"""Records are kept as they were said, and found by what they are about."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctx.ids import NodeId, Ulid, new_ulid
from ctx.memory import records
from ctx.memory.changes import changing
from ctx.memory.model import from_json
from ctx.memory.records import Record, as_json
from tests.memory.graphs import WHO, all_records, graph

# What JSON can say: text of any script, but no halves of characters.
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.dictionaries(TEXT, VALUES, max_size=4)


@given(BODIES)
def test_a_body_comes_back_and_is_always_written_in_the_same_way(body: dict[str, Any]) -> None:
    written = as_json(body)
    assert from_json(written) == body
    assert as_json(dict(reversed(body.items()))) == written
    assert as_json(from_json(written)) == written


@given(BODIES, TEXT, st.integers(0, 2**63 - 1))
def test_a_record_comes_back_as_it_was_inserted(body: dict[str, Any], key: str, stamp: int) -> None:
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


def test_records_are_found_by_what_they_are_about() -> None:
    with graph() as lived:
        with changing(lived, "add", WHO) as change:
            one = change.add_node("fact", "One.")
            two = change.add_node("fact", "Two.")
            change.tag(one, "a:b")
            change.tag(one, "c")
            change.link(one, two, "DEPENDS_ON", {})
            change.put_view("mine", "type:fact", None)
            said = list(change.records)
        connection = lived.connection
        assert records.about(connection, one) == [said[0], said[2], said[3], said[4]]
        assert records.about(connection, one, "tag.") == [said[2], said[3]]
        assert records.about_key(connection, one, "tag.", "c") == [said[3]]
        assert records.pointing_at(connection, two) == [said[4]]
        assert records.of_change(connection, change.id) == said == all_records(connection)


def test_a_kind_that_is_not_known_is_kept_and_skipped() -> None:
    """A newer version wrote it; going back to that version, it is still there."""
    with graph() as lived:
        with changing(lived, "add", WHO) as change:
            node_id = change.add_node("fact", "One.")
            newer = change.records[0]._replace(
                id=new_ulid(), stamp=1 << 60, kind="node.paint", body={"colour": "red"}
            )
        records.insert(lived.connection, [newer])
        with changing(lived, "tag", WHO) as change:
            change.tag(node_id, "a:b")
            change.update_node(node_id, content="Two.")
            assert change.records[0].stamp == newer.stamp + 1
        assert lived.node(NodeId(node_id)).content == "Two."
        assert newer in lived.history(node_id)


def test_all_records_are_copied_as_they_stand() -> None:
    with graph() as lived, graph() as other:
        with changing(lived, "add", WHO) as change:
            change.add_node("fact", "One.", metadata={"ключ": ["ü", 1, None]})
        other.connection.execute("DELETE FROM records")
        records.copy(lived.connection, other.connection)
        query = "SELECT * FROM records ORDER BY id"
        copied = other.connection.execute(query).fetchall()
        assert copied == lived.connection.execute(query).fetchall()
