"""From a learning to the statements that it is based on."""

from ctx.memory import walk
from ctx.memory.graph import USER
from ctx.operations import learnings
from ctx.operations.trace import TraceResult, trace
from ctx.synthesis.session_writer import synthesise
from ctx.workspace import Memory
from tests.conftest import Ctx
from tests.synthesis.test_session_writer import add_steps

STATEMENT = "Never commit to main, because the release job runs from it."
TALK = f"""
prompt: Look at the failing job. {STATEMENT} And be quick.
read: ci.yml
say: OK, I leave main alone.
"""


def traced(memory: Memory, content: str) -> TraceResult:
    (node,) = [
        each
        for each in memory.graph.nodes(memory.graph.newest((), (), None, None)[0])
        if each.content.startswith(content) and each.type == "pattern"
    ]
    types = walk.PROVENANCE
    return trace(memory, node.id, reverse=False, edge_types=types, depth=None)


def learned(memory: Memory) -> None:
    for session in ("s1", "s2"):
        add_steps(memory, TALK, session)
        synthesise(memory, session, is_over=True)
    assert learnings.learn(memory, memory.project).new == 1


def test_a_learning_is_traced_to_its_statements(memory: Memory) -> None:
    learned(memory)
    found = traced(memory, "Never commit to main")
    assert [each.type for each in found.nodes] == ["pattern", "observation"]
    assert found.nodes[0].source == "user"
    assert {(each.session, each.by, each.text) for each in found.evidence} == {
        ("s1", "user", STATEMENT),
        ("s2", "user", STATEMENT),
    }
    assert found.forgotten == 0
    with memory.transaction("test", USER):
        memory.local.execute("DELETE FROM events WHERE session = 's1'")
    partly = traced(memory, "Never commit to main")
    assert ({each.session for each in partly.evidence}, partly.forgotten) == ({"s2"}, 1)
    before = memory.user.connection.execute("SELECT count(*) FROM records").fetchone()
    assert learnings.learn(memory, memory.project) == learnings.LearnResult(0, 0, 0)
    after = memory.user.connection.execute("SELECT count(*) FROM records").fetchone()
    assert after == before, "learning again writes nothing"


def test_a_learning_about_commands_is_traced_to_its_sessions(memory: Memory) -> None:
    for number in range(3):
        script = f"prompt: Do part {number} of it.\nrun: make test\n  passed\nsay: Done.\n"
        add_steps(memory, script, f"s{number}")
        synthesise(memory, f"s{number}", is_over=True)
    learnings.learn(memory, memory.project)
    found = traced(memory, "Tests are run with")
    assert [each.type for each in found.nodes] == ["pattern", "summary", "summary", "summary"]


def test_the_command_prints_the_trace(memory: Memory, ctx: Ctx) -> None:
    learned(memory)
    (learning,) = ctx("learnings", "list", "--format=json").json["learnings"]
    ran = ctx("trace", learning["node"]["id"])
    assert ran.code == 0
    assert f"user         {STATEMENT}" in ran.out
    assert "DERIVED_FROM → " in ran.out
    said = ctx("trace", learning["node"]["id"], "--format=json").json["evidence"]
    assert [each["text"] for each in said] == [STATEMENT, STATEMENT]
