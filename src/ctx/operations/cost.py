"""What models were asked, and what that cost."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from ctx import clock
from ctx.config.resolve import Config
from ctx.layout import UserStore
from ctx.llm import ledger, ledger_totals
from ctx.llm.ledger_totals import Account, EstimateSample, GroupBy, UnsettledCalls
from ctx.llm.prices import Prices, prices
from ctx.llm.protocol import Usage
from ctx.llm.server_url import is_on_this_machine
from ctx.memory.query import time_filters

_LOST_MS = 3_600_000
"""Requests older than this are lost: no answer takes longer."""


class Spending(NamedTuple):
    """What the calls of one kind came to."""

    what: str
    """The model, day, session, project or purpose; empty for calls that belong to none."""
    calls: int
    answered: int
    refused: int
    """Not carried out: they cost nothing."""
    unsettled: int
    """Usage was not reported: they count in full."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Of the input, what a server did not have to read again."""
    counted: int
    """What counts of them for the caps."""
    cost_micros: int
    """Millionths of a dollar, as far as it is known."""
    unpriced: int
    """Calls without a known cost: the usage was not reported, or the price is unknown."""


class TodaySpending(NamedTuple):
    """What counts of this day (UTC), and what may."""

    counted: int
    cap: int
    under_way: UnsettledCalls
    lost: UnsettledCalls
    """Calls that failed, broke off or did not say what they used."""


class CostReport(NamedTuple):
    """The answer of `ctx cost`."""

    since: str
    by: str
    spent: tuple[Spending, ...]
    total: Spending
    today: TodaySpending
    backend: str
    """What `llm.backend` is."""
    ever: bool
    """Whether any model was ever asked."""


class ModelEstimate(NamedTuple):
    """How our own estimate of tokens compares with what a server says."""

    model: str
    calls: int
    estimated: int
    reported: int
    median: float
    """Of what a server says, for each token that we estimate; above 1, we are too low."""
    p90: float
    below: int
    """How many calls we took for smaller than they were."""


class Calibration(NamedTuple):
    """The answer of `ctx cost --calibrate`."""

    since: str
    models: tuple[ModelEstimate, ...]


def cost(user_store: UserStore, config: Config, since: str, by: GroupBy) -> CostReport:
    """What was spent since a moment (`30d`, `2026-11-15`), by model, day, session, …"""
    now = clock.now_ms()
    after = clock.iso(time_filters.moment(since, now))
    known = prices(config.texts("llm.prices"))
    cap, backend = config.integer("llm.daily_token_cap"), config.choice("llm.backend")
    with ledger.reading(user_store.ledger) as connection:
        if connection is None:
            today = TodaySpending(0, cap, UnsettledCalls(0, 0), UnsettledCalls(0, 0))
            return CostReport(after, by, (), _spending("", (), known), today, backend, ever=False)
        found = ledger_totals.totals(connection, after, by)
        day, hour_ago = clock.iso(now)[:10], clock.iso(now - _LOST_MS)
        today = TodaySpending(
            ledger.counted_on(connection, day),
            cap,
            ledger_totals.open_calls(connection, max(day, hour_ago)),
            ledger_totals.lost_calls(connection, day, max(day, hour_ago)),
        )
        ever = bool(connection.execute("SELECT 1 FROM calls LIMIT 1").fetchone())
    groups: dict[str, list[Account]] = {}
    for each in found:
        groups.setdefault(each.what, []).append(each)
    spent = [_spending(what, group, known) for what, group in groups.items()]
    if by == "day":
        spent.sort(key=lambda each: each.what, reverse=True)
    else:
        spent.sort(key=lambda each: each.counted, reverse=True)
    return CostReport(after, by, tuple(spent), _spending("", found, known), today, backend, ever)


def _spending(what: str, group: Iterable[Account], known: Prices) -> Spending:
    group = tuple(group)
    money = [_money(each, known) for each in group]
    return Spending(
        what,
        calls=sum(each.calls for each in group),
        answered=sum(each.answered for each in group),
        refused=sum(each.refused for each in group),
        unsettled=sum(each.open for each in group),
        input_tokens=sum(each.input_tokens for each in group),
        output_tokens=sum(each.output_tokens for each in group),
        cached_tokens=sum(each.cached_tokens for each in group),
        counted=sum(each.counted for each in group),
        cost_micros=sum(micros for micros, _ in money),
        unpriced=sum(unknown for _, unknown in money),
    )


def _money(account: Account, known: Prices) -> tuple[int, int]:
    """Millionths of a dollar, and the number of calls with unknown cost.

    Recorded costs count; for the rest, the current prices. A model on this machine is free.
    """
    usage = Usage(account.unpriced_input, account.unpriced_output)
    priced = known.cost_micros(account.model, usage)
    # A program has no address, and asks a service.
    if is_on_this_machine(account.place):
        return account.cost_micros + (priced or 0), 0
    unknown = account.open + (account.unpriced if priced is None else 0)
    return account.cost_micros + (priced or 0), unknown


def calibration(user_store: UserStore, since: str) -> Calibration:
    after = clock.iso(time_filters.moment(since, clock.now_ms()))
    by_model: dict[str, list[EstimateSample]] = {}
    with ledger.reading(user_store.ledger) as connection:
        for each in ledger_totals.estimate_samples(connection, after) if connection else ():
            by_model.setdefault(each.model, []).append(each)
    return Calibration(after, tuple(_estimate(model, all_) for model, all_ in by_model.items()))


def _estimate(model: str, calls: list[EstimateSample]) -> ModelEstimate:
    ratios = sorted(each.reported / max(1, each.estimate) for each in calls)
    return ModelEstimate(
        model,
        calls=len(calls),
        estimated=sum(each.estimate for each in calls),
        reported=sum(each.reported for each in calls),
        median=round(median(ratios), 3),
        p90=round(ratios[(len(ratios) * 9 - 1) // 10], 3),
        below=sum(each.reported > each.estimate for each in calls),
    )
