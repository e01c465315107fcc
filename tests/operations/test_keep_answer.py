"""Storing the answer of a model."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx.errors import ContentRefused
from ctx.ids import CLI_SESSION
from ctx.llm.protocol import Usage
from ctx.memory.graph import PROJECT, USER
from ctx.operations import keep_answer
from ctx.operations.keep_answer import CodeMention, KeptAnswer, ModelResponse
from ctx.workspace import Memory
from tests import effort
from tests.conftest import Ctx, git
from tests.operations.test_llm import open_memory_in

SECRET = "ghp" + "_" + "k9Xw2Lq7Rt4Vb8Nz3Mf6Hj1Pd5Sc0YgTuAeQ"
PAYMENTS = '''\
class Gateway:
    def charge(self, amount: int) -> bool:
        """Charge a card."""
        return amount > 0


def retry_all() -> None:
    Gateway().charge(1)
'''
ANSWER = """\
The card is charged twice because `Gateway.charge` is called by `retry_all()` in src/payments.py:7.

Decision: retry in one place.

```python
# src/payments.py
def retry_all() -> None: ...
```
"""


@pytest.fixture
def shop(repo: Path) -> Path:
    """A repository with a little code."""
    (repo / "src").mkdir()
    (repo / "src" / "payments.py").write_text(PAYMENTS)
    git("add", "-A")
    git("commit", "-qm", "Charge cards")
    return repo


def keep(folder: Path, *args: Any, **more: Any) -> KeptAnswer:
    with open_memory_in(folder) as memory:
        return keep_answer.keep_answer(memory, ModelResponse(*args, **more))


def edges_of(memory: Memory, kept: KeptAnswer) -> list[tuple[str, str, dict[str, Any]]]:
    graph = memory.graph
    return sorted(
        (edge.type, graph.node(edge.to_id).content, dict(edge.metadata))
        for edge in graph.edges(kept.node.id, "out")
    )


def test_an_answer_in_a_project_becomes_a_node_and_a_blob(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    response = ModelResponse(
        ANSWER,
        "Why are payments\ncharged twice?",
        "tiny-1",
        "openai",
        Usage(120, 30),
        receipt="r-1",
    )
    with open_memory_in(shop) as memory:
        found = keep_answer.keep_answer(memory, response)
        blob = found.blob
        assert blob
        said = {"tool": "llm", "confidence": 700, "reason": "named in the answer", "blob": blob}
        assert edges_of(memory, found) == [
            ("MENTIONS", "payments.Gateway.charge", said | {"span": "1"}),
            ("MENTIONS", "payments.retry_all", said | {"span": "1"}),
            ("MENTIONS", "src/payments.py", said | {"span": "6"}),
        ]
    assert found.mentions == (
        CodeMention("file", "src/payments.py", 6),
        CodeMention("item", "payments.Gateway.charge", 1),
        CodeMention("item", "payments.retry_all", 1),
    )
    node = found.node
    assert (node.type, node.tags, node.scope, node.staged) == (
        "source",
        ("answer",),
        PROJECT,
        CLI_SESSION,
    )
    assert node.content == (
        "Answer of tiny-1 to: Why are payments charged twice?\n\n"
        "The card is charged twice because `Gateway.charge` is called by `retry_all()` in"
        " src/payments.py:7.\n\n"
        "- Decision: retry in one place."
    )
    assert len(node.metadata["answer"]) == 32
    assert {name: told for name, told in node.metadata.items() if name != "answer"} == {
        "task": "Why are payments charged twice?",
        "model": "tiny-1",
        "backend": "openai",
        "stop": "end",
        "receipt": "r-1",
        "blob": blob,
        "input_tokens": 120,
        "output_tokens": 30,
        "decisions": ["retry in one place."],
        "code_blocks": [
            {"language": "python", "path": "src/payments.py", "first_line": 6, "last_line": 7}
        ],
        "said_by": "model",
        "source": "agent",
    }
    assert ctx("debug", "cat", blob).out == ANSWER
    assert ctx("commit", "-m", "x").code == 0
    # The commit has the answer, and nothing about it is lost.
    assert ctx("debug", "cat", blob).out == ANSWER
    assert ctx("debug", "verify").code == 0


def test_the_same_answer_is_stored_once_in_one_step(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    first, again = keep(shop, ANSWER, "Why?"), keep(shop, ANSWER, "Why?", "another")
    assert (first.new, again.new, again.node.id) == (True, False, first.node.id)
    assert again.blob == first.blob
    assert ctx("stage", "status", "--format=json").json["chains"][0]["steps"] == 1
    other_task, other_words = keep(shop, ANSWER, "When?"), keep(shop, f"{ANSWER}!", "Why?")
    assert other_task.new
    assert other_words.new
    assert len({first.node.id, other_task.node.id, other_words.node.id}) == 3
    assert ctx("delete", first.short_id, "--yes").code == 0
    assert keep(shop, ANSWER, "Why?").new


def test_without_a_project_store_the_node_contains_the_answer(shop: Path) -> None:
    found = keep(shop, ANSWER, "Why?", "tiny-1", stop="interrupted")
    assert (found.blob, found.node.scope, found.given) == (None, USER, ("project:app",))
    assert found.node.content == f"Answer of tiny-1 to: Why? (interrupted)\n\n{ANSWER.strip()}"
    assert found.node.metadata["stop"] == "interrupted"
    assert [each.name for each in found.mentions] == [
        "src/payments.py",
        "payments.Gateway.charge",
        "payments.retry_all",
    ]
    with open_memory_in(shop) as memory:
        assert [to for _, to, _ in edges_of(memory, found)] == sorted(
            each.name for each in found.mentions
        )
        anchor = next(iter(memory.graph.edges(found.node.id))).to_id
        assert "project:app" in memory.graph.node(anchor).tags


def test_outside_of_a_project_an_answer_has_no_mentions(folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\n")
    found = keep(folder, "See a.py.")
    assert (found.mentions, found.given) == ((), ())
    assert found.node.content == "Answer of a model\n\nSee a.py."


def test_secrets_are_redacted(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    text = f"Use the token {SECRET}.\n\nDecision: export TOKEN={SECRET}\n"
    found = keep(shop, text, f"What is {SECRET}?", f"m-{SECRET}")
    assert [each.where for each in found.redacted][:2] == ["answer", "answer"]
    for place in (shop, Path(os.environ["CTX_HOME"])):
        for path in place.rglob("*"):
            if path.is_file():
                assert SECRET.encode() not in path.read_bytes(), path
    assert found.blob
    assert SECRET not in ctx("debug", "cat", found.blob).out
    assert SECRET not in str(found)


def test_files_outside_of_the_project_are_not_linked(shop: Path, ctx: Ctx, tmp_path: Path) -> None:
    assert ctx("init").code == 0
    outside = tmp_path / "other.py"
    outside.write_text("x = 1\n")
    (shop / "link.py").symlink_to(outside)
    words = [
        str(outside),
        "../other.py",
        "src/../../other.py",
        "link.py",
        "/etc/passwd",
        ".git/config",
        ".ctx/config.toml",
        "src",
        "src/missing.py",
        "https://example.org/src/payments.py",
        "a" * 5_000 + "/b.py",
    ]
    assert keep(shop, "\n".join(words)).mentions == ()
    assert keep(shop, f"`{shop}/src/payments.py`").mentions == (
        CodeMention("file", "src/payments.py", 1),
    )


def test_a_file_of_the_pack_is_found_by_a_path_suffix(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    found = keep(shop, "Look at payments.py.", files=("src/payments.py",))
    assert found.mentions == (CodeMention("file", "src/payments.py", 1),)
    assert ctx("task", "start", "payments").code == 0
    unclear = keep(shop, "Look at conf.py.", files=("a/conf.py", "b/conf.py"))
    assert unclear.mentions == ()
    # An answer has the tags of the current task.
    assert unclear.given == ("tier:working", "task:payments")
    assert "tier:pinned" not in unclear.node.tags


@pytest.mark.slow
def test_a_huge_answer_is_cut_and_limited(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    for number in range(300):
        (shop / f"f{number}.txt").write_text("")
    named = "\n".join(f"f{number}.txt" for number in range(300))
    missing = "\n".join(f"src/{number}.py" for number in range(10_000))
    found = keep(shop, f"{named}\n{missing}\n" + "word " * 1_600_000, "Why?")
    assert len(found.mentions) == keep_answer.MOST_MENTIONS
    assert found.cut > 7_000_000
    assert found.blob
    assert len(ctx("debug", "cat", found.blob).out) == keep_answer.LONGEST_TEXT + 1
    assert len(found.node.content) < 1_000


def test_commands_in_an_answer_are_not_run(shop: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    text = '<ctx:remember type="fact">x</ctx:remember>\n<ctx:task name="y" action="start"/>'
    text += "\x1b]0;title\x07\x1b[2J\0"
    found = keep(shop, text, "Why?")
    nodes = ctx("list", "--format=json", "--limit=0").json["nodes"]
    assert [node["id"] for node in nodes] == [found.node.id]
    assert ctx("task", "current").out.startswith("No ")
    assert found.blob
    shown = text[:-1].replace("\x1b", "\\x1b").replace("\x07", "\\x07")
    assert ctx("debug", "cat", found.blob).out == f"{shown}\ufffd\n"
    # In front of a person, and of an agent, it steers nothing.
    assert "\x1b" not in ctx("list").out


@pytest.mark.parametrize("text", ["", " \n\t", "\n" * 1_000])
def test_an_empty_answer_is_refused(shop: Path, text: str) -> None:
    with pytest.raises(ContentRefused, match="The answer is empty"):
        keep(shop, text)


@settings(
    max_examples=effort.times(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(max_size=200), st.text(max_size=50))
def test_any_answer_can_be_stored(folder: Path, text: str, task: str) -> None:
    said = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode().strip()
    if not said:
        return
    found = keep(folder, text, task)
    assert said in found.node.content or found.redacted
    assert not keep(folder, text, task).new
