"""A real Claude Code client as a backend: what it sends, what it costs, what it leaves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.errors import ModelFailure
from ctx.llm.claude_cli.claude_backend import OVERHEAD, ClaudeCli
from ctx.llm.protocol import Capabilities, Request, ignore
from ctx.llm.retry import RetryPolicy
from tests.contract.llm_backends import Metered
from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.conftest import ANY_CLIENT
from tests.llm import model_server
from tests.llm.model_server import Says, Server, ServerRequest, Status, Step
from tests.llm.protocols import MODEL

PATIENCE = RetryPolicy(silence_s=30.0, retries=0, pause_s=0.01)
REQUEST = Request("Be brief.", ("/compact what is in @secret.txt, ", "@~/secret.txt?"), 321)
NO_MODEL = Status(404, {"type": "error", "error": {"type": "not_found_error", "message": "?"}})
HOOK_OUTPUT = "said by nobody to this model"


@pytest.fixture
def server() -> Iterator[Server]:
    with model_server.serve() as server:
        _plays(server, Says("Nothing", " much", "."))
        yield server


def _plays(server: Server, *steps: Step) -> None:
    """Set the answers of the model to the following requests."""
    left = list(steps)

    def next_step(asked: ServerRequest) -> Step:
        if asked.body["model"] == "none":
            return NO_MODEL
        return left.pop(0) if len(left) > 1 else left[0]

    server.otherwise = next_step


def _model_requests(server: Server) -> list[ServerRequest]:
    """The requests that reached a model."""
    return [asked for asked in server.questions if asked.body["model"] != "none"]


def _backend(
    person: Person, server: Server, patience: RetryPolicy = PATIENCE, **variables: str
) -> ClaudeCli:
    inside = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "outer", "CLAUDE_PROJECT_DIR": "/"}
    surroundings = person.environment_at(server.url) | inside | variables
    return ClaudeCli("claude", "default", str(_folder(person)), surroundings, patience)


def _folder(person: Person) -> Path:
    return person.home / ".ctx" / "llm" / "claude"


def _add_instructions(person: Person) -> None:
    """Add everything that a client would put into a prompt, or run."""
    config = person.home / ".claude"
    (config / "CLAUDE.md").write_text(HOOK_OUTPUT)
    (person.home / "CLAUDE.md").write_text(HOOK_OUTPUT)
    (person.home / "secret.txt").write_text(HOOK_OUTPUT)
    skill = config / "skills" / "own" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(f"---\nname: own\ndescription: {HOOK_OUTPUT}\n---\n{HOOK_OUTPUT}\n")
    settings = json.loads((config / "settings.json").read_text())
    runs = {"type": "command", "command": f"touch {person.home}/hook-ran; echo {HOOK_OUTPUT}"}
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        settings["hooks"].setdefault(event, []).append({"hooks": [runs]})
    settings["outputStyle"] = "Explanatory"
    (config / "settings.json").write_text(json.dumps(settings))
    server = {"command": "touch", "args": [f"{person.home}/server-ran"]}
    own = {"hasCompletedOnboarding": True, "mcpServers": {"own": server}}
    (person.home / ".claude.json").write_text(json.dumps(own))


def _files(person: Person) -> set[str]:
    """The files of the user and of ctx, without the internal files of a client."""
    files = (path for path in person.home.rglob("*") if not path.is_dir())
    names = {str(path.relative_to(person.home)) for path in files}
    folders = ("backups", "plugins", "shell-snapshots", "statsig")
    own = (".claude.json", *(f".claude/{folder}/" for folder in folders))
    return {name for name in names if not name.startswith(own)}


@ANY_CLIENT
def test_one_question_is_sent_and_no_files_are_left(person: Person, server: Server) -> None:
    _add_instructions(person)
    _folder(person).mkdir(parents=True)
    before = _files(person)
    heard: list[str] = []
    meter = Metered()

    answer = _backend(person, server).ask(REQUEST, meter, heard.append)

    assert (answer.text, answer.stop, answer.problem) == ("Nothing much.", "end", "")
    assert heard == ["Nothing", " much", "."]
    [asked] = _model_requests(server)
    assert not asked.body["tools"]
    assert asked.max_tokens == REQUEST.max_tokens
    assert not asked.body.get("thinking")
    assert asked.body["system"][-1]["text"] == REQUEST.system
    assert f"Question:\n{REQUEST.prompt}" in asked.prompt
    for word in (HOOK_OUTPUT, "Explanatory", "Insight", "skills are available", "ctx"):
        words = json.dumps(asked.body).replace(str(_folder(person)), "").replace(MODEL, "")
        assert word not in words

    [call] = meter.calls
    assert call.settled == answer.usage
    assert answer.usage is not None
    assert answer.usage.tokens == server.spent == len(asked.prompt.encode()) + 3
    assert answer.usage.cached_tokens == len(asked.prompt.encode()) // 2
    assert answer.usage.cost_micros
    assert asked.size + REQUEST.max_tokens <= call.tokens
    around = asked.size - len(json.dumps([REQUEST.system, REQUEST.prompt]))
    assert around < OVERHEAD * 2 // 3, "there is room for what clients come to say"

    assert _files(person) - before == set()
    assert "projects" not in json.loads((person.home / ".claude.json").read_text())
    assert person.ctx("sessions", "list", "--all")["sessions"] == []

    # There is no conversation to continue.
    person.project = _folder(person)
    person.claude("-p", "Go on.", "--continue", api=server.url)
    assert REQUEST.prompt not in _model_requests(server)[-1].prompt


@ANY_CLIENT
def test_a_busy_server_is_retried(newcomer: Person, server: Server) -> None:
    busy = Status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Full."}})
    refused_again = Status(429, {"type": "error", "error": {"type": "rate", "message": "Slow."}})
    _plays(server, busy, refused_again, Says("Here", "."))
    meter = Metered()
    backend = _backend(newcomer, server, PATIENCE._replace(retries=2))
    answer = backend.ask(REQUEST, meter, ignore)
    assert answer.text == "Here."
    assert server.spent <= meter.counted
    assert meter.calls[0].is_open, "a server that broke may have worked on it"


@ANY_CLIENT
def test_a_missing_login_is_an_error(newcomer: Person, server: Server) -> None:
    backend = _backend(newcomer, server, ANTHROPIC_API_KEY="")
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        backend.ask(REQUEST, meter, ignore)
    assert "Please run /login" in raised.value.message
    assert "/login" in (raised.value.hint or "")
    assert (meter.counted, server.questions) == (0, [])

    if newcomer.client.reports_hooks:
        with pytest.raises(ModelFailure, match="is not logged in"):
            backend.probe()
    seen = _backend(newcomer, server).probe()
    assert seen == Capabilities("", detail=f"Claude Code {newcomer.client.version}")
    assert server.received == []
