"""`ctx cost`"""

import argparse

from ctx.cli.options import flag
from ctx.cli.output import MOST_ROWS, Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.config.resolve import load
from ctx.llm.ledger_totals import GROUPINGS
from ctx.operations.cost import (
    Calibration,
    CostReport,
    ModelEstimate,
    Spending,
    TodaySpending,
    calibration,
    cost,
)

EXAMPLES = """
ctx cost                        requests of the last 30 days, by model
ctx cost --since 7d --by day    day by day
ctx cost --by session           by session
ctx cost --calibrate            estimated and reported token counts
"""

_SINCE = "30d"
_ABOUT = 1.1
"""A factor up to which requests may exceed the estimate: a server adds some tokens to each."""
_FEW = 10
"""Fewer calls than this are not conclusive."""
_UNKNOWN_GROUPS = {"session": "(no session)", "project": "(no project)", "model": "(not named)"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        metavar="TIME",
        default=_SINCE,
        help=f"only calls since: 1h, 7d, 2w, 2026-01-20 (default: {_SINCE})",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--by", choices=GROUPINGS, default="model", help="group by (default: model)")
    flag(what, "--calibrate", "compare estimated with reported tokens")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    store = settings.user_store
    if options.calibrate:
        output.show(calibration(store, options.since), render_calibration)
        return
    # Only the user's own settings name models and their limits.
    config = load(store.config_file, None, settings.environment, settings.overrides)
    output.show(cost(store, config, options.since, options.by), render)


def render(report: CostReport) -> list[Block]:
    if not report.ever:
        return [Line("No requests yet."), *_backend_hint(report.backend)]
    since = report.since[:10]
    if not report.spent:
        return [Line(f"No requests since {since}."), Line(""), *_today_table(report.today)]
    rows = [_row(each, report.by) for each in report.spent[:MOST_ROWS]]
    if (more := len(report.spent) - MOST_ROWS) > 0:
        rows.append((f"… and {more:,} more", *[""] * 6))
    if len(report.spent) > 1:
        rows.append(_row(report.total._replace(what="all"), report.by))
    headings = (report.by, "calls", "in", "out", "cached", "counted", "money")
    return [
        Table(headings, rows, ("", *["number"] * 6)),
        Line(""),
        *_today_table(report.today),
        *(Line(each, "dim") for each in _remarks(report.total, report.today.under_way.calls)),
    ]


def _row(spent: Spending, by: str) -> tuple[str, ...]:
    numbers = (
        spent.calls,
        spent.input_tokens,
        spent.output_tokens,
        spent.cached_tokens,
        spent.counted,
    )
    what = spent.what or _UNKNOWN_GROUPS.get(by, "")
    return what, *(f"{number:,}" for number in numbers), _money(spent)


def _money(spent: Spending) -> str:
    if not spent.cost_micros:
        return "not known" if spent.unpriced else "none"
    dollars = spent.cost_micros / 1_000_000
    # A fraction of a cent is not nothing.
    amount = f"${dollars:,.{2 if dollars >= 0.01 else 6}f}"
    return f"{amount} and more" if spent.unpriced else amount


def _today_table(today: TodaySpending) -> list[Block]:
    sentence = f"Today (UTC): {today.counted:,} of {today.cap:,} tokens used"
    parts = [
        f"{what} {count(calls.calls, 'call')} ({calls.tokens:,} tokens)"
        for what, calls in (("reserved for", today.under_way), ("lost in", today.lost))
        if calls.calls
    ]
    return [Line(f"{sentence}{''.join(f'; {part}' for part in parts)}.")]


def _remarks(total: Spending, under_way: int) -> list[str]:
    remarks = []
    if (lost := total.unsettled - under_way) > 0:
        it = "it" if lost == 1 else "they"
        remarks.append(
            f"{count(lost, 'call')} failed or reported no usage: counted with"
            f" the most tokens {it} could use."
        )
    if total.unpriced > total.unsettled:
        remarks.append(
            "To set prices in dollars per million tokens, in and out:"
            " `ctx config set llm.prices '[\"NAME=1.00/5.00\"]'`"
        )
    return remarks


def _backend_hint(backend: str) -> list[Block]:
    if backend != "off":
        return [Line('To ask a model: `ctx llm --query "…"`. `ctx doctor` shows which.', "dim")]
    return [
        Line("To configure a model: `ctx config set llm.backend llama_cpp`. Others: `openai`,"),
        Line("`anthropic`, `claude_cli`. See `ctx config explain llm.backend`."),
    ]


def render_calibration(calibration: Calibration) -> list[Block]:
    if not calibration.models:
        return [Line(f"No server has reported token counts since {calibration.since[:10]}.")]
    rows = [
        (
            each.model or _UNKNOWN_GROUPS["model"],
            f"{each.calls:,}",
            f"{each.estimated:,}",
            f"{each.reported:,}",
            f"{each.median:.2f}",
            f"{each.p90:.2f}",
            f"{each.below:,}",
        )
        for each in calibration.models
    ]
    headings = ("model", "calls", "estimated", "reported", "median", "p90", "too low")
    table = Table(headings, rows, ("", *["number"] * 6))
    return [table, Line(""), *(Line(_estimate_verdict(each)) for each in calibration.models)]


def _estimate_verdict(estimate: ModelEstimate) -> str:
    name = estimate.model or "The model"
    if not estimate.below:
        return f"{name}: the estimate is on the safe side: no request was larger."
    share = estimate.below / estimate.calls
    if estimate.median <= 1:
        return f"{name}: the estimate is mostly on the safe side; {share:.0%} were larger."
    if estimate.median <= _ABOUT:
        return (
            f"{name}: the estimate is about right: requests are mostly {estimate.median:.2f} of it."
        )
    if estimate.calls < _FEW:
        return (
            f"{name}: requests were mostly {estimate.median:.2f} times as large as the"
            f" estimate, but {count(estimate.calls, 'call')} are too few to be sure."
        )
    return (
        f"{name}: the estimate is too low: requests are mostly {estimate.median:.2f} times as"
        " large. Lower the budgets of packs accordingly. Caps still hold: they do not use"
        " the estimate."
    )
