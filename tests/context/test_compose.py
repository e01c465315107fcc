"""The composer turns entries into a text within the budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import tokens
from ctx.context.compose import ComposedText, ContextEntry, ContextFrame, OmittedNodes, compose
from ctx.errors import BudgetExceeded
from tests import effort

AT = "2026-01-20T10:00:00Z"


def composed(entries: list[ContextEntry], budget: int = 50_000) -> ComposedText:
    return compose(
        iter(entries), lambda shown: OmittedNodes(len(entries) - shown), budget, ContextFrame(AT)
    )


def entry(
    number: int, tier: str | None = None, content: str = "Text", type: str = "fact"
) -> ContextEntry:
    tags = ("project:shop", tier) if tier else ("project:shop",)
    kept = tier == "tier:pinned"
    return ContextEntry(f"{type}:{number:012}", type, tier, content, tags, kept=kept)


def test_the_whole_format() -> None:
    entries = [
        entry(1, "tier:pinned", "Deploys run on Fridays"),
        entry(2, "tier:working", "The parser is half done", "observation"),
        entry(3, "tier:reference", "What about Windows?", "open-question"),
        entry(4, "tier:reference", "We use SQLite", "decision")._replace(
            rationale="no servers\nto run", depends_on=("fact:000000000001", "fact:000000000006")
        ),
        entry(5, "tier:reference", "One\ntwo"),
        entry(6, "tier:reference", "Older")._replace(superseded_by="fact:000000000005"),
        entry(7, None, "Found by a query", "source"),
        entry(8, "tier:off-context", "Put away"),
        entry(9, "tier:reference", "Of a newer version", "rumour"),
    ]
    done = composed(entries)
    assert done.text == (
        """<!-- ctx: 9 nodes, 210 tokens, rendered at 2026-01-20T10:00:00Z -->

## Pinned

- [fact:000000000001] Deploys run on Fridays
  - Tags: project:shop, tier:pinned

## Reference

### Facts

- [fact:000000000005] One
  two
- [fact:000000000006] Older
  - Superseded by: [fact:000000000005]

### Decisions

- [decision:000000000004] We use SQLite
  - Rationale: no servers to run
  - Depends on: [fact:000000000001], [fact:000000000006]

### Open questions

- [open-question:000000000003] What about Windows?

### Rumour

- [rumour:000000000009] Of a newer version

## Working Context

- [observation:000000000002] The parser is half done

## Other

- [source:000000000007] Found by a query
- [fact:000000000008] Put away

<!-- ctx:end -->
"""
    )
    assert done.token_count == tokens.estimate(done.text)
    assert done.shown == (0, 4, 5, 3, 2, 8, 1, 6, 7)


def test_an_empty_memory_gives_an_empty_frame() -> None:
    frame = f"<!-- ctx: 0 nodes, 25 tokens, rendered at {AT} -->\n\n<!-- ctx:end -->\n"
    assert composed([]).text == frame
    assert composed([], 25).text == frame
    with pytest.raises(BudgetExceeded) as refused:
        composed([], 24)
    assert "24 tokens is too small: an empty context takes 25" in refused.value.message
    assert "25 tokens" in (refused.value.hint or "")


def test_an_entry_that_does_not_fit_is_counted_and_smaller_ones_are_tried() -> None:
    entries = [
        entry(1, "tier:working", "small"),
        entry(2, "tier:working", "x" * 1000),
        entry(3, "tier:working", "small too"),
    ]
    done = composed(entries, 80)
    assert done.shown == (0, 2)
    assert ", 1 left out, rendered" in done.text
    assert done.token_count <= 80


def test_pinned_entries_are_shortened_before_any_is_left_out() -> None:
    entries = [entry(number, "tier:pinned", f"{number} " + "word " * 200) for number in range(20)]
    sizes = {}
    for budget in (8_000, 2_000, 900, 600, 400, 200):
        done = composed(entries, budget)
        assert done.token_count <= budget
        sizes[budget] = len(done.shown)
        if budget < 8_000:
            # They share the budget evenly.
            lengths = [len(line) for line in done.text.split("\n") if line.startswith("- [")]
            assert max(lengths) - min(lengths) < 20
            assert budget < 600 or done.token_count > budget * 0.85
    assert sizes == {8_000: 20, 2_000: 20, 900: 20, 600: 20, 400: 20, 200: 11}
    # One that fits is not shortened, and the other one gets the rest.
    two = [entry(1, "tier:pinned", "b " * 2000), entry(2, "tier:pinned", "a " * 200)]
    text = composed(two, 600).text
    assert "a " * 199 in text
    assert "b " * 600 in text
    assert text.index("b b") < text.index("a a")


def test_reading_stops_when_the_budget_is_used() -> None:
    read = 0

    def endless(content: str) -> object:
        nonlocal read
        while read < 1_000_000:
            read += 1
            yield entry(read, "tier:reference", content)

    more = OmittedNodes(500, or_more=True)
    for content in ("some text", "x" * 10_000):
        read = 0
        entries = endless(content)
        done = compose(entries, lambda _: more, 1_000, ContextFrame(AT))  # type: ignore[arg-type]
        assert read < 200
        assert ", 500+ left out," in done.text


TIERS = st.sampled_from(["tier:working", "tier:reference", None])
CONTENT = st.one_of(
    st.text(min_size=1, max_size=40),
    st.integers(1, 800).map("wörd ".__mul__),
    st.sampled_from(["```\nx", "a\n\nb\n- c", "設計" * 50, "x" * 5_000]),
)
ENTRIES = st.tuples(
    st.lists(CONTENT, max_size=6), st.lists(st.tuples(TIERS, CONTENT), max_size=12)
).map(
    lambda drawn: [
        *(entry(number, "tier:pinned", content) for number, content in enumerate(drawn[0])),
        *(entry(100 + number, *each) for number, each in enumerate(drawn[1])),
    ]
)


@settings(max_examples=effort.times(80), deadline=None, derandomize=True)
@given(ENTRIES, st.integers(0, 1_500))
def test_the_budget_is_never_exceeded(entries: list[ContextEntry], budget: int) -> None:
    try:
        done = composed(entries, budget)
    except BudgetExceeded:
        assert budget < tokens.estimate(composed(entries, 10**9).text)
        assert budget < 40
        return
    assert tokens.estimate(done.text) == done.token_count <= budget
    assert len(done.shown) == len(set(done.shown))
    assert len(done.shown) + done.left_out.nodes == len(entries)
    assert done.text == composed(entries, budget).text
    assert ("left out" in done.text) is (done.left_out.nodes > 0)
    whole = composed(entries, 10**9)
    assert whole.left_out.nodes == 0
    # Each item and each heading is rounded up, and the frame is reckoned with long numbers.
    enough = whole.token_count + 2 * len(entries) + 20
    assert composed(entries, enough).text == whole.text
