"""`ctx help TOPIC`: texts that fit on a screen, with examples that run."""

import shlex
from pathlib import Path

import pytest

from ctx.cli import help_topics
from ctx.cli.commands import COMMANDS
from tests.cli.conftest import Add
from tests.conftest import Ctx

EXAMPLES = [
    (topic, line.strip())
    for topic in help_topics.TOPICS
    for line in help_topics.text(topic).partition("examples:\n")[2].splitlines()
]


def test_the_topics() -> None:
    assert set(help_topics.TOPICS) == {"tiers", "scopes", "sessions", "packs", "filters", "trust"}
    assert {topic for topic, _ in EXAMPLES} == set(help_topics.TOPICS)


@pytest.mark.parametrize("topic", help_topics.TOPICS)
def test_a_topic_fits_on_a_screen(topic: str) -> None:
    lines = help_topics.text(topic).splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("topic", help_topics.TOPICS)
def test_help_shows_a_topic(topic: str, ctx: Ctx) -> None:
    text = ctx("help", topic).out
    assert text.startswith(help_topics.text(topic))
    assert ctx("help", topic, "--format", "json").json == {"help": text}


def test_a_command_with_the_name_of_a_topic_still_has_its_help(ctx: Ctx) -> None:
    for name in set(help_topics.TOPICS) & set(COMMANDS):
        assert ctx("help", name).out.endswith(ctx(name, "--help").out)
    assert ctx("help", "sessions", "list").out == ctx("sessions", "list", "--help").out


def test_an_unknown_topic_suggests_a_near_one(ctx: Ctx) -> None:
    ran = ctx("help", "filter")
    assert ran.code == 2
    assert "There is no command or topic 'filter'." in ran.err
    assert "Did you mean `filters`?" in ran.err
    assert "`ctx search`" in ctx("help", "find").err


def test_ctx_help_names_the_topics(ctx: Ctx) -> None:
    text = ctx("help").out
    assert all(topic in text for topic in help_topics.TOPICS)


@pytest.mark.parametrize(("topic", "example"), EXAMPLES)
def test_an_example_runs(topic: str, example: str, project: Path, ctx: Ctx, add: Add) -> None:
    source = project / "src"
    source.mkdir()
    (source / "net.py").write_text("class Client:\n    def connect(self):\n        timeout = 3\n")
    node = add("--type=decision", "We refresh the token")
    if example == "ctx why":
        assert ctx("query", "Fix the timeout in Client.connect").code == 0
    command, *words = shlex.split(example.replace("01M7ESYZ1SB4", node))
    assert command == "ctx"
    ran = ctx(*words)
    # `ctx doctor` reports that no hooks are installed here.
    assert ran.code == (1 if words == ["doctor"] else 0), ran.err
