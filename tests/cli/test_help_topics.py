"""`ctx help TOPIC`: texts that fit on a screen, with examples that run."""

import shlex
from pathlib import Path

from ctx.cli import help_texts
from ctx.cli.commands import COMMANDS
from tests.cli.conftest import Add
from tests.conftest import Ctx

EXAMPLES = [
    (topic, line.strip())
    for topic in help_texts.TOPICS
    for line in help_texts.topic_text(topic).partition("examples:\n")[2].splitlines()
]


def test_a_topic_is_shown_on_a_screen(ctx: Ctx) -> None:
    assert {topic for topic, _ in EXAMPLES} == set(help_texts.TOPICS)
    overview = ctx("help").out
    for topic in help_texts.TOPICS:
        lines = help_texts.topic_text(topic).splitlines()
        assert len(lines) <= 26
        assert max(map(len, lines)) <= 80
        text = ctx("help", topic).out
        assert text.startswith(help_texts.topic_text(topic))
        assert ctx("help", topic, "--format", "json").json == {"help": text}
        assert topic in overview
    # A command with the name of a topic still has its help.
    for name in set(help_texts.TOPICS) & set(COMMANDS):
        assert ctx("help", name).out.endswith(ctx(name, "--help").out)
    assert ctx("help", "sessions", "list").out == ctx("sessions", "list", "--help").out
    ran = ctx("help", "filter")
    assert ran.code == 2
    assert "There is no command or topic 'filter'." in ran.err
    assert "Did you mean `filters`?" in ran.err
    assert "`ctx search`" in ctx("help", "find").err


def test_the_examples_run(project: Path, ctx: Ctx, add: Add) -> None:
    source = project / "src"
    source.mkdir()
    (source / "net.py").write_text("class Client:\n    def connect(self):\n        timeout = 3\n")
    node = add("--type=decision", "We refresh the token")
    assert ctx("query", "Fix the timeout in Client.connect").code == 0
    for _, example in EXAMPLES:
        command, *words = shlex.split(example.replace("01M7ESYZ1SB4", node))
        assert command == "ctx"
        ran = ctx(*words)
        # `ctx doctor` reports that no hooks are installed here.
        assert ran.code == (1 if words == ["doctor"] else 0), (example, ran.err)
