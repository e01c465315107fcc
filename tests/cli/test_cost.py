"""`ctx cost`"""

from pathlib import Path

import pytest

from ctx import clock
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import prices
from ctx.llm.protocol import Usage
from tests.conftest import Ctx

NOON = 1_794_744_000_000
HERE = ModelTarget("llama_cpp", "http://127.0.0.1:8080", "small")
THERE = ModelTarget("anthropic", "https://api.anthropic.com", "large")


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOON)


@pytest.fixture
def used(surroundings: Path) -> Path:
    path = surroundings / ".ctx" / "ledger.db"
    told = Purpose("synthesis", "5dd6c1f0", "shop")
    with Ledger(str(path)) as ledger:
        here = ledger.meter(told, HERE, Caps(10**6), prices([]))
        here.reserve(5_000, 1_000).settle(Usage(900, 120, 400), "small")
        here.reserve(5_000, 1_000).settle(Usage(1_100, 80), "small")
        there = ledger.meter(Purpose("llm"), THERE, Caps(10**6), prices([]))
        there.reserve(9_000, 3_000).settle(Usage(2_400, 600), "large")
        there.reserve(2_000, 500)
    return path


def test_without_any_request(ctx: Ctx, surroundings: Path) -> None:
    assert ctx("cost").out.startswith(
        "No requests yet.\nTo configure a model: `ctx config set llm.backend llama_cpp`. "
    )
    assert ctx("cost", "--set", "llm.backend=auto").out == (
        'No requests yet.\nTo ask a model: `ctx llm --query "…"`. `ctx doctor` shows which.\n'
    )
    assert ctx("cost", "--calibrate").out == (
        "No server has reported token counts since 2026-10-16.\n"
    )
    assert not (surroundings / ".ctx").exists()


def test_by_model(ctx: Ctx, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        ctx("cost").out
        == """\
  large  2  2,400  600  0    5,000  not known
  small  2  2,000  200  400  2,200  none
  all    4  4,400  800  400  7,200  not known

Today (UTC): 7,200 of 200,000 tokens used; lost in 1 call (2,000 tokens).
1 call failed or reported no usage: counted with the most tokens it could use.
To set prices in dollars per million tokens, in and out: \
`ctx config set llm.prices '["NAME=1.00/5.00"]'`
"""
    )
    assert (
        ctx("cost", "--calibrate").out
        == """\
  small  2  2,000  2,000  1.00  1.10  1
  large  1  3,000  2,400  0.80  0.80  0

small: the estimate is mostly on the safe side; 50% were larger.
large: the estimate is on the safe side: no request was larger.
"""
    )
    assert ctx("config", "set", "llm.prices", '["large=100/500"]').code == 0
    told = ctx("cost", "--by", "purpose").out.splitlines()
    assert told[:3] == [
        "  llm        2  2,400  600  0    5,000  $0.54 and more",
        "  synthesis  2  2,000  200  400  2,200  none",
        "  all        4  4,400  800  400  7,200  $0.54 and more",
    ]
    assert len(told) == 6
    monkeypatch.setattr(clock, "now_ms", lambda: NOON + 90 * 86_400_000)
    assert ctx("cost", "--since", "2d").out == (
        "No requests since 2027-02-11.\n\nToday (UTC): 0 of 200,000 tokens used.\n"
    )


def test_during_a_request(ctx: Ctx, used: Path) -> None:
    with Ledger(str(used)) as ledger:
        ledger.meter(Purpose("llm"), THERE, Caps(10**6), prices([])).reserve(3_000, 500)
        during = ctx("cost").out.splitlines()
    today = "Today (UTC): 10,200 of 200,000 tokens used; "
    failed = "failed or reported no usage: counted with the most tokens"
    assert during[4] == (
        f"{today}reserved for 1 call (3,000 tokens); lost in 1 call (2,000 tokens)."
    )
    assert during[5].startswith(f"1 call {failed} it could use.")
    # Nobody has said what became of it, and nobody waits for it.
    over = ctx("cost").out.splitlines()
    assert over[4] == f"{today}lost in 2 calls (5,000 tokens)."
    assert over[5].startswith(f"2 calls {failed} they could use.")


