"""The ledger: tokens are reserved before each request, whatever happens afterwards."""

import multiprocessing
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.errors import BudgetExceeded, CtxError
from ctx.llm import ledger
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.ledger_totals import (
    GROUPINGS,
    Account,
    EstimateSample,
    UnsettledCalls,
    estimate_samples,
    lost_calls,
    open_calls,
    totals,
)
from ctx.llm.prices import prices
from ctx.llm.protocol import Usage
from ctx.redaction.needle import word
from tests import effort

TO = ModelTarget("openai", "http://127.0.0.1:1/", "small")
FREE = prices([])
NOON = 1_794_744_000_000
"""2026-11-15, 12:00 UTC."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store" / "ledger.db")


@contextmanager
def metering(path: str, day: int, session: int | None = None) -> Iterator[ledger.CappedMeter]:
    with Ledger(path) as opened:
        yield opened.meter(Purpose("synthesis", "s1", "shop"), TO, Caps(day, session), FREE)


def counted(path: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT coalesce(sum(counted), 0) FROM calls").fetchone()[0])


def test_tokens_are_reserved_and_the_rest_is_returned(path: str) -> None:
    with metering(path, 1_000) as meter:
        first = meter.reserve(600, 100)
        with pytest.raises(BudgetExceeded) as refused:
            meter.reserve(401, 100)
        assert refused.value.message == (
            "The model may use 1,000 tokens a day: 600 are used or reserved today, and this"
            " request may take 401."
        )
        assert refused.value.hint == (
            "`ctx cost` shows the usage; `ctx config set llm.daily_token_cap N` allows more."
        )
        first.settle(Usage(90, 10), "small-2")
        meter.reserve(900, 100).release()
        meter.reserve(900, 100)
        with pytest.raises(BudgetExceeded):
            meter.reserve(1, 1)
    assert oct(os.stat(path).st_mode & 0o777) == "0o600"


def test_a_call_is_settled_once(path: str) -> None:
    with metering(path, 1_000) as meter:
        call = meter.reserve(500, 10)
        call.settle(Usage(20, 20), "")
        call.release()
        call.settle(Usage(1, 1), "")
        assert counted(path) == 40
        call = meter.reserve(500, 10)
        call.release()
        call.settle(Usage(20, 20), "")
        assert counted(path) == 40


def test_a_session_has_a_separate_cap_for_synthesis(path: str) -> None:
    with Ledger(path) as opened:
        caps = Caps(10_000, 1_000)
        told = opened.meter(Purpose("synthesis", "s1"), TO, caps, FREE)
        told.reserve(700, 1)
        with pytest.raises(BudgetExceeded, match="1,000 tokens a session: 700 are used"):
            told.reserve(301, 1)
        # What is asked otherwise in a session is not what it takes to tell it.
        opened.meter(Purpose("llm", "s1"), TO, Caps(10_000), FREE).reserve(2_000, 1)
        opened.meter(Purpose("synthesis", "s2"), TO, caps, FREE).reserve(1_000, 1)
        told.reserve(300, 1)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(-1, 5),
        Usage(5, -1),
        Usage(5, 5, -1),
        Usage(10**12, 5),
        Usage(5, 10**30),
        Usage("5", 5),  # type: ignore[arg-type]
        Usage(5, None),  # type: ignore[arg-type]
        Usage(True, 5),
        Usage(0.5, 5),  # type: ignore[arg-type]
        Usage(5, float("nan")),  # type: ignore[arg-type]
    ],
)
def test_impossible_usage_is_ignored(path: str, usage: Usage) -> None:
    with metering(path, 1_000) as meter:
        meter.reserve(300, 100).settle(usage, "small")
    assert counted(path) == 300


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        # As it says, also where it did more than it was asked for.
        (Usage(80, 20), 100),
        (Usage(80, 2_000), 2_080),
        # A request that we take for 100 tokens has not 3.
        (Usage(3, 0), 25),
        (Usage(0, 0), 25),
    ],
)
def test_reported_usage_counts_if_it_is_plausible(path: str, usage: Usage, counts: int) -> None:
    with metering(path, 1_000) as meter:
        meter.reserve(300, 100).settle(usage, "small")
        assert counted(path) == counts


def test_usage_above_the_reservation_counts_against_the_cap(path: str) -> None:
    with metering(path, 1_000) as meter:
        meter.reserve(300, 100).settle(Usage(80, 5_000), "small")
        with pytest.raises(BudgetExceeded, match="5,080 are used"):
            meter.reserve(1, 1)


def test_text_beyond_the_limit_counts_until_usage_is_reported(path: str) -> None:
    with metering(path, 1_000) as meter:
        call = meter.reserve(100, 10)
        call.exceed(2_000)
        assert counted(path) == 2_100
        with pytest.raises(BudgetExceeded):
            meter.reserve(1, 1)
        call.settle(Usage(10, 20), "small")
        call.exceed(2_000)
        assert counted(path) == 30


def test_a_call_belongs_to_the_day_of_its_reservation(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = NOON + 12 * 3_600_000
    with metering(path, 1_000) as meter:
        monkeypatch.setattr(clock, "now_ms", lambda: midnight - 1)
        call = meter.reserve(900, 100)
        monkeypatch.setattr(clock, "now_ms", lambda: midnight)
        # Yesterday is over.
        meter.reserve(1_000, 100)
        call.settle(Usage(300, 100), "small")
        # The clock goes back: what is left of that day is left, and no more.
        monkeypatch.setattr(clock, "now_ms", lambda: midnight - 1)
        with pytest.raises(BudgetExceeded):
            meter.reserve(601, 100)
        meter.reserve(600, 100)
    with Ledger(path) as opened:
        assert [opened.counted_on(day) for day in ("2026-11-15", "2026-11-16")] == [1_000, 1_000]


ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["reserve", "settle", "release", "forget"]),
        st.integers(0, 400),
        st.integers(0, 400),
    ),
    max_size=40,
)


@settings(max_examples=effort.times(20), deadline=None)
@given(actions=ACTIONS, cap=st.integers(0, 1_500))
def test_any_order_of_calls_stays_within_the_cap(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any], cap: int
) -> None:
    """Several ledgers on one file, compared with a small model."""
    path = str(tmp_path_factory.mktemp("ledger") / "ledger.db")
    counts: list[int] = []
    under_way: list[tuple[int, int, Any]] = []
    with Ledger(path) as first, Ledger(path) as second:
        meters = [
            each.meter(Purpose("llm"), TO, Caps(cap), FREE)
            for each in (first, second, first, second)
        ]
        for which, action, a, b in actions:
            if action == "reserve":
                if sum(counts) + a > cap:
                    with pytest.raises(BudgetExceeded):
                        meters[which].reserve(a, 0)
                else:
                    under_way.append((len(counts), a, meters[which].reserve(a, 0)))
                    counts.append(a)
            elif under_way:
                row, reserved, call = under_way.pop(which % len(under_way))
                if action == "settle":
                    used = min(b, reserved)
                    call.settle(Usage(used // 2, used - used // 2), "m")
                    counts[row] = used
                elif action == "release":
                    call.release()
                    counts[row] = 0
            assert counted(path) == sum(counts) <= cap


def _reserve_all(path: str, cap: int, results: Any) -> None:
    allowed = 0
    with Ledger(path) as opened:
        meter = opened.meter(Purpose("llm"), TO, Caps(cap), FREE)
        for _ in range(20):
            try:
                meter.reserve(10, 1)
                allowed += 1
            except BudgetExceeded:
                pass
    results.put(allowed)


@pytest.mark.slow
def test_processes_share_one_cap(path: str) -> None:
    """All of them create the ledger at the same time."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    crew = [context.Process(target=_reserve_all, args=(path, 255, results)) for _ in range(3)]
    for each in crew:
        each.start()
    allowed = sum(results.get(timeout=300) for _ in crew)
    for each in crew:
        each.join(60)
    assert (allowed, counted(path)) == (25, 250)


