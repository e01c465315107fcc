"""What the user said in a context: rules first, short messages, nothing twice or outdated."""

from collections.abc import Iterator

import pytest

from ctx import clock
from ctx.context import layers
from ctx.context.excerpt_search import choose
from ctx.context.layers import ContextRequest
from ctx.ids import NodeId
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from tests.context.test_session_layers import section, text_of
from tests.memory import graphs
from tests.packs.session_store import DAY_MS, message, observation, session

RULE = "Never commit yourself, I review every change first."
USUAL = ContextRequest("app", None, 2_000)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graphs.graph() as made:
        yield made


def add_statement(graph: Graph, session_id: str, kind: str, text: str, **about: object) -> NodeId:
    return observation(graph, session_id, kind, text, session=session_id, **about)  # type: ignore[arg-type]


def test_the_final_message_and_next_steps_are_shown(graph: Graph) -> None:
    session(graph, "s1", 2, ended=["The older end of another session."])
    final = "The refresh works; only the mobile client still polls."
    session(graph, "s2", 1, ended=[final], next_steps=["Next: write the manual"])
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
        add_statement(
            graph, name, "correction", f"No, widget{number} belongs on page{number}.", worth=2_000
        )
    text = text_of(graph, USUAL)
    rules = section(text, "Rules and corrections")
    assert f"- {RULE}" in rules
    assert "- Amounts are whole cents" in rules
    assert "other button" not in text
    assert "first of many" not in text


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


def test_what_was_only_asked_for_is_no_rule(graph: Graph) -> None:
    session(graph, "s1", 1, completed="One")
    add_statement(graph, "s1", "correction", "Can you move the helper instead of a copy?!")
    add_statement(graph, "s1", "correction", "Why is the table not sorted?")
    add_statement(graph, "s1", "correction", "Amounts are whole cents, never floats.")
    rules = section(text_of(graph, USUAL), "Rules and corrections")
    assert rules == ["- Amounts are whole cents, never floats."]


def test_messages_of_the_user_are_given_and_those_said_again_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms
    until_noon = DAY_MS // 2 - now() % DAY_MS
    monkeypatch.setattr(clock, "now_ms", lambda: now() + until_noon)
    for name, days in (("s1", 3), ("s2", 1), ("now", 0)):
        session(graph, name, days)
    observation(graph, "s1", "rule", "Never commit the lock file")
    message(graph, "s1", 3, "Never commit the lock file")
    message(graph, "s1", 3, "Name the table orders, as the importer expects it")
    message(graph, "s1", 3, "I renamed the table", "agent")
    message(graph, "s2", 1.2, "Money is in cents\n## everywhere")
    message(graph, "s2", 1.1, "Please name the table orders, as the importer expects")
    message(graph, "s2", 1, "A long report " * 40)
    message(graph, "s2", 1, "ok go on")
    message(graph, "s2", 1.3, "发票的状态必须保持德语")
    message(graph, "now", 0, "What this session asks")
    wanted = USUAL._replace(session="now")
    assert section(text_of(graph, wanted), "What the user said") == [
        "- [yesterday, in 2 sessions] Please name the table orders, as the importer expects",
        "- [yesterday] Money is in cents ## everywhere",
        "- [yesterday] 发票的状态必须保持德语",
    ]
    items = layers.context([graph.connection], wanted).items
    said = [each for each in items if each.layer == "words"]
    assert len({each.key for each in said}) == 3
    assert all(each.label.startswith("said:s2.") for each in said)


@pytest.mark.parametrize("action", ["edit", "delete", "supersede", "exclude"])
def test_what_a_person_changed_does_not_come_back_in_the_old_words(
    graph: Graph, action: str
) -> None:
    """Neither at the start nor with a prompt."""
    session(graph, "s1", 1)
    said = "The retries of the importer must stop after seven attempts"
    message(graph, "s1", 1, said)
    message(graph, "s1", 1, "The retries of the mailer never stop")
    [step] = graph.connection.execute(
        "SELECT step FROM excerpts WHERE text = ?", (said,)
    ).fetchone()
    by_synthesis = graphs.WHO._replace(session="s1", author="synthesis")
    with changing(graph, "synthesise", by_synthesis) as change:
        about = {"title": f"{said[:40]}…", "evidence": [step]}
        made = change.add_node("observation", said, metadata=about)
        change.tag(made, "project:app")

    def given() -> list[str]:
        hits = choose([graph.connection], "app", "What stops the retries of the importer", 500).hits
        start = section(text_of(graph, USUAL), "What the user said")
        return [each for each in (*start, *(hit.text for hit in hits)) if "importer" in each]

    assert len(given()) == 2
    with changing(graph, "change", graphs.WHO) as change:
        match action:
            case "edit":
                change.update_node(made, content="They stop after nine attempts")
            case "delete":
                change.delete_node(made)
            case "supersede":
                change.link(change.add_node("fact", "They stop after nine"), made, "SUPERSEDES", {})
            case "exclude":
                change.tag(made, "tier:off-context")
    assert given() == []


def test_a_value_that_was_changed_later_replaces_the_earlier_one(graph: Graph) -> None:
    for name, days, seconds in (("s1", 9, 30), ("s2", 5, 60), ("s3", 1, 90)):
        session(graph, name, days)
        message(graph, name, days, f"Keep the timeout of the exporter at {seconds} seconds")
    assert section(text_of(graph, USUAL), "What the user said") == [
        "- [yesterday, in 3 sessions] Keep the timeout of the exporter at 90 seconds",
    ]


def test_a_verdict_hides_neither_its_correction_nor_another_wording(graph: Graph) -> None:
    wrong = "Always run staging database migrations on localhost port 9999"
    for name, days, text in (
        ("s1", 9, "Always run staging database migrations on port 5432"),
        ("s2", 1, wrong),
        ("s3", 0.5, "Use pnpm, not npm, for the frontend build"),
    ):
        session(graph, name, days)
        message(graph, name, days, text)
    with changing(graph, "judge", graphs.WHO) as change:
        for text in (wrong, "Use npm, not pnpm, for the frontend build"):
            judged = change.add_node("observation", text)
            change.tag(judged, "verdict:wrong")
            change.tag(judged, "tier:off-context")
            change.tag(judged, "project:app")
    given = "\n".join(section(text_of(graph, USUAL), "What the user said"))
    assert "9999" not in given
    assert "port 5432" in given
    assert "Use pnpm, not npm" in given