def test_as_json(ctx: Ctx, used: Path) -> None:
    found = ctx("cost", "--by", "session", "--since", "2026-11-15", "--format", "json").json
    nobody = {
        "what": "",
        "calls": 2,
        "answered": 1,
        "refused": 0,
        "unsettled": 1,
        "input_tokens": 2_400,
        "output_tokens": 600,
        "cached_tokens": 0,
        "counted": 5_000,
        "cost_micros": 0,
        "unpriced": 2,
    }
    assert found["spent"][0] == nobody
    assert [(each["what"], each["counted"]) for each in found["spent"]] == [
        ("", 5_000),
        ("5dd6c1f0", 2_200),
    ]
    assert (found["total"]["calls"], found["total"]["counted"]) == (4, 7_200)
    del found["spent"], found["total"]
    assert found == {
        "since": "2026-11-15T00:00:00Z",
        "by": "session",
        "today": {
            "counted": 7_200,
            "cap": 200_000,
            "under_way": {"calls": 0, "tokens": 0},
            "lost": {"calls": 1, "tokens": 2_000},
        },
        "backend": "off",
        "ever": True,
    }


def test_an_estimate_that_is_too_low(ctx: Ctx, surroundings: Path) -> None:
    with Ledger(str(surroundings / ".ctx" / "ledger.db")) as ledger:
        meter = ledger.meter(Purpose("llm"), HERE, Caps(10**6), prices([]))
        said = []
        for _ in range(10):
            meter.reserve(1_000, 100).settle(Usage(127, 1), "small")
            said.append(ctx("cost", "--calibrate").out.splitlines()[-1])
    assert said[1] == (
        "small: requests were mostly 1.27 times as large as the estimate, but 2 calls"
        " are too few to be sure."
    )
    assert said[9] == (
        "small: the estimate is too low: requests are mostly 1.27 times as large. Lower the"
        " budgets of packs accordingly. Caps still hold: they do not use the estimate."
    )


def test_many_rows_are_left_out(ctx: Ctx, surroundings: Path) -> None:
    with Ledger(str(surroundings / ".ctx" / "ledger.db")) as ledger:
        for number in range(23):
            to = HERE._replace(model=f"model-{number:02}")
            meter = ledger.meter(Purpose("llm"), to, Caps(10**6), prices([]))
            meter.reserve(1_000 - number, 1)
    told = ctx("cost").out.splitlines()
    assert [line[2:].split("  ")[0] for line in told[19:22]] == ["model-19", "… and 3 more", "all"]


def test_a_project_that_is_not_to_be_named_any_more(ctx: Ctx, used: Path) -> None:
    """`ctx scrub` knows the ledger, and leaves it whole."""
    assert ctx("add", "--type=fact", "The shop opens at nine").code == 0
    places = ctx("scrub", "shop", "--yes", "--format=json").json["places"]
    assert {"where": "ledger.db", "found": 2, "done": "rewritten"} in places
    assert b"shop" not in used.read_bytes()
    found = ctx("cost", "--by", "project", "--format=json").json
    assert [each["counted"] for each in found["spent"]] == [5_000, 2_200]
    # A word that ctx itself has is not taken out of the ledger.
    ran = ctx("scrub", "estimate", "--yes", "--format=json").json
    assert [each for each in ran["left"] if each["where"] == "ledger.db"] == [
        {
            "where": "ledger.db",
            "why": "in a name that ctx uses itself: of a session, a type or a key",
        }
    ]
    assert ctx("cost").code == 0


def test_mistakes(ctx: Ctx, used: Path, surroundings: Path) -> None:
    assert ctx("cost", "--since", "yesterday").code == 2
    assert ctx("cost", "--by", "colour").code == 2
    assert ctx("cost", "--by", "day", "--calibrate").code == 2
    ran = ctx("cost", "--set", 'llm.prices=["large"]')
    assert (ran.code, 'a list of texts like "NAME=1.00/5.00"' in ran.err) == (1, True)
    # A ledger that cannot be read.
    path = surroundings / ".ctx" / "ledger.db"
    for said in ("is not a database", "cannot be used"):
        for journal in path.parent.glob("ledger.db*"):
            journal.unlink()
        if said == "cannot be used":
            path.mkdir()
        else:
            path.write_bytes(b"x" * 9_000)
        for words in (["cost"], ["cost", "--calibrate"]):
            ran = ctx(*words)
            assert (ran.code, ran.out) == (1, "")
            assert said in ran.err
            assert "without it, ctx sends no requests" in ran.err
            assert "Traceback" not in ran.err
