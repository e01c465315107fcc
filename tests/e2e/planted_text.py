"""Every way in which a text can come into what ctx stores, and a look for it in all of that.

A new way in is a new line in `WAYS`.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.capture.conversations import Client, Conversation
from tests.conftest import Ctx, git
from tests.e2e.word_places import places
from tests.llm import model_server

_NUMBERS = itertools.count(1)


class Planted(NamedTuple):
    """A user, a project with its own store, and a session of an agent."""

    ctx: Ctx
    home: Path
    project: Path
    talk: Conversation

    def run(self, *words: str) -> None:
        ran = self.ctx(*words)
        assert ran.code == 0, (words, ran.err)

    def use_tool(
        self, tool: str, given: dict[str, Any], answer: Any, word: str = "post-tool-use"
    ) -> None:
        """Report a tool call as the client does."""
        name = {"post-tool-use": "PostToolUse", "post-tool-use-failure": "PostToolUseFailure"}[word]
        told = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{next(_NUMBERS)}"}
        told["error" if "failure" in word else "tool_response"] = answer
        self.talk.client.hook(word, self.talk.payload(name, **told))

    def file(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path


def settle(at: Planted) -> None:
    """Process all waiting events, and commit everything that is staged."""
    at.talk.end()
    at.run("hook", "apply")
    assert at.talk.client.waiting() == []
    at.run("commit", "-m", "all")
    at.run("search", "anything")
    at.run("recall", "what is there")


def a_project(ctx: Ctx, home: Path, project: Path) -> Planted:
    at = Planted(ctx, home, project, Client(home / ".ctx", project).talk())
    at.run("init")
    at.run("trust", "--yes")
    git("add", "-A", cwd=project)
    git("commit", "-qm", "begin", cwd=project)
    at.talk.start()
    return at


def _read(at: Planted, text: str) -> None:
    path = at.file("src/read.py", "pass\n")
    answer = {"type": "text", "file": {"filePath": str(path), "content": text, "numLines": 1}}
    at.use_tool("Read", {"file_path": str(path)}, answer)


def _written(at: Planted, text: str) -> None:
    path = at.file("src/written.py", "pass\n")
    given = {"file_path": str(path), "content": f"def f():\n    return 1  # {text}\n"}
    at.use_tool("Write", given, {"type": "create", "filePath": str(path), "structuredPatch": []})


def _edited(at: Planted, text: str) -> None:
    path = at.file("src/edited.py", "a = 1\n")
    given = {"file_path": str(path), "old_string": "a = 1", "new_string": f"a = 2  # {text}"}
    answer = {"filePath": str(path), "originalFile": "a = 1\n", "structuredPatch": []}
    at.use_tool("Edit", given, {**given, **answer})


def _printed(at: Planted, text: str) -> None:
    at.use_tool("Bash", {"command": "make"}, {"stdout": text, "stderr": "", "interrupted": False})


def _command(at: Planted, text: str) -> None:
    answer = {"stdout": "", "stderr": "", "interrupted": False}
    at.use_tool("Bash", {"command": f"make test # {text}"}, answer)


def _failed(at: Planted, text: str) -> None:
    at.use_tool("Bash", {"command": "make"}, f"Exit code 1\n{text}", "post-tool-use-failure")


def _remembered(at: Planted, text: str) -> None:
    at.talk.answer(f'Done.\n\n<ctx:remember type="fact">We know: {text}</ctx:remember>\n')


def _message(at: Planted, text: str) -> None:
    at.talk.answer(f"I have decided to use it, because {text}. All tests pass now.")


def _in_transcript(at: Planted, text: str) -> None:
    """Only in the transcript: no hook reports it."""
    use = {"type": "tool_use", "id": "toolu_missed", "name": "Bash", "input": {"command": text}}
    at.talk.entry("assistant", message={"id": "m9", "role": "assistant", "content": [use]})
    block = {"type": "tool_result", "tool_use_id": "toolu_missed", "content": text}
    at.talk.entry("user", message={"role": "user", "content": [block]})


def _imported(at: Planted, text: str) -> None:
    node = {"id": "01M7ESYZ1SB4MYFZ1D2X9QK0AB", "type": "fact", "content": text, "metadata": {}}
    times = {"created_at": "2026-01-20T10:00:00Z", "updated_at": "2026-01-20T10:00:00Z"}
    lines = json.dumps({**node, **times, "tags": []})
    path = at.home / "others.jsonl"
    path.write_text(lines + "\n")
    at.run("import", "--from", "jsonl", str(path), "--user")


def _of_the_past(at: Planted, text: str) -> None:
    """Add a past session that no hook reported."""
    folder = at.home / "transcripts" / "past"
    folder.mkdir(exist_ok=True)
    session = "0a0a0a0a-e3b0-4b25-afae-79ee4238d2da"
    entries = [
        ("user", {"role": "user", "content": f"Please fix what {text} is about."}),
        (
            "assistant",
            {
                "id": "m1",
                "role": "assistant",
                "content": [{"type": "text", "text": f"Done: {text}"}],
            },
        ),
    ]
    lines = [
        {
            "type": kind,
            "message": message,
            "uuid": f"u{number}",
            "sessionId": session,
            "cwd": str(at.project),
            "timestamp": f"2026-01-20T10:00:0{number}.000Z",
        }
        for number, (kind, message) in enumerate(entries)
    ]
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    at.run("import", "--from", "claude-code", "--transcripts", str(path))


def _in_narrative(at: Planted, text: str) -> None:
    path = at.project / ".ctx" / "narrative" / "README.md"
    path.write_text(path.read_text() + f"\n{text}\n")


def _ask_model(at: Planted, text: str) -> None:
    """Ask a model that repeats the words of the question."""
    with model_server.serve() as server:
        server.otherwise = model_server.Says(f"It is {text}.\n\nDecision: use {text}")
        where = "--backend", "openai", "--server", server.url
        at.run("llm", "--query", f"What is {text} about?", *where, "--commit")


def _synthesised_by_model(at: Planted, text: str) -> None:
    """Run a session that a model summarises."""
    session = "0b0b0b0b-e3b0-4b25-afae-79ee4238d2da"
    talk = at.talk.client.talk(session)
    talk.submit("Write down what we know.")
    _written(at._replace(talk=talk), "what we know")
    talk.answer("It is written down, and more is to come tomorrow.")
    talk.end()
    at.run("hook", "apply")
    title = f"We found out that {text} is what it is about"
    told = {"number": 1, "speaker": "user", "kind": "rule", "object": text, "replaces": [text]}
    sections = ("investigated", "learned", "completed", "next_steps", "notes")
    summary = {"title": title, "request": title, **{name: [title] for name in sections}}
    with model_server.serve() as server:
        # With a fault in it, so that it is asked to mend what it said.
        server.plan(
            model_server.Says(f'{{"kept": "{text}"'),
            model_server.Says(json.dumps({"kept": [told]})),
            model_server.Says(json.dumps(summary)),
        )
        where = "--set", "llm.backend=openai", "--set", f"llm.server_url={server.url}"
        at.run("sessions", "synthesise", session[:8], "--again", *where)
        assert len(server.questions) == 3


Way = Callable[[Planted, str], object]

WAYS: dict[str, Way] = {
    # First: it leaves nothing in the spool.
    "model answer": _synthesised_by_model,
    "prompt": lambda at, text: at.talk.submit(f"Please look at {text} and fix it."),
    "file read": _read,
    "file write": _written,
    "edit": _edited,
    "command output": _printed,
    "command line": _command,
    "failing command": _failed,
    "remember": _remembered,
    "answer": _message,
    "transcript": _in_transcript,
    "before compaction": lambda at, text: at.talk.client.hook(
        "pre-compact", at.talk.payload("PreCompact", trigger="manual", custom_instructions=text)
    ),
    "note": lambda at, text: at.run("add", "note", text),
    "node": lambda at, text: at.run("add", "--user", "--type=fact", "--meta", f"why={text}", text),
    "summary": lambda at, text: at.run(
        "add", "--type=fact", f"A {len(text)}", "--meta", f"a={text}"
    ),
    "task": lambda at, text: at.run("add", "task", f"Do {text}"),
    "decision": lambda at, text: at.run("add", "decision", f"Take {text}"),
    "kept output": lambda at, text: at.run("add", "command", "--name", "make", "--body", text),
    "import": _imported,
    "transcript of the past": _of_the_past,
    "learning": lambda at, text: at.run("learnings", "add", f"Always use {text}."),
    "ingest": lambda at, text: at.run("ingest", str(at.file("doc.md", f"# Doc\n\n{text}\n"))),
    # A file with a secret in it is refused as a whole.
    "project object": lambda at, text: at.ctx("add", "file", str(at.file("src/a.txt", text))),
    "question to a model": _ask_model,
    "narrative": _in_narrative,
    "commit message": lambda at, text: at.run("commit", "-m", f"About {text}"),
}


def holding(at: Planted, text: str) -> list[str]:
    """The places of ctx that contain a text, without documents of the user."""
    own = (at.home / ".ctx", at.project / ".ctx", at.project / ".git" / "ctx")
    return [place for place in places(text, *own) if not place.endswith("README.md")]
