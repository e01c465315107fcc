"""Text that ctx injected is recognised when it comes back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ctx.capture.injected_text import without_injected
from tests.capture.conversations import Client, context_of
from tests.conftest import Ctx


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain # text", "plain # text"),
        ("a <!-- ctx: 1 node, 9 tokens -->\nx\n<!-- ctx:end --> b", "a  b"),
        ("a <!-- ctx: 1 node, 9 tokens -->\nx", "a "),
        ("<system-reminder>\nx\n</system-reminder>\nGo on.", "\nGo on."),
        ("A.\n\n## Recall Results\n\nQuery: `x`\n\n- [fact:01] y\n\n---\n\nB.", "A.\n\n\n\nB."),
        ("## Memory status\n\n```\nnodes 3\n```\nB.", "\nB."),
        ("A.\n\n## A memory command failed\n\n```\nx\n```\n\nIt was wrong.", "A.\n\n"),
        # As older versions wrote it.
        ("A.\n\n## A memory command was not done\n\n```\nx\n```\n\nIt was wrong.", "A.\n\n"),
        ("## A secret was not stored\n\nRemoved: x.\n\nB.", "B."),
        ("## A secret was not kept\n\nMemory holds none.\n\nB.", "B."),
        ("# Context for `fix it`\n\nConfidence 71 %.", ""),
        ('Well. <ctx:recall query="x"/> B', "Well.  B"),
        ("Well. <ctx:remember type='fact'>\nx\n</ctx:remember> B", "Well.  B"),
        ("In code: `<ctx:status/>` is a command.", "In code: `<ctx:status/>` is a command."),
        (
            "<!-- ctx-like --> and ## Recall of results",
            "<!-- ctx-like --> and ## Recall of results",
        ),
    ],
)
def test_injected_text_is_removed(text: str, left: str) -> None:
    assert without_injected(text) == left


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    assert ctx("add", "--type=fact", "--tag=tier:reference", "Money is in cents.").code == 0
    return Client(surroundings / ".ctx", repo)


def test_the_answers_of_hooks_are_recognised(client: Client) -> None:
    conversation = client.talk()
    given = context_of(conversation.start())
    assert "Money is in cents." in given
    assert given.strip()
    assert not without_injected(given).strip()
    asked = '<ctx:recall query="money"/> <ctx:status/> <ctx:nonsense/>'
    conversation.answer(asked)
    client.apply()
    given = context_of(conversation.submit())
    assert "## Recall Results" in given
    assert given.strip()
    assert not without_injected(given).strip()


def command_outputs(ctx: Ctx) -> list[Callable[[], str]]:
    return [
        lambda: ctx("compose").out,
        lambda: ctx("recall", "money", "--format", "markdown").out,
        lambda: ctx("query", "where is money kept", "--format", "markdown").out,
    ]


def test_the_output_of_commands_is_recognised(client: Client, ctx: Ctx) -> None:
    assert client.home
    for shown in command_outputs(ctx):
        assert shown().strip()
        assert not without_injected(shown()).strip(), shown()


def test_long_texts_take_linear_time() -> None:
    for piece in ("<!-- ctx: ", "<ctx:", "## Memory status\n\n```", "<system-reminder>", "#"):
        without_injected(piece * 20_000)
