"""Statements of past sessions in a context: the current state, rules first, no repetition."""

from collections.abc import Iterator

import pytest

from ctx.context import layers
from ctx.context.layers import ContextRequest
from ctx.ids import NodeId
from ctx.memory.graph import Graph
from tests.context.test_session_layers import section, text_of
from tests.memory import graphs
from tests.packs.session_store import change, learning, node, observation, session

RULE = "Never commit yourself, I review every change first."
USUAL = ContextRequest("app", None, 2_000)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graphs.graph() as made:
        yield made


def add_statement(graph: Graph, session_id: str, kind: str, text: str, **about: object) -> NodeId:
    return observation(graph, session_id, kind, text, session=session_id, **about)  # type: ignore[arg-type]


def test_the_final_message_and_next_steps_are_shown(graph: Graph) -> None:
    session(graph, "s1", 2, completed="Something")
    add_statement(
        graph, "s1", "statement", "The older end of another session.", said_as="final", worth=2_000
    )
    session(graph, "s2", 1, completed="More", next_steps=["Next: write the manual"])
    final = "The refresh works; only the mobile client still polls."
    add_statement(graph, "s2", "statement", final, said_as="final", said_by="agent", worth=2_000)
    assert section(text_of(graph, USUAL), "Where things stand") == [
        f"- [yesterday] {final}",
        "- Next: write the manual",
    ]
    assert text_of(graph, USUAL).count(final) == 1


def test_rules_stay_after_many_sessions(graph: Graph) -> None:
    session(graph, "s0", 50, completed="Began")
    add_statement(graph, "s0", "rule", RULE, lasting=True, said_by="user", worth=3_000)
    add_statement(graph, "s0", "decision", "Amounts are whole cents", lasting=True, said_by="user")
    add_statement(graph, "s0", "correction", "No, the other button should be green.", worth=2_500)
    add_statement(graph, "s0", "statement", "The first of many sessions ended well.", worth=2_000)
    for number in range(1, 41):
        name = f"s{number}"
        session(graph, name, 50 - number, completed=f"Topic{number} done")
        change(graph, name, f"f{number}.py", f"def f{number}()")
        text = f"Topic{number} holds part{number} of shape{number} because of cause{number}."
        add_statement(graph, name, "statement", text, worth=1_500, said_by="agent")
        add_statement(
            graph, name, "correction", f"No, widget{number} belongs on page{number}.", worth=2_000
        )
    text = text_of(graph, USUAL)
    rules = section(text, "Rules and corrections")
    assert f"- {RULE}" in rules
    assert "- Amounts are whole cents" in rules
    assert "other button" not in text
    assert "first of many" not in text
    assert "Topic40" in text


def test_a_repeated_rule_is_shown_once_and_first(graph: Graph) -> None:
    session(graph, "s1", 2, completed="One")
    session(graph, "s2", 1, completed="Two")
    add_statement(
        graph, "s2", "rule", "Always run the linter before the tests.", lasting=True, worth=3_000
    )
    add_statement(graph, "s1", "rule", RULE, lasting=True, worth=3_000, sessions=["s1", "s2"])
    add_statement(
        graph, "s2", "rule", "Never commit yourself! I review every change.", lasting=True
    )
    assert section(text_of(graph, USUAL), "Rules and corrections") == [
        f"- {RULE}",
        "- Always run the linter before the tests.",
    ]


def test_statements_name_their_speaker_or_kind(graph: Graph) -> None:
    session(graph, "s1", 1, completed="One", next_steps="Documentation")
    for who, text, worth in (
        ("user", "We ship on every Friday evening.", 2_000),
        ("agent", "The lock was taken twice.", 1_900),
    ):
        add_statement(graph, "s1", "statement", text, said_by=who, worth=worth)
    # A single common word does not hide it.
    text = "The documentation is generated from the schema, never edited."
    add_statement(graph, "s1", "discovery", text)
    assert section(text_of(graph, USUAL), "Relevant Past Work") == [
        "- [user] We ship on every Friday evening.",
        "- [agent] The lock was taken twice.",
        f"- [discovery] {text}",
    ]


def test_without_memory_most_of_the_budget_stays_empty(graph: Graph) -> None:
    for number in range(20):
        name = f"s{number}"
        session(graph, name, number, completed=f"Topic{number} done " * 9, next_steps="more " * 90)
        for part in range(10):
            words = " ".join(
                f"{word}{number}x{part}" for word in ("cause", "lock", "queue", "page")
            )
            add_statement(
                graph, name, "rule" if part < 3 else "bugfix", words * 3, lasting=part < 3
            )
            change(graph, name, f"f{part}.py", f"def f{number}({'arg, ' * 9})")
        learning(graph, "gotcha", f"Learning {number} " + "is a thing to know " * 9)
    made = layers.context([graph.connection], USUAL)
    assert 500 < made.tokens < 950
    node(graph, "fact", "Deploys run on Fridays", ["tier:pinned"])
    assert "Deploys run on Fridays" in text_of(graph, USUAL)


def test_past_work_takes_no_room_from_rules(graph: Graph) -> None:
    session(graph, "s1", 1, completed="One")
    add_statement(graph, "s1", "rule", RULE, lasting=True, worth=1_000)
    for number in range(20):
        words = " ".join(f"word{number}x{each}" for each in range(20))
        add_statement(
            graph, "s1", "statement", f"Topic{number}: {words}.", worth=5_000, said_by="agent"
        )
    assert section(text_of(graph, USUAL), "Rules and corrections") == [f"- {RULE}"]
    assert "Topic0" in text_of(graph, USUAL)


def test_what_was_only_asked_for_comes_after_what_holds(graph: Graph) -> None:
    session(graph, "s1", 1, completed="One")
    add_statement(
        graph, "s1", "correction", "Can you move the helper instead of a copy?!", worth=3_000
    )
    add_statement(graph, "s1", "correction", "Amounts are whole cents, never floats.", worth=2_500)
    rules = section(text_of(graph, USUAL), "Rules and corrections")
    assert rules == [
        "- Amounts are whole cents, never floats.",
        "- Can you move the helper instead of a copy?!",
    ]
