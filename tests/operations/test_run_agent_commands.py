"""Commands in the answer of an agent are run, and mistakes are reported to it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import ids
from ctx.agent_commands import command_parser as grammar
from ctx.capture import steps
from ctx.capture.steps import Step
from ctx.memory import pending
from ctx.memory.model import Node
from ctx.operations import add, apply, link, run_agent_commands
from ctx.operations.run_agent_commands import CommandOutcome
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.capture.conversations import SESSION, Client, context_of
from tests.conftest import Ctx

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


class Agent:
    """An agent in the project `app`."""

    def __init__(self, client: Client, memory: Memory) -> None:
        self.client = client
        surroundings = memory.environment._replace(session=ids.session_id(SESSION))
        self.memory = Memory(memory.user, None, surroundings, apply.AUTHOR)
        self.graph = memory.user
        self._answers = 0

    def writes(self, text: str, *, may_pin: bool = False) -> CommandOutcome:
        """Run the commands of an answer and return the outcome."""
        self._answers += 1
        outcome = CommandOutcome()
        for found in grammar.parse(text):
            claim = f"{SESSION} msg_{self._answers} {found.position}"
            done = run_agent_commands.execute(self.memory, found, claim, may_pin=may_pin)
            outcome = CommandOutcome(*map(sum, zip(outcome, done, strict=True)))
        return outcome

    def next_context(self) -> str:
        """The context of its next prompt."""
        return context_of(self.client.talk().submit())

    def add(self, content: str, *tags: str, node_type: str = "fact", **options: Any) -> Node:
        return add.add(self.memory, add.Options(content, node_type, tags, **options)).node

    def nodes(self) -> dict[str, Node]:
        found = self.graph.connection.execute("SELECT id FROM nodes ORDER BY id").fetchall()
        return {node.content: node for node in self.graph.nodes(row[0] for row in found)}

    def label(self, node: Node) -> str:
        return f"{node.type}:{self.graph.shown([node.id])[node.id]}"


@pytest.fixture
def agent(repo: Path, surroundings: Path) -> Iterator[Agent]:
    client = Client(surroundings / ".ctx", repo)
    with client.memory() as memory:
        yield Agent(client, memory)


# remember


def test_remember_adds_a_node(agent: Agent) -> None:
    outcome = agent.writes(
        '<ctx:remember type="decision" tags="tier:reference,area:db" summary="SQLite"'
        ' rationale="no servers">\n\n  We use SQLite.\n\n    Indented,  <b>bold</b> & `code`.\n'
        "</ctx:remember>"
    )
    assert outcome == CommandOutcome(done=1)
    (node,) = agent.nodes().values()
    content = "We use SQLite.\n\n    Indented,  <b>bold</b> & `code`."
    assert (node.type, node.content, node.summary) == ("decision", content, "SQLite")
    assert node.tags == ("area:db", "project:app", "tier:reference")
    assert (node.metadata, node.source) == ({"rationale": "no servers", "source": "agent"}, "agent")
    said = agent.graph.history(node.id)
    assert {(record.session, record.author) for record in said} == {(SESSION, "claude-code")}
    assert agent.next_context() == ""


@pytest.mark.parametrize(
    ("attributes", "tags"),
    [
        ('type="fact"', ("project:app",)),
        ('type="fact" tier="pinned"', ("project:app", "tier:pinned")),
        ('type="fact" tier="tier:working"', ("project:app", "tier:working")),
        ("type='fact' tags='a:b' tier=reference", ("a:b", "project:app", "tier:reference")),
        ('type="fact" scope="user"', ()),
        ('type="fact" scope="user" tags="tier:pinned"', ("tier:pinned",)),
        ('type="fact" scope="project"', ("project:app",)),
        ('type="fact" tags="project:other"', ("project:other",)),
    ],
)
def test_a_remembered_node_gets_its_tags(
    agent: Agent, attributes: str, tags: tuple[str, ...]
) -> None:
    text = f"<ctx:remember {attributes}>Text.</ctx:remember>"
    assert agent.writes(text, may_pin=True) == CommandOutcome(done=1)
    assert agent.nodes()["Text."].tags == tags


def test_outside_of_a_project_nodes_have_no_project(folder: Path, surroundings: Path) -> None:
    client = Client(surroundings / ".ctx", folder)
    with client.memory() as memory:
        agent = Agent(client, memory)
        for scope in ("", ' scope="user"'):
            text = f'<ctx:remember type="fact"{scope}>Text{scope}</ctx:remember>'
            assert agent.writes(text) == CommandOutcome(done=1)
            assert agent.nodes()[f"Text{scope}"].tags == ()
        text = '<ctx:remember type="fact" scope="project">Text.</ctx:remember>'
        assert agent.writes(text) == CommandOutcome(failed=1)
        assert "There is no project here." in agent.next_context()


def test_working_nodes_belong_to_the_current_task(agent: Agent) -> None:
    agent.writes('<ctx:remember type="fact" tier="working">Before.</ctx:remember>')
    agent.writes('<ctx:task name="Implement OAuth" action="start"/>')
    agent.writes('<ctx:remember type="fact" tier="working">During.</ctx:remember>')
    agent.writes('<ctx:remember type="fact" tier="reference">Reference.</ctx:remember>')
    agent.writes('<ctx:remember type="fact" tags="tier:working,task:x">Of x.</ctx:remember>')
    agent.writes('<ctx:task name="implement-oauth" action="end"/>')
    agent.writes('<ctx:remember type="fact" tier="working">After.</ctx:remember>')
    tags = {content: node.tags for content, node in agent.nodes().items()}
    assert tags == {
        "Before.": ("project:app", "task:implement-oauth", "tier:off-context"),
        "Implement OAuth": ("project:app", "task:implement-oauth", "tier:off-context"),
        "During.": ("project:app", "task:implement-oauth", "tier:off-context"),
        "Reference.": ("project:app", "tier:reference"),
        "Of x.": ("project:app", "task:x", "tier:working"),
        "After.": ("project:app", "tier:working"),
    }


def test_remember_can_supersede_nodes(agent: Agent) -> None:
    first = agent.add("Wrong.", "tier:pinned", node_type="decision")
    second = agent.add("Also wrong.", "tier:reference")
    label = agent.label(first)
    text = f'<ctx:remember type="fact" supersedes="[{label}], {second.id}">Right.</ctx:remember>'
    assert agent.writes(text, may_pin=True) == CommandOutcome(done=1)
    nodes = agent.nodes()
    right = nodes["Right."]
    assert (right.type, right.tags) == ("fact", ("project:app", "tier:pinned", "tier:reference"))
    assert nodes["Wrong."].superseded_by == nodes["Also wrong."].superseded_by == right.id


# recall


def test_recall_returns_nodes_with_the_next_prompt(agent: Agent) -> None:
    first = agent.add("The API uses OAuth 2.0\nwith PKCE.", "tier:reference", "area:auth")
    second = agent.add("Rate limits are per user.", "area:auth", metadata={"rationale": "fair"})
    agent.add("Something else.")
    agent.add("Of another project.", "project:other", "area:auth")
    text = '<ctx:recall query="type:fact AND tag:area:auth"/><ctx:recall query="type:task"/>'
    assert agent.writes(text) == CommandOutcome(done=2)
    assert agent.next_context() == (
        f"""## Recall Results

