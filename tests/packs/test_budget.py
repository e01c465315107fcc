"""Chunks that fit into a budget, and the reasons why others do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.errors import BudgetExceeded
from ctx.packs import budget, pack_text
from ctx.packs.budget import ChunkOffer, fill
from ctx.packs.prompt_pack import Chunk
from ctx.redaction import redact
from tests import effort


def chunk(
    title: str,
    score: float,
    tokens: int,
    snippet: str = "",
    place: tuple[str, int, int] | None = None,
) -> Chunk:
    path, first, last = place or (None, None, None)
    shape = path, first, last, title, (), ()
    return Chunk(title, title, snippet or title, score, "FileContent", tokens, *shape)


def chosen_and_left_out(
    offers: list[ChunkOffer], room: int, limit: int = 0
) -> tuple[list[str], dict[str, str]]:
    found = fill(offers, room, limit)
    taken = [each.title for each in found.chunks]
    return taken, {each.title: each.reason for each in found.left_out}


def test_the_chunk_with_the_most_value_per_token_comes_first() -> None:
    offers = [
        ChunkOffer(chunk("long", 0.5, 800)),
        ChunkOffer(chunk("best", 1.0, 300)),
        ChunkOffer(chunk("short", 0.45, 100)),
        ChunkOffer(chunk("weak", 0.05, 10)),
    ]
    assert chosen_and_left_out(offers, 500) == (
        ["best", "short"],
        {"long": pack_text.BUDGET, "weak": budget.WEAK},
    )
    assert chosen_and_left_out(offers, 5_000)[0] == ["best", "long", "short"]
    # The first of what is there without a limit.
    assert chosen_and_left_out(offers, 5_000, limit=2) == (
        ["best", "long"],
        {"short": budget.ENOUGH, "weak": budget.WEAK},
    )


def test_in_a_small_budget_a_chunk_is_shortened() -> None:
    offers = [ChunkOffer(chunk("best", 1.0, 300)), ChunkOffer(chunk("next", 0.9, 300), "in brief")]
    best, following = fill(offers, 350).chunks
    assert (best.title, following.title, following.snippet) == ("best", "next", "in brief")
    assert following.tokens == pack_text.cost(following) < 50


def test_overlapping_chunks_are_left_out() -> None:
    lines = "\n".join(f"line {number}" for number in range(10))
    offers = [
        ChunkOffer(chunk("class", 1.0, 100, lines, ("a.py", 1, 10))),
        ChunkOffer(chunk("method", 0.9, 30, "line 3\nline 4", ("a.py", 4, 5))),
        ChunkOffer(chunk("copy", 0.8, 100, f"{lines}\nline 11", ("b.py", 1, 11))),
        ChunkOffer(chunk("other", 0.7, 30, "something\nelse\nhere", ("a.py", 20, 22))),
    ]
    assert chosen_and_left_out(offers, 1_000) == (
        ["class", "other"],
        {"method": budget.INSIDE, "copy": budget.REPEATED},
    )


def test_a_second_file_comes_before_the_third_part_of_the_first() -> None:
    parts = [chunk(f"a{n}", 1 - n / 100, 100, place=("a.py", n * 10, n * 10)) for n in range(4)]
    offers = [*map(ChunkOffer, parts), ChunkOffer(chunk("b", 0.8, 100, place=("b.py", 1, 1)))]
    assert chosen_and_left_out(offers, 300)[0] == ["a0", "a1", "b"]


def test_a_pack_ends_where_code_is_unlikely_to_help() -> None:
    offers = [
        ChunkOffer(chunk("likely", 1.0, 1_600), None, 0.5),
        ChunkOffer(chunk("unlikely", 0.4, 1_000), None, 0.01),
        ChunkOffer(chunk("memory", 0.3, 1_000)),
    ]
    assert chosen_and_left_out(offers, 16_000) == (
        ["likely", "memory"],
        {"unlikely": pack_text.UNLIKELY},
    )
    assert len(fill(offers, 16_000, least=0.0).chunks) == 3
    # A pack is never empty.
    assert chosen_and_left_out(offers[1:], 16_000)[0] == ["unlikely", "memory"]


def test_a_budget_below_one_chunk_is_an_error() -> None:
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    offers = [ChunkOffer(chunk("best", 1.0, 300), secret), ChunkOffer(chunk("b", 0.9, 10))]
    brief = redact(secret).text
    least = budget.smallest(offers)
    assert least == pack_text.cost(offers[0].chunk._replace(snippet=brief))
    with pytest.raises(BudgetExceeded, match=f"takes {least} tokens, and there are {least - 1}"):
        fill(offers, least - 1)
    assert [each.snippet for each in fill(offers, least).chunks] == [brief]
    assert budget.smallest([]) == 0
    assert fill([], 0) == ((), ())


OFFERS = st.lists(
    st.builds(
        lambda number, score, tokens, brief, file: ChunkOffer(
            chunk(f"c{number}", score, tokens, place=(f"{file}.py", number + 1, number + 1)),
            "x" * brief if brief else None,
        ),
        *(st.integers(0, 10_000), st.floats(0.001, 1)),
        *(st.integers(1, 1_000), st.integers(0, 100), st.integers(0, 3)),
    ),
    max_size=30,
    unique_by=lambda offer: offer.chunk.title,
)


@settings(max_examples=effort.times(60), deadline=None)
@given(OFFERS, st.integers(0, 3_000), st.integers(0, 5))
def test_the_budget_is_never_exceeded_and_every_chunk_is_accounted_for(
    offers: list[ChunkOffer], room: int, limit: int
) -> None:
    try:
        found = fill(offers, room, limit)
    except BudgetExceeded:
        best = max(offers, key=lambda offer: offer.chunk.relevance_score)
        assert budget.smallest([best]) > room
        return
    assert sum(each.tokens for each in found.chunks) <= room
    assert not limit or len(found.chunks) <= limit
    titles = [each.title for each in found.chunks] + [each.title for each in found.left_out]
    assert sorted(titles) == sorted(offer.chunk.title for offer in offers)
