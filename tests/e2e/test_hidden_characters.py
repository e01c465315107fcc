"""Hidden characters in stored text never reach a terminal, a pipe or an agent as they are."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import markdown
from ctx.server import app
from tests import effort
from tests.capture.conversations import context_of
from tests.conftest import Ctx, Ran, git
from tests.e2e.command_examples import OTHER_WRITES, READS, filled, lines
from tests.e2e.planted_text import Planted, a_project

# A title, a colour, reversed text, invisible letters, a C1 control sequence and an isolate.
EVIL = "evil\x1b]0;x\x07\x1b[31m\u202eab\u200b\u200d\u2066\x9b1m\x7f\ufeff\xad\U000e0041\u3164z"
NAMED = "evil\u202eab\u200b\U000e0041z"
"""What git and the file system accept too."""
RAW = re.compile(
    "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in markdown.HIDDEN) + "]"
)


@pytest.fixture
def at(ctx: Ctx, surroundings: Path, repo: Path) -> Planted:
    git("config", "user.name", NAMED)
    git("checkout", "-q", "-b", NAMED)
    (repo / "main.py").write_text(f"def main():\n    '''{EVIL}'''\n")
    (repo / f"{NAMED}.py").write_text("import main\ndef evil(): return main.main()\n")
    git("add", "-A")
    git("commit", "-qm", f"Begin {EVIL}\n\n{EVIL}")
    at = a_project(ctx, surroundings, repo)
    at.talk.submit(f"Prompt {EVIL}")
    at.use_tool(f"mcp__{NAMED}", {"command": EVIL}, {"stdout": EVIL, "stderr": EVIL})
    at.use_tool(
        "Bash", {"command": f"make {EVIL}"}, f"Exit code 1\n{EVIL}", "post-tool-use-failure"
    )
    at.talk.answer(f"Done: {EVIL}. I have decided to use it, because {EVIL}.")
    at.run("hook", "apply")
    return at


def plant(at: Planted) -> dict[str, str]:
    """Nodes by commands, and what these refuse directly."""
    found = {}
    for name in ("A", "B"):
        words = ("add", "--type=fact", f"{name} deploys {EVIL}", "--tag=a:b", "--tag=tier:pinned")
        found[name] = at.ctx(*words, "--meta", f"why={EVIL}", "--user").out.split()[1]
    at.run("task", "start", f"Cart {NAMED}")
    at.run("add", "decision", f"Take {EVIL}")
    at.run("add", "note", f"Note {EVIL}")
    at.run("ingest", f"{NAMED}.py")
    at.run("commit", "-m", f"Message {EVIL}")
    with closing(sqlite3.connect(at.home / ".ctx" / "store.db", isolation_level=None)) as store:
        store.execute("UPDATE tags SET tag = tag || ? WHERE tag LIKE 'a:%'", (EVIL,))
        store.execute("UPDATE sessions SET branch = ?, request = ?", (EVIL, EVIL))
        store.execute("UPDATE events SET reason = ?", (EVIL,))
        store.execute("UPDATE records SET author = ?", (EVIL,))
    (at.home / ".ctx" / "worker.log").write_text(f"2026 {EVIL}\n")
    (at.home / ".ctx" / "hook.log").write_text(f"2026 {EVIL}\n")
    readme = at.project / ".ctx" / "narrative" / "README.md"
    readme.write_text(readme.read_text() + EVIL)
    return found


def check(ran: Ran, name: str) -> bool:
    """Whether something hostile is in an answer, as an escape."""
    for stream in (ran.out, ran.err):
        raw = RAW.findall(stream.replace("\n", "").replace("\t", ""))
        assert not raw, (name, raw, stream)
    assert "Traceback" not in ran.err, (name, ran.err)
    return "u202e" in ran.out + ran.err


def test_every_command_escapes_them(at: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    found = plant(at)
    monkeypatch.setenv("EDITOR", "true")
    more = [
        f"sessions show {at.talk.session}",
        f"sessions replay {at.talk.session}",
        "log --day",
        "why {A}",
        f"show {NAMED}",
        NAMED,
        f"code outline {NAMED}.py",
    ]
    hostile = set()
    for number, line in enumerate([*more, *lines(READS, OTHER_WRITES)]):
        words = filled(line, found["A"], found["B"])
        for form in ("text", *effort.some(("json", "markdown"), number)):
            if check(at.ctx(*words, *(("--format", form) if form != "text" else ())), line):
                hostile.add(words[0])
    assert hostile > {"show", "list", "compose", "context", "log", "recall", "search", "tags"}
    assert hostile > {"status", "code", "worker", "export", "query"}


def test_json_keeps_them(at: Planted) -> None:
    node = plant(at)["A"]
    for words in (("show", node), ("show", node, "--format", "json")):
        assert EVIL not in at.ctx(*words).out
    assert at.ctx("show", node, "--format=json").json["node"]["content"] == f"A deploys {EVIL}"


def test_hooks_give_none_to_agents(at: Planted) -> None:
    plant(at)
    given = [context_of(at.talk.client.talk(f"s{number}").start()) for number in range(2)]
    prompted = at.talk.client.talk("s1").submit("What deploys evil, what is it about, and Cart?")
    for answer in (*given, context_of(prompted), json.dumps(prompted, ensure_ascii=False)):
        assert not RAW.findall(answer.replace("\n", "").replace("\t", ""))
    assert "A deploys evil\\x1b]0;x\\x07" in given[0]


def test_the_server_escapes_them() -> None:
    data = bytes(app.JsonAnswer({"text": EVIL}).body)
    assert data.isascii()
    assert not RAW.findall(data.decode())
    assert json.loads(data) == {"text": EVIL}


def test_a_projection_has_none(at: Planted) -> None:
    at.run("add", "--type=fact", "--tag=tier:pinned", f"Ours {EVIL}")
    at.run("install", "--projection")
    written = (at.project / "AGENTS.md").read_text()
    assert "Ours evil\\x1b" in written
    assert not RAW.findall(written.replace("\n", "").replace("\t", ""))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, dé, 日本語, ❤️ and\ttabs\n", None),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202e\U000e0041", "\\u202e\\U000e0041"),
    ],
)
def test_visible(text: str, shown: str | None) -> None:
    assert markdown.visible(text) == (text if shown is None else shown)
    # Twice is once.
    assert markdown.visible(markdown.visible(text)) == markdown.visible(text)
