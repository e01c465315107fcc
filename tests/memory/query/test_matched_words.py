"""Excerpts with the words that matched."""

import pytest

from ctx import terms
from ctx.operations.search import excerpt


def marked(text: str, words: str, most: int = 80, *, beginnings: bool = False) -> str:
    """An excerpt with brackets around what matched."""
    found = excerpt(text, frozenset(terms.query(words)), most, beginnings=beginnings)
    return "".join(f"[{part.text}]" if part.is_match else part.text for part in found.parts)


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        ("Retries fail.", "retry", "[Retries] fail."),
        ("The refreshToken expires.", "refresh token", "The [refreshToken] expires."),
        ("The token.", "refreshToken", "The [token]."),
        ("Über den Wölken", "wolken", "Über den [Wölken]"),
        ("Nothing here.", "retry", "Nothing here."),
        ("Line one.\n\n  Line two.", "two", "Line one. Line [two]."),
        ("トークンを更新する", "更新", "トークンを[更新]する"),
        ("", "retry", ""),
    ],
)
def test_words_are_marked_as_search_matches_them(text: str, words: str, shown: str) -> None:
    assert marked(text, words) == shown


def test_words_that_only_begin_so() -> None:
    assert marked("The gateway.", "gate") == "The gateway."
    assert marked("The gateway.", "gate", beginnings=True) == "The [gateway]."


def test_a_long_text_is_cut_around_most_of_the_words() -> None:
    text = "The cause is unknown. " * 20 + "A retry after a timeout helps." + " More." * 40
    shown = marked(text, "cause retry timeout", 120)
    assert "[retry] after a [timeout]" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 140


def test_each_word_is_listed_once() -> None:
    found = excerpt("Retry, retries, RETRY.", frozenset(terms.query("retry")), 80)
    assert found.words == ("retry", "retries")
    assert excerpt("x" * 1_000_000, frozenset({"x"}), 80).parts[-1].text == " …"