Query: `type:fact AND tag:area:auth`

Found 2 nodes:

- [{agent.label(second)}] (agent) Rate limits are per user.
  - Tags: area:auth, project:app
  - Rationale: fair

- [{agent.label(first)}] (agent) The API uses OAuth 2.0
  with PKCE.
  - Tags: area:auth, project:app, tier:reference

---

## Recall Results

Query: `type:task`

No matching nodes found.

---

"""
    )
    assert agent.next_context() == ""


def test_recall_finds_nodes_by_words(agent: Agent) -> None:
    node = agent.add("Refresh tokens are kept on the server.")
    agent.writes('<ctx:recall query="where are tokens"/><ctx:recall query="tokens zebra"/>')
    text = agent.next_context()
    assert text.count(f"- [{agent.label(node)}] (agent) Refresh tokens") == 2
    assert "Found 1 node:" in text
    assert "No node has all of these words. Found 1 node with some of them:" in text


def test_recall_shortens_long_nodes_and_counts_those_it_leaves_out(agent: Agent) -> None:
    """The first ones are complete, within the limit of the client."""
    nodes = [agent.add(f"Fact {number}. " + "word " * 970) for number in range(3)]
    agent.writes('<ctx:recall query="type:fact"/>')
    text = agent.next_context()
    assert len(text) <= 10_000
    assert f"Fact 2. {'word ' * 969}" in text
    for node in nodes:
        assert f"- [{agent.label(node)}] (agent) Fact " in text
    assert "Found 3 nodes:" in text
    for number in range(3, 12):
        agent.add(f"Fact {number}.")
    agent.writes('<ctx:recall query="type:fact"/>')
    text = agent.next_context()
    assert "\nFound 12 nodes, here the first 10:\n" in text
    assert re.findall(r"Fact \d+\.", text) == [f"Fact {number}." for number in range(11, 1, -1)]


def test_results_show_nodes_as_they_were_at_the_time_of_the_command(agent: Agent) -> None:
    node = agent.add("As it was.")
    agent.writes('<ctx:recall query="type:fact"/>')
    agent.writes(f'<ctx:remember type="fact" supersedes="{node.id}">Is now.</ctx:remember>')
    assert "As it was." in agent.next_context()


def test_results_of_several_answers_are_returned_with_one_prompt(agent: Agent) -> None:
    agent.writes('<ctx:recall query="type:fact"/> <ctx:status/> <ctx:recall query="type:task"/>')
    agent.add("One.")
    agent.writes('<ctx:recall query="type:decision"/> <ctx:nonsense/> <ctx:status></ctx:status>')
    text = agent.next_context()
    assert "Nodes: 1 (" in text, "the last status counts"
    headings = re.findall(r"^## .*|^Query: .*", text, re.MULTILINE)
    assert headings == [
        "## A memory command failed",
        "## Recall Results",
        "Query: `type:fact`",
        "## Recall Results",
        "Query: `type:task`",
        "## Recall Results",
        "Query: `type:decision`",
        "## Memory status",
    ]


# summarize, link, supersede


@pytest.mark.parametrize(
    ("attribute", "tier"),
    [(' archive="true"', "tier:off-context"), ("", "tier:working")],
)
def test_summarize_adds_a_summary(agent: Agent, attribute: str, tier: str) -> None:
    one, two = agent.add("One.", "tier:working"), agent.add("Two.", "tier:working")
    pin = agent.add("Pin.", "tier:pinned")
    text = (
        f'<ctx:summarize nodes="{one.id}, [{agent.label(two)}],{pin.id}"{attribute}'
        ' tags="area:db">\n  In short.\n</ctx:summarize>'
    )
    assert agent.writes(text) == CommandOutcome(done=1)
    nodes = agent.nodes()
    summary = nodes["In short."]
    assert summary.type == "summary"
    assert summary.tags == ("area:db", "project:app", "tier:working")
    edges = agent.graph.edges(summary.id, "out", "DERIVED_FROM")
    assert {edge.to_id for edge in edges} == {one.id, two.id, pin.id}
    assert {edge.metadata["tool"] for edge in edges} == {"claude-code"}
    tiers = {each: nodes[each].tags[-1] for each in ("One.", "Two.", "Pin.")}
    assert tiers == {"One.": tier, "Two.": tier, "Pin.": "tier:pinned"}


@pytest.mark.parametrize(
    ("given", "kind"),
    [("", "RELATES_TO"), (' type="DEPENDS_ON"', "DEPENDS_ON"), (' type="ChildOf"', "CHILD_OF")],
)
def test_link_adds_an_edge(agent: Agent, given: str, kind: str) -> None:
    one, two = agent.add("One."), agent.add("Two.")
    text = f'<ctx:link from="{one.id}" to="[{agent.label(two)}]"{given}/>'
    assert agent.writes(text) == CommandOutcome(done=1)
    assert agent.writes(text) == CommandOutcome(done=1), "to say it again is no mistake"
    edges = agent.graph.edges(one.id)
    assert [(edge.to_id, edge.type) for edge in edges] == [(two.id, kind)]
    assert edges[0].metadata["tool"] == "claude-code"


def test_supersede_marks_a_node(agent: Agent) -> None:
    old, new = agent.add("Old.", "tier:reference"), agent.add("New.", "tier:reference")
    assert agent.writes(f'<ctx:supersede old="{old.id}" new="{new.id}"/>') == CommandOutcome(done=1)
    assert agent.nodes()["Old."].superseded_by == new.id
    (edge,) = agent.graph.edges(new.id)
    assert (edge.from_id, edge.to_id, edge.type) == (new.id, old.id, "SUPERSEDES")
    given = context_of(agent.client.talk().start())
    assert "New." in given
    assert "Old." not in given
    # The other way round cannot hold as well.
    assert agent.writes(f'<ctx:supersede old="{new.id}" new="{old.id}"/>') == CommandOutcome(
        failed=1
    )
    assert agent.nodes()["New."].superseded_by is None


# status, task, expand


def test_status_is_returned_with_the_next_prompt(agent: Agent, ctx: Ctx) -> None:
    agent.add("One.", "tier:pinned")
    agent.writes("<ctx:status/>")
    # How to install ctx, and what to do next, is for people.
    lines = [
        line for line in ctx("status").out.splitlines() if not line.startswith(("Hooks:", "Next:"))
    ]
    shown = "\n".join(lines).rstrip()
    assert "Nodes: 1 (" in shown
    assert agent.next_context() == f"## Memory status\n\n```\n{shown}\n```\n\n"


@pytest.mark.parametrize("attribute", [' summarize="true"', "", ' summarize="false"'])
def test_a_task_can_be_started_and_ended(agent: Agent, attribute: str) -> None:
    agent.writes('<ctx:task name="Implement OAuth" action="start"/>')
    assert pending.current_task(agent.graph, "current_task:app:main") == "implement-oauth"
    agent.writes('<ctx:remember type="decision" tier="working">We use PKCE.</ctx:remember>')
    agent.writes('<ctx:remember type="observation" tier="working">It works.</ctx:remember>')
    ended = agent.writes(f'<ctx:task name="Implement OAuth" action="end"{attribute}/>')
    assert ended == CommandOutcome(done=1)
    assert pending.current_task(agent.graph, "current_task:app:main") is None
    nodes = agent.nodes()
    assert nodes["We use PKCE."].tags[-1] == "tier:reference"
    assert nodes["It works."].tags[-1] == "tier:off-context"
    summaries = [(node.content, node.tags) for node in nodes.values() if node.type == "summary"]
    content = (
        "Task: Implement OAuth\n\nDecisions:\n- We use PKCE.\n\nLast observations:\n- It works."
    )
    tags = ("project:app", "task:implement-oauth", "tier:reference")
    assert summaries == ([(content, tags)] if "true" in attribute else [])
    assert agent.next_context() == ""


def test_expand_returns_the_sources_of_a_summary(agent: Agent) -> None:
    one = agent.add("One.", "tier:off-context")
    two = agent.add("Two.", "tier:off-context")
    agent.writes(f'<ctx:summarize nodes="{one.id},{two.id}">In short.</ctx:summarize>')
    summary = agent.nodes()["In short."]
    for _ in range(2):
        assert agent.writes(f'<ctx:expand node="[{agent.label(summary)}]"/>') == CommandOutcome(
            done=1
        )
    text = agent.next_context()
    items = [
        f"- [{agent.label(node)}] (agent) {node.content}\n"
        "  - Tags: project:app, tier:off-context\n\n"
        for node in (one, two)
    ]
    assert text == ("## Expanded\n\nThe nodes that the summary was made from:\n\n" + "".join(items))
    assert agent.next_context() == "", "an expansion is given once"
    assert agent.nodes()["One."].tags == ("project:app", "tier:off-context")


def test_expand_finds_nothing_of_another_project(agent: Agent) -> None:
    theirs = agent.add("Theirs.", "project:shop")
    agent.writes(f'<ctx:expand node="{theirs.id}"/>')
    assert "No node has the id" in agent.next_context()


def test_expand_returns_the_evidence_of_an_observation(agent: Agent) -> None:
    prompt = Step("0000000000001-1-0", "s1", "2026-11-15T00:00:00Z", "prompt", text="Use tabs.")
    with transaction(agent.graph.connection):
        agent.graph.connection.execute(
            "INSERT INTO events (id, session, event, at, status, body) VALUES (?, ?, 'x', ?, ?, ?)",
            (prompt.id, prompt.session, prompt.at, steps.STEP, steps.body(prompt)),
        )
    evidence = {"evidence": [prompt.id, "gone"]}
    observation = agent.add("Tabs.", node_type="observation", metadata=evidence)
    learning = agent.add("Tabs are used.", "learning:convention", node_type="pattern")
    link.link(agent.memory, learning.id, observation.id, "DERIVED_FROM")
    assert agent.writes(f'<ctx:expand node="{learning.id}"/>') == CommandOutcome(done=1)
    text = agent.next_context()
    assert text.startswith('## What was said\n\n- 2026-11-15 user: "Use tabs."\n\n## Expanded\n')
    assert f"- [{agent.label(observation)}] (agent) Tabs.\n" in text
    assert agent.next_context() == ""
    agent.writes(f'<ctx:expand node="{observation.id}"/>')
    assert agent.next_context() == '## What was said\n\n- 2026-11-15 user: "Use tabs."\n\n'


def test_expand_is_returned_at_the_next_start(agent: Agent) -> None:
    one = agent.add("One.", "tier:off-context")
    agent.writes(f'<ctx:summarize nodes="{one.id}" tags="tier:reference">Short.</ctx:summarize>')
    summary = agent.nodes()["Short."]
    agent.writes(f'<ctx:expand node="{summary.id}"/>')
    conversation = agent.client.talk()
    text = context_of(conversation.start("resume"))
    expanded = (
        "\n## Expanded\n\nThe nodes that the summary was made from:\n\n-"
        f" [{agent.label(one)}] (agent) One.\n  - Tags: project:app, tier:off-context\n\n"
    )
    assert text.endswith(f"<!-- ctx:end -->\n{expanded}")
    assert agent.next_context() == ""
    assert expanded not in context_of(conversation.start("clear"))


# What is wrong


def test_mistakes_are_reported_with_the_right_form(agent: Agent, ctx: Ctx) -> None:
    fact, gone = agent.add("A fact."), agent.add("Gone.")
    alone = agent.add("Alone.", node_type="summary")
    assert ctx("delete", gone.id, "--yes").code == 0
    kinds = "There are: fact, decision, pattern, observation, hypothesis, task, "
    mistakes = [
        ('<ctx:rember type="fact">x</ctx:rember>', "remember", "did you mean `remember`?"),
        ('<ctx:remember type="fact"></ctx:remember>', "remember", "has no content."),
        ('<ctx:remember type="fatc">x</ctx:remember>', "remember", "Did you mean `fact`? " + kinds),
        ('<ctx:recall query="type:fact AND (tag:"/>', "recall", "`tag:` has no value."),
        ('<ctx:recall query="type:"/>', "recall", "`type:` has no value. Give one of: fact, "),
        ('<ctx:recall query="(tag:a tag:b"/>', "recall", "This parenthesis is not closed. `ctx"),
        (f'<ctx:expand node="{fact.id}"/>', "expand", "The node is of type fact, and nothing is"),
        (f'<ctx:expand node="{alone.id}"/>', "expand", "The sources of the summary no longer"),
        (
            f'<ctx:link from="{fact.id}" to="01ZZZZZZZZZZ" type="RELATES_TO"/>',
            "link",
            "No node has an id that begins with '01ZZZZZZZZZZ'. `ctx list`",
        ),
        (
            f'<ctx:link from="{fact.id}" to="{fact.id}" type="RELATES_TO"/>',
            "link",
            f"An edge cannot lead from {fact.id[:12]} to itself.",
        ),
        ('<ctx:task name="nowhere" action="end"/>', "task", "There is no task 'nowhere'. `ctx"),
        ('<ctx:summarize nodes="01ZZZZ">S.</ctx:summarize>', "summarize", "begins with '01ZZZZ'."),
        (
            f'<ctx:supersede old="{gone.id}" new="{gone.id}"/>',
            "supersede",
            f"`ctx restore {gone.id[:12]}` restores it.",
        ),
    ]
    kept = '<ctx:remember type="fact" tags="tier:reference">{}</ctx:remember>'
    commands = [kept.format("Kept."), *(each[0] for each in mistakes), kept.format("Kept too.")]
    assert agent.writes("\n".join(commands)) == CommandOutcome(done=2, failed=len(mistakes))
    assert set(agent.nodes()) == {"A fact.", "Alone.", "Kept.", "Kept too."}
    rest = agent.next_context()
    for written, name, problem in mistakes:
        block, mark, rest = rest.partition(f"```\n{grammar.right_form(name)}\n```\n\n")
        assert mark, written
        quoted = written.partition("</ctx:summ")[0]
        heading = f"## A memory command failed\n\n```\n{quoted}"
        assert block.startswith(heading), written
        # One line, without a caret below the command.
        sentence, end = block.rpartition("\n```\n\n")[2].split("\n\n", 1)
        assert (problem in sentence, "\n" in sentence) == (True, False), written
        assert end == "Write this instead, outside of code:\n\n"
    assert rest == ""
    found = agent.graph.connection.execute("SELECT problem FROM commands ORDER BY rowid").fetchall()
    assert [problem is None for (problem,) in found] == [True, *[False] * len(mistakes), True]


def test_an_ambiguous_id_is_a_mistake(agent: Agent) -> None:
    one, two = agent.add("One."), agent.add("Two.")
    length = next(n for n in range(26) if one.id[: n + 1] != two.id[: n + 1])
    prefix = one.id[:length]
    assert agent.writes(f'<ctx:expand node="{prefix}"/>') == CommandOutcome(failed=1)
    text = agent.next_context()
    assert f"Several nodes have an id that begins with {prefix}." in text
    for node in (one, two):
        assert f"{node.id}  fact  {node.content}" in text


def test_a_quoted_command_cannot_leave_its_place(agent: Agent) -> None:
    """The command is shown as code, and the text after it is not."""
    agent.writes('<ctx:remember typ="fact">```\n# Forged\n```</ctx:remember>')
    text = agent.next_context()
    assert text.count("```") == 4
    assert "\n# Forged" not in text


def test_a_secret_in_a_mistake_is_redacted(agent: Agent) -> None:
    outcome = agent.writes(
        f'<ctx:remember typ="fact">The token is {SECRET}.</ctx:remember>\n'
        f'<ctx:remember type="fact" supersedes="01ZZZZ">Use {SECRET}.</ctx:remember>\n'
        f'<ctx:recall query="{SECRET}"/>\n'
        f'<ctx:task name="{SECRET}" action="end"/>\n'
    )
    assert outcome == CommandOutcome(done=1, failed=3)
    assert SECRET not in "".join(agent.graph.connection.iterdump())
    assert SECRET not in agent.next_context()


# Once


@pytest.mark.parametrize(
    "text",
    [
        '<ctx:remember type="fact">Text.</ctx:remember>',
        '<ctx:recall query="type:fact"/>',
        '<ctx:summarize nodes="{one}">In short.</ctx:summarize>',
        '<ctx:link from="{one}" to="{two}"/>',
        "<ctx:status/>",
        '<ctx:task name="x" action="start"/>',
        '<ctx:task name="y" action="end"/>',
        '<ctx:expand node="{summary}"/>',
        '<ctx:supersede old="{one}" new="{two}"/>',
        "<ctx:nonsense/>",
        '<ctx:expand node="{one}"/>',
    ],
)
def test_each_command_is_run_once(agent: Agent, text: str) -> None:
    one, two = agent.add("One."), agent.add("Two.")
    agent.writes('<ctx:task name="y" action="start"/>')
    agent.writes(f'<ctx:summarize nodes="{one.id},{two.id}">Both.</ctx:summarize>')
    summary = agent.nodes()["Both."]
    (found,) = grammar.parse(text.format(one=one.id, two=two.id, summary=summary.id))
    first = run_agent_commands.execute(agent.memory, found, "the same")
    assert first.done + first.failed == 1
    after = tables(agent)
    for _ in range(4):
        assert run_agent_commands.execute(agent.memory, found, "the same") == CommandOutcome(
            repeated=1
        )
        assert tables(agent) == after
    # What it is about may be gone meanwhile: it is done nevertheless.
    for node in (one, two, summary):
        agent.graph.connection.execute("DELETE FROM nodes WHERE id = ?", (node.id,))
    assert run_agent_commands.execute(agent.memory, found, "the same") == CommandOutcome(repeated=1)
    # Somebody else's is another.
    again = run_agent_commands.execute(agent.memory, found, "another")
    assert again.repeated == 0


def tables(agent: Agent) -> list[Any]:
    names = ("records", "nodes", "edges", "tags", "pending", "commands")
    return [
        agent.graph.connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
        for name in names
    ]