# What is wrong with the file


def _as_a_folder(path: str) -> None:
    os.makedirs(path)


def _as_nonsense(path: str) -> None:
    Path(path).write_bytes(b"no database " * 400)


def _damaged(path: str) -> None:
    with metering(path, 1_000) as meter:
        meter.reserve(1, 1)
    data = bytearray(Path(path).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    Path(path).write_bytes(data)


def _newer(path: str) -> None:
    Ledger(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 'later')")


def _without_its_table(path: str) -> None:
    Ledger(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE calls")


def _emptied(path: str) -> None:
    Path(path).touch()
    os.utime(path, (0, 0))


def _foreign(path: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("CREATE TABLE calls (id)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_as_a_folder, "ledger.db cannot be used: "),
        (_as_nonsense, "ledger.db is not a database, or its beginning is damaged."),
        (_damaged, "ledger.db is damaged: "),
        (_without_its_table, "ledger.db is damaged: no such table: calls."),
        (_emptied, "ledger.db is empty."),
        (_newer, "ledger.db has version 99; this ctx reads up to version 1."),
        (_foreign, "ledger.db is a database of another program; it was not touched."),
    ],
)
def test_with_a_damaged_ledger_no_request_is_allowed(path: str, make: Any, message: str) -> None:
    os.makedirs(os.path.dirname(path))
    make(path)
    with pytest.raises(CtxError) as failed, metering(path, 1_000) as meter:
        meter.reserve(10, 1)
    assert message in failed.value.message
    assert failed.value.hint
    assert "ctx store" not in failed.value.hint
    trouble = ledger.problem(path)
    assert trouble is not None
    assert message in trouble.message or make is _damaged
    assert trouble.hint == failed.value.hint


def test_an_answer_is_kept_if_the_ledger_cannot_be_written(path: str) -> None:
    with metering(path, 1_000) as meter:
        call = meter.reserve(300, 100)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("DROP TABLE calls")
            call.settle(Usage(80, 20), "small")
            call.release()
        with pytest.raises(CtxError, match="without it, ctx sends no requests"):
            meter.reserve(1, 1)


def test_nobody_writes_between_the_sum_and_the_reservation(path: str) -> None:
    with (
        Ledger(path) as opened,
        closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other,
        opened.writing(),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("DELETE FROM calls")


def test_an_empty_file_is_a_new_ledger(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).touch()
    with ledger.reading(path) as connection:
        assert connection is None
    assert ledger.problem(path) is None
    with metering(path, 10) as meter:
        meter.reserve(10, 1)
    assert counted(path) == 10


def test_reading_creates_no_file(path: str) -> None:
    with ledger.reading(path) as connection:
        assert connection is None
    assert ledger.problem(path) is None
    assert not os.path.exists(os.path.dirname(path))


# What is in it


def test_calls_are_added_up(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOON)
    there = ModelTarget("anthropic", "https://api.anthropic.com", "large")
    with Ledger(path) as opened:
        here = opened.meter(Purpose("synthesis", "s1", "shop"), TO, Caps(10_000), FREE)
        here.reserve(500, 90).settle(Usage(80, 20, 30), "small")
        here.reserve(500, 50).settle(Usage(60, 10), "small")
        here.reserve(100, 10).release()
        priced = opened.meter(Purpose("llm"), there, Caps(10_000), prices(["large=1/5"]))
        priced.reserve(700, 300).settle(Usage(400, 100), "large-1")
        monkeypatch.setattr(clock, "now_ms", lambda: NOON + 86_400_000)
        priced.reserve(700, 300)
        connection = opened.connection
        assert totals(connection, "2026-11-15T12:00:00Z", "model") == [
            Account("small", *TO, 3, 2, 1, 0, 140, 30, 30, 170, 0, 2, 140, 30),
            Account(
                *("large-1", "anthropic", there.place, "large-1", 1, 1, 0, 0),
                *(400, 100, 0, 500, 900, 0, 0, 0),
            ),
            Account("large", *there, 1, 0, 0, 1, 0, 0, 0, 700, 0, 0, 0, 0),
        ]
        found = {by: [each.what for each in totals(connection, "", by)] for by in GROUPINGS}
        assert found == {
            "model": ["small", "large-1", "large"],
            "day": ["2026-11-15", "2026-11-15", "2026-11-16"],
            "session": ["s1", "", ""],
            "project": ["shop", "", ""],
            "purpose": ["synthesis", "llm", "llm"],
        }
        assert totals(connection, "2026-11-17", "model") == []
        assert open_calls(connection, "2026-11-15") == UnsettledCalls(1, 700)
        assert open_calls(connection, "2026-11-17") == UnsettledCalls(0, 0)
        assert lost_calls(connection, "2026-11-15", "2026-11-17") == UnsettledCalls(0, 0)
        assert lost_calls(connection, "2026-11-16", "2026-11-17") == UnsettledCalls(1, 700)
        assert estimate_samples(connection, "") == [
            EstimateSample("small", 90, 80),
            EstimateSample("small", 50, 60),
            EstimateSample("large-1", 300, 400),
        ]


def test_any_model_name_is_accepted(path: str) -> None:
    with metering(path, 1_000) as meter:
        for name in ("x" * 5_000, "\ud800 \x1b[31m", ""):
            meter.reserve(100, 10).settle(Usage(10, 5, cost_micros=-3), name)
        found = meter._ledger.connection.execute("SELECT model, cost_micros FROM calls").fetchall()
    assert found == [("x" * 200, None), ("? \x1b[31m", None), ("small", None)]


def test_scrubbing_a_word_keeps_the_usage(path: str) -> None:
    with metering(path, 1_000) as meter:
        meter.reserve(300, 100).settle(Usage(80, 20), "small")
    needle = word("shop")
    assert ledger.count_matching(path, needle) == 1
    ledger.scrub(path, needle)
    assert ledger.count_matching(path, needle) == 0
    assert b"shop" not in Path(path).read_bytes()
    with ledger.reading(path) as connection:
        assert connection is not None
        (found,) = totals(connection, "", "project")
    assert (found.what, found.counted) == (needle.name("shop"), 100)


def test_with_a_full_disk_no_request_is_allowed(path: str) -> None:
    """A running request is counted in full, and its answer is kept."""
    with metering(path, 10**6) as meter:
        call = meter.reserve(300, 100)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        # As little as its log has already.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        try:
            call.settle(Usage(80, 20), "small")
            with pytest.raises(CtxError, match="without it, ctx sends no requests") as failed:
                meter.reserve(300, 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert failed.value.hint
        assert counted(path) == 300
        meter.reserve(300, 100)
