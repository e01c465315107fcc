"""Text search in PostgreSQL: which nodes have the words, and how well.

The functions of the server (`sync/team_store_schema.py`) find the nodes that have words: `search`
lists the words of a node as a `tsvector`, and `words` is their number. Nodes are ranked as FTS5
ranks them, by BM25: a word counts more if few nodes have it, if it occurs often
in the node, and if the node is short. Only matching nodes are scored.
"""

from typing import NamedTuple

from ctx.memory.query.conditions import SqlFragment, join_fragments

LONGEST_WORD = 500
"""In characters. PostgreSQL stores at most 2,046 bytes of a word."""

MOST_COUNTED = 50_000
"""Nodes that are counted for one word. A word that more of them have is common."""
NO_CONDITION = SqlFragment("TRUE")
"""What `conditions.condition` gives for a query without filters."""


class SearchTerm(NamedTuple):
    text: str
    is_prefix: bool = False

    @property
    def query(self) -> str:
        word = self.text[:LONGEST_WORD].replace("\\", "\\\\").replace("'", "''")
        return f"'{word}'{':*' if self.is_prefix else ''}"


class TermGroups(NamedTuple):
    """The words of a question, each with its alternatives."""

    groups: tuple[tuple[SearchTerm, ...], ...]
    any_of_them: bool

    @property
    def query(self) -> str:
        """As a `tsquery`. An empty one matches nothing."""
        words = (" | ".join(term.query for term in group) for group in self.groups)
        return (" | " if self.any_of_them else " & ").join(f"({word})" for word in words)

    @property
    def terms(self) -> list[SearchTerm]:
        return [term for group in self.groups for term in group]


def matches(words: TermGroups) -> SqlFragment:
    """The condition that the node `n` has the words."""
    return SqlFragment(
        "n.id IN (SELECT w.id FROM nodes_with(CAST(? AS tsquery), NULL) AS w)", (words.query,)
    )


def ranked(words: TermGroups, condition: SqlFragment, newest: int | None) -> SqlFragment:
    """The ids and ranks of the nodes that have the words and meet a condition; the lowest rank is
    the best. With `newest`, only so many of them are ranked, the newest ones."""
    terms = [term for term in words.terms if term.text]
    if not terms:
        return SqlFragment("SELECT id, 0.0 AS rank FROM nodes WHERE FALSE")
    places = range(len(terms))
    counts = join_fragments((_count(place, term) for place, term in enumerate(terms)), ", ")
    weights = ", ".join(
        # As in FTS5, a word that more than half of the nodes have still counts a little.
        f"greatest(0.000001, ln((greatest(nodes - nodes{place}, 0) + 0.5) / (nodes{place} + 0.5)))"
        f" AS weight{place}"
        for place in places
    )
    score = join_fragments((_score(place, term) for place, term in enumerate(terms)), " + ")
    most = newest or "NULL"
    found = SqlFragment(f"nodes_with(CAST(? AS tsquery), {most}) AS found", (words.query,))
    if condition != NO_CONDITION:
        found = join_fragments(
            [found, SqlFragment("JOIN nodes AS n ON n.id = found.id WHERE"), condition], " "
        )
    return join_fragments(
        [
            SqlFragment(
                "WITH corpus AS MATERIALIZED (SELECT nodes, words FROM corpus()),"
                f" weights AS MATERIALIZED (SELECT {weights} FROM corpus JOIN (SELECT"
            ),
            counts,
            SqlFragment(
                ") AS counted ON TRUE), matching AS MATERIALIZED (SELECT found.id, found.search,"
                " 1.2 * (0.25 + 0.75 * found.words / (SELECT greatest(words, 1.0) FROM corpus))"
                " AS length FROM"
            ),
            found,
            SqlFragment(") SELECT m.id, - ("),
            score,
            SqlFragment(") AS rank FROM matching AS m"),
        ],
        " ",
    )


def _count(place: int, term: SearchTerm) -> SqlFragment:
    counted = count_with(term)
    return SqlFragment(f"({counted.sql}) AS nodes{place}", counted.parameters)


def count_with(term: SearchTerm) -> SqlFragment:
    """How many nodes have a word, up to `MOST_COUNTED`."""
    return SqlFragment("SELECT count_with(CAST(? AS tsquery), ?)", (term.query, MOST_COUNTED))


def _score(place: int, term: SearchTerm) -> SqlFragment:
    if term.is_prefix:
        # Several words may begin so: how often each occurs is not counted.
        times = "CAST(CAST(m.search @@ CAST(? AS tsquery) AS integer) AS float8)"
    else:
        times = "CAST(occurrences(m.search, CAST(? AS tsquery)) AS float8)"
    # The words are counted when the first node is ranked. The quotient is times / (times + length),
    # written so that PostgreSQL computes `times` once.
    return SqlFragment(
        f"(SELECT weight{place} FROM weights) * 2.2 * (1.0 - m.length / ({times} + m.length))",
        (term.query,),
    )
