"""The context of a session: its nodes, its text, and what changed since the last one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import tokens
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.context import contexts, default_view, layers
from ctx.context.context_page import LARGEST_PART, MOST_PINNED
from ctx.context.contexts import NOTHING, Context
from ctx.context.layers import CompactionState, ContextRequest
from ctx.ids import NodeId, Ulid
from ctx.memory.changes import Change, ChangeAuthor, changing
from ctx.memory.graph import Graph
from ctx.operations import compose, task
from ctx.operations.visible_nodes import VisibleNodes
from tests import effort
from tests.capture.conversations import Client, context_of
from tests.conftest import Ctx, git
from tests.memory import graphs

DAY_MS = 86_400_000
ANYWHERE = ContextRequest(None, None, 2_000)


def ident(number: int) -> NodeId:
    return NodeId(Ulid(f"01KF{number:08d}{'0' * 14}"))


@contextmanager
def graph_of(*nodes: tuple[str, str, str]) -> Iterator[Graph]:
    """A graph of nodes with the ids 1, 2, …: type, content and tags."""
    with graphs.graph() as graph:
        with changing(graph, "add", graphs.WHO) as change:
            for number, (node_type, content, tags) in enumerate(nodes, 1):
                put(change, number, node_type, content, tags)
        yield graph


def put(change: Change, number: int, node_type: str, content: str, tags: str) -> None:
    node_id = change.add_node(node_type, content, node_id=ident(number))
    for tag in tags.split():
        change.tag(node_id, tag)


@contextmanager
def change_of(graph: Graph, session: str = "cli") -> Iterator[Change]:
    with changing(graph, "test", ChangeAuthor(session, "cli")) as change:
        yield change


def numbers(found: Context) -> list[int]:
    return [int(item.id[4:12]) for item in found.items]


def shown(graph: Graph, wanted: ContextRequest = ANYWHERE) -> list[int]:
    return numbers(layers.context([graph.connection], wanted))


# The text


def test_a_context_has_the_expected_text() -> None:
    with graph_of(
        ("fact", "Deploys run on Fridays", "tier:pinned"),
        ("decision", "We use SQLite", "tier:reference"),
        ("observation", "The parser is half done", "tier:working"),
        ("fact", "Put away", "tier:off-context"),
        ("fact", "Without a tier", ""),
        ("fact", "Older", "tier:reference"),
        ("fact", "Newer", "tier:reference"),
    ) as graph:
        with change_of(graph) as change:
            change.link(ident(7), ident(6), "SUPERSEDES", {})
            change.link(ident(2), ident(7), "DEPENDS_ON", {})
            change.update_node(ident(2), metadata={"rationale": "no servers\nto run"})
        made = layers.context([graph.connection], ANYWHERE)
        head, _, body = made.text.partition("\n\n## ")
        assert head == f"<!-- ctx: 4 nodes, {made.tokens} tokens -->\n\n{layers.PREFACE}"
        lines = [line for line in body.split("\n") if line and line[0] != "#"]
        assert lines == [
            "Pinned",
            "- [fact:01KF00000001] Deploys run on Fridays",
            "  - Tags: tier:pinned",
            "- [fact:01KF00000007] Newer",
            "- [decision:01KF00000002] We use SQLite",
            "  - Rationale: no servers to run",
            "  - Depends on: [fact:01KF00000007]",
            "- [observation:01KF00000003] The parser is half done",
            "<!-- ctx:end -->",
        ]
        assert made.tokens == tokens.estimate(made.text)
        nodes = {node.id: node for node in graph.nodes(item.id for item in made.items)}
        assert [(item.label, item.updated_at) for item in made.items] == [
            (f"{nodes[item.id].type}:{item.id[:12]}", nodes[item.id].updated_at)
            for item in made.items
        ]
        assert numbers(made) == [1, 7, 2, 3]
        assert sum(item.tokens for item in made.items) < made.tokens


def test_an_empty_memory() -> None:
    with graphs.graph() as graph:
        made = layers.context([graph.connection], ANYWHERE)
        assert made.text == (
            f"<!-- ctx: 0 nodes, {made.tokens} tokens -->\n\n{layers.EMPTY}\n\n<!-- ctx:end -->\n"
        )
        assert made.items == ()


def test_in_a_small_budget_nodes_replace_the_preface() -> None:
    def made(graph: Graph, budget: int) -> Context:
        return layers.context([graph.connection], ContextRequest(None, None, budget))

    with graph_of() as graph:
        assert layers.EMPTY not in made(graph, 400).text
        assert layers.EMPTY in made(graph, 401).text
    with graph_of(("fact", "word " * 2_000, "tier:reference")) as graph:
        assert layers.EMPTY not in made(graph, 401).text
    with graph_of(("fact", "Text", "tier:pinned")) as graph:
        for budget in (100, 400, 401):
            assert numbers(made(graph, budget)) == [1]
            assert (layers.PREFACE in made(graph, budget).text) is (budget == 401)
        # Without the default view, the context is empty.
        with change_of(graph) as change:
            change.delete_view("default")
        assert shown(graph) == []
        assert default_view.is_timeless([graph.connection])


@settings(max_examples=effort.times(20), deadline=None, derandomize=True)
@given(graphs.STEPS)
def test_the_context_depends_only_on_the_content_of_memory(steps: list[graphs.Step]) -> None:
    """The order of changes and the number of requests do not matter."""
    with graphs.graph() as graph:
        graphs.run_steps(graph, steps)
        with change_of(graph) as change:
            change.put_view("default", "type:fact OR type:task", None)
        made = layers.context([graph.connection], ANYWHERE)
        assert layers.context([graph.connection], ANYWHERE) == made
        copied = graph.connection.serialize()
    with graphs.graph() as other:
        other.connection.deserialize(copied)
        assert layers.context([other.connection], ANYWHERE) == made


# What is seen


def test_projects_and_tasks_are_filtered_as_in_compose(
    ctx: Ctx, repo: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = ("pinned", "reference", "working", "off-context")
    about = ("", "project:app", "project:other", "task:oauth", "task:db", "project:app task:db")
    number = 0
    client = Client(surroundings / ".ctx", repo)
    with client.memory() as memory, change_of(memory.user) as change:
        for tier in tiers:
            for tags in about:
                number += 1
                put(change, number, "fact", f"Fact {number}.", f"tier:{tier} {tags}")
    for folder, project in ((repo, "app"), (surroundings, None)):
        monkeypatch.chdir(folder)
        client.folder = folder
        for current in (None, "oauth", "db", "none"):
            with client.memory() as memory:
                if current:
                    task.start(memory, current)
                wanted = ContextRequest(project, current, 2_000)
                made = layers.context([memory.user.connection], wanted)
                # Outside of any project, an agent sees nothing of one.
                visible = VisibleNodes(project=project or "")
                same = compose.compose(memory, compose.Options(budget=2_000, visible=visible))
                nodes = same.context.nodes
                assert [item.id for item in made.items] == [node.id for node in nodes]
                if current:
                    task.end(memory, current, summarize=False)


def test_a_decomposed_project_name_is_normalised(
    ctx: Ctx, surroundings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems write an accent as a separate character; tags are normalised."""
    folder = tmp_path / "cafe\u0301"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q")
    assert ctx("add", "--type=fact", "--tag=tier:working", "Mine.").code == 0
    client = Client(surroundings / ".ctx", folder)
    assert "Mine." in context_of(client.talk().start())
    assert "Mine." in ctx("compose").out
    client.hook("pre-compact", client.talk().payload("PreCompact"))
    assert "## Where you were\n\n- [fact:" in context_of(client.talk().start("compact"))


