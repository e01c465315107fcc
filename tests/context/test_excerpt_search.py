"""Passages of past sessions for a prompt: which ones, their order and their budget."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock, terms, tokens
from ctx.context import excerpt_search
from ctx.context.excerpt_search import choose, context_from_hits
from ctx.context.layer_lines import digest
from ctx.memory.graph import Graph
from tests import effort
from tests.memory import graphs
from tests.packs.session_store import observation

DAY_MS = 86_400_000
RULE = "Never commit yourself, I review every change of the exporter first."
_numbers = iter(range(10_000_000))


@pytest.fixture
def connection() -> Iterator[Connection]:
    with graphs.graph() as made:
        yield made.connection


def add_excerpt(
    connection: Connection,
    text: str,
    session: str = "s1",
    kind: str = "prompt",
    days_ago: int = 0,
    project: str | None = "app",
) -> None:
    at = clock.iso(clock.now_ms() - days_ago * DAY_MS)
    source = "pasted" if kind == "pasted" else "agent" if kind in ("final", "remark") else "user"
    connection.execute(
        "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text, terms)"
        " VALUES (?, ?, ?, 0, ?, ?, ?, 2000, ?, ?)",
        (session, project, str(next(_numbers)), at, kind, source, text, terms.column(text)),
    )


def texts(connection: Connection, prompt: str, budget: int = 1_000, **more: Any) -> list[str]:
    return [hit.text for hit in choose([connection], "app", prompt, budget, **more).hits]


def test_passages_are_shown_with_speaker_and_day(connection: Connection) -> None:
    add_excerpt(connection, RULE, days_ago=1, kind="correction")
    add_excerpt(connection, "The exporter was fixed, and every change of it arrives.", kind="final")
    found = context_from_hits(
        choose([connection], "app", "never fix every exporter yourself", 500).hits
    )
    assert found.text == (
        f"{excerpt_search.HEADING}\n\nThe agent, today:\n"
        "- The exporter was fixed, and every change of it arrives.\n"
        f"The user, yesterday:\n- {RULE}\n"
    )
    assert found.tokens == tokens.estimate(found.text)
    assert [each.layer for each in found.items] == ["said", "said"]


def test_an_earlier_prompt_that_says_the_same_is_left_out(connection: Connection) -> None:
    add_excerpt(connection, "Go through the failing exporter tests locally.")
    prompt = "Please go through the failing exporter tests locally, then fix the importer."
    assert texts(connection, prompt) == []
    assert texts(connection, "which exporter tests ran locally") != []


@pytest.mark.parametrize(
    "prompt",
    [
        "2",
        "ok, go on",
        "Danke! Mach weiter.",
        "Merci, vas-y",
        "sí, sigue por favor",
        "谢谢，请继续",
    ],
)
def test_a_prompt_without_a_subject_is_given_nothing(connection: Connection, prompt: str) -> None:
    add_excerpt(connection, RULE)
    add_excerpt(connection, f"{prompt} 2, the exporter", "s2")
    assert texts(connection, prompt) == texts(connection, "lovely weather outside") == []
    assert RULE in texts(connection, f"{prompt} - never touch the exporter")


def test_observations_of_sessions_of_others_are_found(connection: Connection) -> None:
    """They have no excerpts here."""
    add_excerpt(connection, RULE, kind="correction")
    graph = Graph(connection)
    theirs = "The exporter must never be locked twice."
    node_id = observation(graph, "theirs", "discovery", theirs, session="theirs")
    asked = "never touch the exporter"
    hits = choose([connection], "app", asked, 500).hits
    assert [(hit.text, hit.node) for hit in hits] == [(theirs, node_id), (RULE, "")]
    add_excerpt(connection, theirs, session="theirs")
    assert [hit.node for hit in choose([connection], "app", asked, 500).hits] == [""] * 2


def test_what_shares_two_words_comes_before_what_shares_one(connection: Connection) -> None:
    for number in range(3):
        add_excerpt(connection, f"The exporter, exporter: exporter of page{number}.")
    add_excerpt(connection, RULE)
    assert texts(connection, "never rename `exporter` modules")[0] == RULE
    assert len(texts(connection, "rename the `exporter` module to writer")) == 4
    assert texts(connection, "rename the exporter module to writer") == []
    connection.execute("DELETE FROM excerpts WHERE text <> ?", (RULE,))
    assert texts(connection, "exporter?") == []
    add_excerpt(connection, "The lock is taken in `exporter.py`.")
    assert texts(connection, "exporter?") == ["The lock is taken in `exporter.py`."]
    assert texts(connection, "") == texts(connection, "the and of") == []
    assert texts(connection, '"* NEAR( exporter^ OR never" -') == [RULE]


def test_other_projects_and_the_current_session_are_left_out(connection: Connection) -> None:
    add_excerpt(connection, RULE, project="other")
    add_excerpt(connection, RULE, project=None)
    add_excerpt(connection, RULE, session="mine")
    assert texts(connection, "never touch the exporter", session="mine") == []
    assert texts(connection, "never touch the exporter") == [RULE]


def test_passages_that_were_shown_before_are_left_out(connection: Connection) -> None:
    add_excerpt(connection, RULE)
    said_again = "Again: never commit yourself, I review every change of the exporter!"
    add_excerpt(connection, said_again, "s2")
    assert len(texts(connection, "never touch the exporter")) == 1
    again = texts(connection, "never touch the exporter")
    assert texts(connection, "never touch the exporter", given={*map(digest, again)}) != again


def test_newer_sessions_and_passages_of_the_user_come_first(connection: Connection) -> None:
    add_excerpt(
        connection, "The exporter writes rows into the archive, as of March.", "s1", days_ago=9
    )
    add_excerpt(connection, "The exporter sends rows through the gateway, as of May.", "s2")
    for number in range(10):
        add_excerpt(connection, f"Filler {number}", f"filler{number}", days_ago=30)
    found = texts(connection, "where does the exporter put its rows")
    assert [each[-4:-1] for each in found] == ["May", "rch"]
    add_excerpt(
        connection, "Pasted: where does the exporter put its rows, asks Bob.", "s3", "pasted"
    )
    assert texts(connection, "where does the exporter put its rows") == found


def test_a_long_prompt_is_searched(connection: Connection) -> None:
    add_excerpt(connection, RULE)
    for number in range(600):
        add_excerpt(connection, f"word{number % 300} filler{number}", "s2")
    prompt = " ".join(f"word{number}" for number in range(300)) + " never exporter yourself"
    assert RULE in texts(connection, prompt, 4_000)
    assert texts(connection, "x" * 1_000_000) == []


@settings(max_examples=effort.times(20), deadline=None, derandomize=True)
@given(
    st.lists(st.text(min_size=1, max_size=80).filter(lambda text: "\0" not in text), max_size=8),
    st.text(max_size=60),
    st.integers(0, 300),
)
def test_any_text_can_be_searched(said: list[str], prompt: str, budget: int) -> None:
    with graphs.graph() as graph:
        for text in said:
            add_excerpt(graph.connection, text)
        found = context_from_hits(
            choose([graph.connection], "app", prompt, budget, given={digest(prompt)}).hits
        )
        lines = found.text.splitlines()
        assert lines[2:3] in ([], ["The user, today:"])
        assert all(line.startswith("- ") for line in lines[3:])
        assert sum(each.tokens for each in found.items) <= budget
        assert "<!--" not in found.text
