"""The log of what ctx itself did, with its cost."""

import pytest

from ctx import clock
from ctx.memory import event_log
from ctx.memory.event_log import CONTEXT, RELEVANT, EventLogEntry
from tests.memory import graphs

DAY_MS = 86_400_000


def test_entries_are_listed_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with graphs.graph() as graph:
        connection = graph.connection
        for at, (kind, tokens) in enumerate([(CONTEXT, 900), ("other", None), (RELEVANT, 80)]):
            monkeypatch.setattr(clock, "now_ms", lambda at=at: 1_768_000_000_000 + at * DAY_MS)
            event_log.add(connection, kind, f"s{at}", {"at": at, "text": "更新"}, at, tokens)
        days = [clock.iso(1_768_000_000_000 + at * DAY_MS) for at in range(3)]
        expected = [
            EventLogEntry(days[2], "s2", RELEVANT, {"at": 2, "text": "更新"}, 2, 80),
            EventLogEntry(days[1], "s1", "other", {"at": 1, "text": "更新"}, 1, None),
            EventLogEntry(days[0], "s0", CONTEXT, {"at": 0, "text": "更新"}, 0, 900),
        ]
        assert event_log.since(connection, "") == expected
        assert event_log.since(connection, days[1]) == expected[:2]
        assert event_log.since(connection, "", CONTEXT) == expected[2:]
        assert event_log.since(connection, "", limit=1) == expected[:1]


def test_old_entries_are_removed_and_damaged_data_is_empty() -> None:
    with graphs.graph() as graph:
        connection = graph.connection
        event_log.add(connection, CONTEXT, "s", {})
        old = clock.iso(clock.now_ms() - 100 * DAY_MS)
        event_log.put(connection, EventLogEntry(old, "s", CONTEXT, {}, None, None))
        event_log.forget_old(connection)
        connection.execute("UPDATE event_log SET data = '{'")
        assert [each.data for each in event_log.since(connection, "")] == [{}]
