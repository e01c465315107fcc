"""The cost of requests to models: sums of the calls in the ledger."""

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_tests
from hypothesis import strategies as st

from ctx import clock
from ctx.cli.settings import Settings
from ctx.config.resolve import Config, load
from ctx.layout import UserStore
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.ledger_totals import GROUPINGS, UnsettledCalls
from ctx.llm.prices import prices
from ctx.llm.protocol import Usage
from ctx.operations.cost import (
    Calibration,
    CostReport,
    ModelEstimate,
    Spending,
    TodaySpending,
    calibration,
    cost,
)
from tests import effort

NOON = 1_794_744_000_000
"""2026-11-15, 12:00 UTC."""
HOUR = 3_600_000
HERE = ModelTarget("llama_cpp", "http://127.0.0.1:8080", "small")
THERE = ModelTarget("anthropic", "https://api.anthropic.com", "large")
PROGRAM = ModelTarget("claude_cli", "claude", "default")


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    at(NOON, monkeypatch)


def at(ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: ms)


@pytest.fixture
def store() -> UserStore:
    return Settings.from_environment().user_store


def settings(*overrides: str) -> Config:
    return load("", None, {}, overrides)


def test_without_calls_the_cost_is_zero(store: UserStore) -> None:
    nothing = Spending("", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    today = TodaySpending(0, 200_000, UnsettledCalls(0, 0), UnsettledCalls(0, 0))
    assert cost(store, settings(), "30d", "model") == CostReport(
        "2026-10-16T12:00:00Z", "model", (), nothing, today, "off", ever=False
    )
    assert calibration(store, "30d") == Calibration("2026-10-16T12:00:00Z", ())


def test_calls_tokens_and_costs_are_summed(
    store: UserStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Purpose("synthesis", "s1", "shop")
    with Ledger(store.ledger) as ledger:
        at(NOON - 26 * HOUR, monkeypatch)
        here = ledger.meter(told, HERE, Caps(999_999), prices([]))
        here.reserve(900, 90).settle(Usage(80, 20, 30), "small")
        at(NOON - 2 * HOUR, monkeypatch)
        there = ledger.meter(Purpose("llm"), THERE, Caps(999_999), prices([]))
        there.reserve(900, 200).settle(Usage(200_000, 100_000), "large-1")
        there.reserve(300, 10)
        at(NOON, monkeypatch)
        there.reserve(500, 10).release()
        program = ledger.meter(told, PROGRAM, Caps(999_999), prices([]))
        program.reserve(900, 9).settle(Usage(700, 50, cost_micros=1_250_000), "haiku")
        program.reserve(400, 10)
        today = cost(store, settings(), "30d", "model").today
    assert today == TodaySpending(301_450, 200_000, UnsettledCalls(1, 400), UnsettledCalls(1, 300))
    small = Spending("small", 1, 1, 0, 0, 80, 20, 30, 100, 0, 0)
    large = Spending("large-1", 1, 1, 0, 0, 200_000, 100_000, 0, 300_000, 0, 1)
    asked = Spending("large", 2, 0, 1, 1, 0, 0, 0, 300, 0, 1)
    haiku = Spending("haiku", 1, 1, 0, 0, 700, 50, 0, 750, 1_250_000, 0)
    lost = Spending("default", 1, 0, 0, 1, 0, 0, 0, 400, 0, 1)
    found = cost(store, settings("llm.backend=claude_cli"), "30d", "model")
    assert found == CostReport(
        since="2026-10-16T12:00:00Z",
        by="model",
        spent=(large, haiku, lost, asked, small),
        total=Spending("", 6, 3, 1, 2, 200_780, 100_070, 30, 301_550, 1_250_000, 3),
        today=TodaySpending(301_450, 200_000, UnsettledCalls(0, 0), UnsettledCalls(2, 700)),
        backend="claude_cli",
        ever=True,
    )
    # Of what nobody wrote down, today's prices: 0.2 M at 1 and 0.1 M at 5 dollars.
    priced = cost(store, settings('llm.prices=["large=1/5"]'), "30d", "model")
    assert priced.spent[0] == large._replace(cost_micros=700_000, unpriced=0)
    assert (priced.total.cost_micros, priced.total.unpriced) == (1_950_000, 2)
    whats = {
        by: [each.what for each in cost(store, settings(), "30d", by).spent] for by in GROUPINGS
    }
    assert whats == {
        "model": ["large-1", "haiku", "default", "large", "small"],
        "day": ["2026-11-15", "2026-11-14"],
        "session": ["", "s1"],
        "project": ["", "shop"],
        "purpose": ["llm", "synthesis"],
    }
    assert cost(store, settings(), "1h", "model").spent == (
        haiku,
        lost,
        Spending("large", 1, 0, 1, 0, 0, 0, 0, 0, 0, 0),
    )


def test_calibration_compares_estimates_with_usage(store: UserStore) -> None:
    with Ledger(store.ledger) as ledger:
        meter = ledger.meter(Purpose("llm"), HERE, Caps(10**6), prices([]))
        for reported in (50, 60, 70, 80, 90, 100, 100, 100, 110, 150):
            meter.reserve(1_000, 100).settle(Usage(reported, 1), "small")
        meter.reserve(1_000, 100)
        meter.reserve(1_000, 10).settle(Usage(20, 1), "other")
    assert calibration(store, "1d").models == (
        ModelEstimate("small", 10, 1_000, 910, 0.95, 1.1, 2),
        ModelEstimate("other", 1, 10, 20, 2.0, 2.0, 1),
    )


@settings_of_tests(max_examples=effort.times(15), deadline=None)
@given(
    calls=st.lists(
        st.tuples(st.integers(0, 9_999), st.integers(0, 9_999), st.sampled_from(["a", "b", ""])),
        max_size=12,
    )
)
def test_every_grouping_gives_the_same_sum(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int, str]]
) -> None:
    store = UserStore(str(tmp_path_factory.mktemp("home")))
    with Ledger(store.ledger) as ledger:
        for read, said, word in calls:
            meter = ledger.meter(Purpose("llm", word, word), THERE, Caps(10**9), prices([]))
            meter.reserve(20_000, 0).settle(Usage(read, said), word)
    known = settings('llm.prices=["*=1/2"]')
    for by in GROUPINGS:
        found = cost(store, known, "1d", by)
        assert found.total.counted == sum(read + said for read, said, _ in calls)
        assert found.total.counted == sum(each.counted for each in found.spent)
        assert found.total.cost_micros == sum(each.cost_micros for each in found.spent)
        assert found.total.cost_micros == sum(read + 2 * said for read, said, _ in calls)