def test_the_newest_nodes_are_shown_first_and_working_before_reference() -> None:
    nodes = [("fact", f"Fact {number} " + "word " * 30, "tier:reference") for number in range(40)]
    with graph_of(*nodes, ("fact", "Work", "tier:working"), ("fact", "Pin", "tier:pinned")) as made:
        found = layers.context([made.connection], ContextRequest(None, None, 600))
        count = len(found.items) - 2
        assert 3 < count < 20
        assert numbers(found) == [42, *range(40, 40 - count, -1), 41]
        assert f"{42 - len(found.items)} left out -->" in found.text
        assert found.tokens <= 600


def test_nodes_with_a_common_id_prefix_have_longer_labels() -> None:
    with graphs.graph() as graph:
        with change_of(graph) as change:
            for end in "12":
                node_id = NodeId(Ulid(f"01KF00000001{'0' * 13}{end}"))
                change.add_node("fact", f"Fact {end}.", node_id=node_id)
                change.tag(node_id, "tier:reference")
        labels = [item.label for item in layers.context([graph.connection], ANYWHERE).items]
        assert labels == [f"fact:01KF00000001{'0' * 13}{end}" for end in "21"]


# Parts


CONTENTS = st.one_of(
    st.text(min_size=1, max_size=60).filter(str.strip),
    st.tuples(st.sampled_from(["word ", "設計更新", "😀", "é"]), st.integers(1, 800)).map(
        lambda drawn: drawn[0] * drawn[1]
    ),
).filter(lambda text: "\0" not in text)
TIERS = st.sampled_from(["tier:pinned", "tier:working", "tier:reference"])
NODES = st.lists(st.tuples(st.just("fact"), CONTENTS, TIERS), max_size=40)


@settings(max_examples=effort.times(30), deadline=None, derandomize=True)
@given(NODES, st.integers(100, 30_000))
def test_parts_are_small_and_contain_everything_once(
    nodes: list[tuple[str, str, str]], budget: int
) -> None:
    with graph_of(*nodes) as graph:
        parts = [
            layers.context([graph.connection], ContextRequest(None, None, budget, part))
            for part in range(1, layers.parts(budget) + 1)
        ]
        every = [number for part in parts for number in numbers(part)]
        assert len(every) == len(set(every))
        of_pinned = layers.pinned_tokens([graph.connection], None)
        assert sum(part.tokens for part in parts) <= budget + min(of_pinned, MOST_PINNED)
        for part in parts:
            assert layers.units(part.text) <= ClaudeHooks.largest_answer
            assert part.tokens == tokens.estimate(part.text) <= LARGEST_PART
            assert part.text.startswith(f"<!-- ctx: {len(part.items)} node")
            assert part.text.endswith("<!-- ctx:end -->\n")
            told = layers.PREFACE if every or "left out" in part.text else layers.EMPTY
            assert (told in part.text) is (budget > 400)
        # What is left over has no room in any part.
        left = sum(tokens.estimate(content) + 60 for _, content, tier in nodes if "pin" not in tier)
        if of_pinned <= MOST_PINNED and left < min(budget // len(parts), 2_000) // 2 - 150:
            assert sorted(every) == list(range(1, len(nodes) + 1))


def test_many_parts_show_the_same_as_one_large_budget() -> None:
    nodes = [("fact", f"{number} " + "word " * 40, "tier:reference") for number in range(200)]
    with graph_of(*nodes) as graph:
        one = layers.context([graph.connection], ContextRequest(None, None, 2_500))
        assert (layers.parts(2_500), layers.parts(2_501)) == (1, 2)
        budget = 20_000
        assert layers.parts(budget) == contexts.MOST_PARTS
        parts = [
            layers.context([graph.connection], ContextRequest(None, None, budget, part))
            for part in range(1, contexts.MOST_PARTS + 1)
        ]
        assert parts[0] == one
        every = [number for part in parts for number in numbers(part)]
        assert every == list(range(200, 0, -1))[: len(every)]
        # A larger budget finds no more room: the client takes no more.
        again = layers.context([graph.connection], ContextRequest(None, None, 1_000_000))
        assert again == one
        after = layers.context([graph.connection], ContextRequest(None, None, 5_000, 99))
        assert after.items == ()


# What changed


def receipt_of(found: Context) -> dict[str, str]:
    return {item.id: item.digest for item in found.items}


def test_without_changes_there_is_no_news() -> None:
    with graph_of(("fact", "Text", "tier:pinned"), ("fact", "Away", "tier:off-context")) as graph:
        before = receipt_of(layers.context([graph.connection], ANYWHERE))
        with change_of(graph) as change:
            change.update_node(ident(2), content="Away and changed")
            change.tag(ident(1), "word:any")
        assert layers.changed_context([graph.connection], ANYWHERE, before) == NOTHING


def test_new_changed_and_removed_nodes_are_listed() -> None:
    with graph_of(
        ("fact", "Stays", "tier:reference"),
        ("fact", "Is changed", "tier:reference"),
        ("fact", "Is deleted", "tier:reference"),
        ("decision", "Is superseded", "tier:reference"),
        ("fact", "Is put away", "tier:reference"),
        ("fact", "Becomes a pin", "tier:reference"),
        ("fact", "Gets a reason", "tier:reference"),
    ) as graph:
        before = receipt_of(layers.context([graph.connection], ANYWHERE))
        with change_of(graph) as change:
            change.update_node(ident(2), content="Was changed")
            change.delete_node(ident(3))
            put(change, 8, "decision", "Supersedes", "tier:reference")
            change.link(ident(8), ident(4), "SUPERSEDES", {})
            change.set_tier(ident(5), "tier:off-context")
            change.tag(ident(6), "tier:pinned")
            change.update_node(ident(7), metadata={"rationale": "because"})
            put(change, 9, "fact", "Of another project", "tier:pinned project:other")
        wanted = ContextRequest("app", None, 2_000)
        found = layers.changed_context([graph.connection], wanted, before)
        gone = "[fact:01KF00000005], [node:01KF00000003], [decision:01KF00000004]"
        assert f"\n\n{layers.CHANGED} No longer included: {gone}.\n\n## Pinned\n" in found.text
        assert [line for line in found.text.split("\n") if line[:3] in ("- [", "  -")] == [
            "- [fact:01KF00000006] Becomes a pin",
            "  - Tags: tier:pinned, tier:reference",
            "- [fact:01KF00000007] Gets a reason",
            "  - Rationale: because",
            "- [fact:01KF00000002] Was changed",
            "- [decision:01KF00000008] Supersedes",
        ]
        assert numbers(found) == [6, 7, 2, 8]
        now = receipt_of(layers.context([graph.connection], wanted))
        assert layers.changed_context([graph.connection], wanted, now) == NOTHING


def test_a_node_that_no_longer_fits_is_not_reported_as_removed() -> None:
    with graph_of(("fact", "Old", "tier:reference")) as graph:
        before = receipt_of(layers.context([graph.connection], ContextRequest(None, None, 400)))
        with change_of(graph) as change:
            for number in range(2, 30):
                put(change, number, "fact", "word " * 20, "tier:reference")
        found = layers.changed_context([graph.connection], ContextRequest(None, None, 400), before)
        assert 1 not in numbers(found)
        assert "No longer" not in found.text


def test_changes_in_a_later_part_are_listed() -> None:
    nodes = [("fact", f"{number} " + "word " * 30, "tier:reference") for number in range(50)]
    with graph_of(*nodes) as graph:
        wanted = ContextRequest(None, None, 7_000)
        assert layers.parts(wanted.budget) == 3
        parts = [layers.context([graph.connection], wanted._replace(part=n)) for n in (1, 2, 3)]
        before = {key: value for each in parts for key, value in receipt_of(each).items()}
        assert len(before) == 50
        assert layers.changed_context([graph.connection], wanted, before) == NOTHING
        changed = {part.items[0].id for part in parts}
        with change_of(graph) as change:
            for node_id in changed:
                change.update_node(node_id, content="Now " + "word " * 30)
        found = layers.changed_context([graph.connection], wanted, before)
        assert {item.id for item in found.items} == changed


def test_removed_nodes_are_listed_within_the_budget() -> None:
    with graph_of(("fact", "New", "tier:reference")) as graph:
        for gone, budget in ((10, 100), (1_000, 2_000), (1_000, 20_000)):
            before = {str(ident(number)): "" for number in range(10, 10 + gone)}
            wanted = ContextRequest(None, None, budget)
            found = layers.changed_context([graph.connection], wanted, before)
            assert "No longer included: [node:01KF00000010]" in found.text
            assert found.tokens <= budget
            assert layers.units(found.text) <= ClaudeHooks.largest_answer


# Where an agent was


def test_the_state_has_working_nodes_and_open_questions() -> None:
    with graph_of(
        ("task", "OAuth", "tier:working task:oauth project:app"),
        ("observation", "Half done", "tier:working task:oauth"),
        ("open-question", "Why?", ""),
        ("open-question", "Elsewhere?", "project:other"),
        ("observation", "Of another task", "tier:working task:db"),
        ("open-question", "Answered?", "tier:off-context"),
        ("open-question", "Replaced?", ""),
        ("fact", "Reference", "tier:reference"),
        ("observation", "Of no task", "tier:working"),
        ("observation", "Of both", "tier:working task:db task:oauth project:app project:other"),
    ) as graph:
        with change_of(graph, "this-session") as change:
            put(change, 11, "fact", "Said in this session", "")
            put(change, 12, "fact", "Said here and put away", "tier:off-context")
            change.link(ident(11), ident(7), "SUPERSEDES", {})
        connection = graph.connection

        def state(project: str | None, current: str | None, session: str) -> list[int]:
            found = layers.state([connection], project, current, session)
            return [int(node_id[4:12]) for node_id in found]

        assert state("app", "oauth", "this-session") == [1, 11, 10, 9, 3, 2]
        assert state("app", "oauth", "another") == [1, 10, 9, 3, 2]
        assert state("app", "oauth", "") == [1, 10, 9, 3, 2]
        assert state("app", None, "another") == [1, 10, 9, 5, 3, 2]
        assert state("other", "db", "another") == [10, 9, 5, 4, 3]
        assert state(None, None, "another") == [9, 5, 3, 2]
        assert state(None, "oauth", "this-session") == [11, 9, 3, 2]


def test_the_state_comes_first() -> None:
    with graph_of(
        ("fact", "A pin", "tier:pinned"),
        ("observation", "Half done", "tier:working"),
        ("fact", "Reference", "tier:reference"),
        ("open-question", "Why?", ""),
    ) as graph:
        first = layers.state([graph.connection], None, None, "")
        made = layers.context([graph.connection], ANYWHERE, CompactionState(first))
        body = made.text.partition(f"{layers.PREFACE}\n\n")[2]
        where = "- [open-question:01KF00000004] Why?\n- [observation:01KF00000002] Half done\n"
        assert body.startswith(
            f"## Where you were\n\n{where}\n## Pinned\n\n- [fact:01KF00000001] A"
        )
        assert (body.count("Half done"), body.count("## Working")) == (1, 0)
        # What is gone since is passed over.
        again = layers.context([graph.connection], ANYWHERE, CompactionState([ident(99), *first]))
        assert again.text == made.text


@settings(max_examples=effort.times(15), deadline=None, derandomize=True)
@given(NODES, st.integers(100, 2_500))
def test_the_state_fits_into_the_budget(nodes: list[tuple[str, str, str]], budget: int) -> None:
    with graph_of(*nodes) as graph:
        first = layers.state([graph.connection], None, None, "")
        made = layers.context(
            [graph.connection], ContextRequest(None, None, budget), CompactionState(first)
        )
        of_pinned = layers.pinned_tokens([graph.connection], None)
        assert made.tokens == tokens.estimate(made.text) <= budget + min(of_pinned, MOST_PINNED)
        assert layers.units(made.text) <= ClaudeHooks.largest_answer


# What was asked for


def test_only_items_that_would_fill_an_answer_are_cut() -> None:
    with graph_of(
        ("fact", "Short", "word:a"),
        ("fact", "word " * 1_100, ""),
        ("fact", "設計" * 2_600, "tier:pinned"),
        ("fact", "😀" * 2_600, ""),
        ("fact", "x" * 100_000, ""),
    ) as graph:
        wanted = [ident(number) for number in (5, 99, 1, 2, 3, 4)]
        found = layers.items_of([graph.connection], wanted)
        assert [item.id for item, _ in found] == [ident(number) for number in (5, 1, 2, 3, 4)]
        texts = {item.label[-1]: text for item, text in found}
        assert texts["1"] == "- [fact:01KF00000001] Short\n  - Tags: word:a"
        start = "- [fact:01KF0000000{}] {}..."
        assert texts["2"] == start.format(2, ("word " * 400).strip())
        assert texts["3"] == start.format(3, "設計" * 1_000) + "\n  - Tags: tier:pinned"
        assert texts["4"] == start.format(4, "😀" * 2_000)
        assert texts["5"] == start.format(5, "x" * 2_000)
        for item, text in found:
            assert item.tokens == tokens.estimate(text)
            assert layers.units(text) <= ClaudeHooks.largest_answer // 2


def missing(parts: int) -> str:
    return f"… {parts:,} more."


BLOCKS = st.lists(
    st.tuples(st.sampled_from(["a", "word ", "設計", "😀", "é\n", ""]), st.integers(0, 60)).map(
        lambda drawn: drawn[0] * drawn[1]
    ),
    max_size=30,
)


@settings(max_examples=effort.times(80), deadline=None, derandomize=True)
@given(BLOCKS, st.integers(20, 1_500))
def test_no_answer_is_larger_than_the_limit_of_the_client(blocks: list[str], most: int) -> None:
    text, shown_blocks = layers.fit_blocks(blocks, most, missing)
    size = len(text.encode("utf-16-le")) // 2
    assert size == layers.units(text) <= most
    left_out = len(blocks) - shown_blocks
    said = missing(left_out) if left_out else ""
    assert text == "".join(blocks[:shown_blocks]) + said
    if left_out:
        # One more, and what is then missing, would not fit beside each other.
        longest = max(layers.units(missing(number)) for number in range(1, len(blocks) + 1))
        whole = "".join(blocks[: shown_blocks + 1])
        assert layers.units(whole) + longest > most


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(st.text())
def test_units_are_counted_as_in_the_client(text: str) -> None:
    assert layers.units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2
