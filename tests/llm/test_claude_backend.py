"""Claude Code as a backend, tested with small programs that behave like it."""

import json
import os
import select
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm.claude_cli.claude_backend import OVERHEAD, ClaudeCli
from ctx.llm.protocol import Answer, Backend, Capabilities, Usage, ignore
from ctx.llm.retry import RetryPolicy
from tests.conftest import Ctx
from tests.contract.llm_backends import QUESTION, BackendContract, Metered, RequestCount

PATIENCE = RetryPolicy(silence_s=10.0, retries=0, pause_s=0.01)
OPTIONS = (
    "--print --output-format --include-partial-messages --system-prompt --tools"
    " --strict-mcp-config --setting-sources --settings --session-id"
)
NEW_OPTIONS = f"{OPTIONS} --no-session-persistence --safe-mode --max-budget-usd"
MODEL = "claude-fake-1"
SPENT = {"type": "result", "subtype": "error_max_budget_usd", "is_error": True}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **more}, "parent_tool_use_id": None}


def piece(text: str) -> dict[str, Any]:
    return event("content_block_delta", delta={"type": "text_delta", "text": text})


def message(*pieces: str, stop: str = "end_turn") -> list[dict[str, Any]]:
    usage = {"input_tokens": 30, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 5}
    return [
        event("message_start", message={"model": MODEL, "usage": usage}),
        *(piece(text) for text in pieces),
        event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 2}),
        event("message_stop"),
    ]


def result(**more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, **more}


def refused(what: str, **more: Any) -> list[dict[str, Any]]:
    said = {"model": "<synthetic>", "content": [{"type": "text", "text": what}]}
    return [{"type": "assistant", "message": said}, result(is_error=True, result=what, **more)]


USED = {
    MODEL: {"inputTokens": 30, "outputTokens": 2, "cacheReadInputTokens": 5},
    "another": {"inputTokens": 7, "outputTokens": 1, "cacheCreationInputTokens": 2},
}
GOOD = [{"type": "system", "subtype": "init"}, *message("Hel", "lo."), result(modelUsage=USED)]


class Fake:
    """A program with the interface of the client; a test defines its behaviour."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "claude"
        self.asked = folder / "asked"
        self.home = folder / "person"
        self.home.mkdir()
        self.pipe = folder / "pipe"
        os.mkfifo(self.pipe)
        self.variables = {"HOME": str(self.home), "PATH": f"{folder}:{os.environ['PATH']}"}
        self.does(GOOD)

    def does(
        self, *steps: Sequence[dict[str, Any]] | str | bytes, options: str = NEW_OPTIONS
    ) -> None:
        """Set the lines, bytes and shell commands of its answer, in order."""
        commands = []
        for number, step in enumerate(steps):
            if isinstance(step, str):
                commands.append(step)
                continue
            content = step if isinstance(step, bytes) else b"".join(map(_line, step))
            (self.folder / f"said-{number}").write_bytes(content)
            commands.append(f"cat {self.folder}/said-{number}")
        self.path.write_text(
            "#!/bin/sh\n"
            f'case "$1" in --help) echo "{options}"; exit;; --version) echo 2.0.47; exit;; esac\n'
            f"exec 9> {self.pipe}\n"
            f"for word; do printf '%s\\n' \"$word\"; done > {self.asked}.words\n"
            f"env > {self.asked}.env; pwd > {self.asked}.pwd; cat > {self.asked}.said\n"
            f"cat settings.json > {self.asked}.settings; echo $$ >> {self.asked}\n"
            + "\n".join(commands)
            + "\n"
        )
        self.path.chmod(0o755)

    def backend(self, patience: RetryPolicy = PATIENCE, model: str = "default") -> ClaudeCli:
        return ClaudeCli("claude", model, str(self.folder / "own"), self.variables, patience)

    @property
    def request_count(self) -> int:
        return len(self.asked.read_text().split()) if self.asked.exists() else 0

    def recorded(self, what: str) -> str:
        return Path(f"{self.asked}.{what}").read_text()


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    # Everybody whom it starts holds the other end of this pipe.
    held = os.open(fake.pipe, os.O_RDONLY | os.O_NONBLOCK)
    yield fake
    if fake.request_count:
        assert select.select([held], [], [], 10)[0], "somebody is left of what it started"
        assert os.listdir(fake.folder / "own") == []
    os.close(held)


class TestClaudeCli(BackendContract):
    @pytest.fixture
    def backend(self, fake: Fake) -> Iterator[Backend]:
        fake.variables["ANTHROPIC_API_KEY"] = self.KEY
        backend = fake.backend()
        yield backend
        backend.close()

    @pytest.fixture
    def request_count(self, fake: Fake) -> RequestCount:
        return lambda: fake.request_count


def test_an_answer_is_read(fake: Fake) -> None:
    heard: list[str] = []
    meter = Metered()
    answer = fake.backend().ask(QUESTION, meter, heard.append)
    used = Usage(30 + 5 + 7 + 2, 3, 5)
    assert answer._replace(duration_ms=0) == Answer("Hello.", MODEL, used, "end")
    assert heard == ["Hel", "lo."]
    [call] = meter.calls
    sent = len(json.dumps([QUESTION.system, QUESTION.prompt]))
    assert (call.tokens, call.settled) == (sent + OVERHEAD + QUESTION.max_tokens, used)


def test_a_program_that_does_not_end_after_its_answer_is_killed(fake: Fake) -> None:
    fake.does(GOOD, "exec sleep 60")
    assert fake.backend().ask(QUESTION, Metered(), ignore).stop == "end"


def test_it_can_be_used_from_the_command_line(
    fake: Fake, ctx: Ctx, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake.folder / "own").mkdir()
    monkeypatch.setenv("PATH", fake.variables["PATH"])
    ran = ctx("llm", "--query", "Why?", "--backend", "claude_cli", "--format", "json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["answer"], found["backend"], found["model"]) == ("Hello.", "claude_cli", MODEL)
    assert "## Task\n\nWhy?\n" in fake.recorded("said")
    assert os.listdir(surroundings / ".ctx" / "llm" / "claude") == []
    refused = ctx("llm", "--query", "Why?", "--backend=claude_cli", "--server=http://127.0.0.1:1")
    assert ("has no address" in refused.err, fake.request_count) == (True, 1)


def test_the_program_is_called_with_the_expected_options(fake: Fake) -> None:
    fake.variables |= {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "outer",
        "CLAUDE_PROJECT_DIR": "/outer",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CONFIG_DIR": "/nowhere",
        "AWS_REGION": "here",
    }
    fake.backend(model="haiku").ask(QUESTION, Metered(), ignore)
    session = Path(fake.recorded("pwd").strip()).name
    assert fake.recorded("words").splitlines() == [
        *("--print", "--verbose", "--output-format", "stream-json", "--include-partial-messages"),
        *("--tools", "", "--strict-mcp-config", "--setting-sources", "user"),
        *("--settings", f"{fake.folder}/own/{session}/settings.json", "--no-session-persistence"),
        *("--safe-mode", "--max-budget-usd", "0.000001", "--session-id", session),
        *("--system-prompt", QUESTION.system, "--model", "haiku"),
    ]
    assert fake.recorded("said") == QUESTION.prompt
    assert json.loads(fake.recorded("settings"))["disableAllHooks"] is True
    variables = dict(line.split("=", 1) for line in fake.recorded("env").splitlines())
    kept = {name: value for name, value in variables.items() if name in fake.variables}
    gone = {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR"}
    assert kept == {name: fake.variables[name] for name in fake.variables if name not in gone}
    assert variables["CTX_OFF"] == "1"
    assert variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(QUESTION.max_tokens)


def test_an_older_client_is_called_without_newer_options(fake: Fake) -> None:
    fake.does(GOOD, options=OPTIONS)
    meter = Metered()
    fake.backend().ask(QUESTION, meter, ignore)
    assert "--safe-mode" not in fake.recorded("words")
    # It may ask twice.
    assert meter.calls[0].tokens > 2 * (OVERHEAD + QUESTION.max_tokens)


def test_a_question_is_not_a_slash_command(fake: Fake) -> None:
    request = QUESTION._replace(parts=(" /compact it",))
    fake.backend().ask(request, Metered(), ignore)
    assert fake.recorded("said") == "Question:\n /compact it"


def test_session_files_of_older_clients_are_removed(fake: Fake) -> None:
    config = fake.home / ".claude"
    others = [config / "projects" / "-shop" / "a.jsonl", config / "todos" / "a.json"]
    others.append(config / "history.jsonl")
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("another's")
    fake.does(
        'id=$(basename "$PWD"); cd "$HOME/.claude"',
        'mkdir "projects/-own-$id" debug && touch "projects/-own-$id/$id.jsonl" "debug/$id.txt"',
        'touch "projects/-own-$id/agent-1.jsonl" "projects/-shop/$id.jsonl" "todos/$id-agent.json"',
        GOOD,
        options=OPTIONS,
    )
    fake.backend().ask(QUESTION, Metered(), ignore)
    assert sorted(path for path in config.rglob("*") if path.is_file()) == sorted(others)
    assert os.listdir(config / "projects") == ["-shop"]


def test_files_of_killed_runs_are_removed_after_a_day(fake: Fake) -> None:
    lost = fake.folder / "own" / "11111111-2222-3333-4444-555555555555"
    kept = fake.home / ".claude" / "projects" / f"-own-{lost.name}"
    for folder in (lost, kept):
        folder.mkdir(parents=True)
    os.utime(lost, (time.time() - 90_000,) * 2)
    fake.backend().ask(QUESTION, Metered(), ignore)
    assert not kept.exists()


def test_folders_with_other_names_are_not_removed(fake: Fake) -> None:
    config = fake.home / ".claude"
    strays, mine = [], []
    for name in ("a", ".DS_Store", "11111111-2222", "1" * 32):
        strays.append(fake.folder / "own" / name)
        mine += [
            config / "projects" / "-shop" / f"{name}bc.jsonl",
            config / "agents" / f"his-{name}",
        ]
        mine.append(config / "skills" / f"{name}pi-docs" / "SKILL.md")
        strays[-1].mkdir(parents=True)
        os.utime(strays[-1], (time.time() - 90_000,) * 2)
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    fake.backend().ask(QUESTION, Metered(), ignore)
    assert sorted(path for path in config.rglob("*") if path.is_file()) == sorted(mine)
    for stray in strays:
        stray.rmdir()


@pytest.mark.parametrize("client", [NEW_OPTIONS, OPTIONS])
def test_a_continued_answer_is_stopped_and_counted_in_full(fake: Fake, client: str) -> None:
    """The client continues by itself after an answer that is too long."""
    first = message("Hello", stop="max_tokens")
    fake.does(first, message(" again"), "exec sleep 60", options=client)
    meter = Metered()
    answer = fake.backend().ask(QUESTION, meter, ignore)
    assert answer._replace(duration_ms=0) == Answer("Hello", MODEL, None, "length")
    assert meter.calls[0].is_open


def test_an_endless_answer_is_stopped(fake: Fake) -> None:
    endless = [*message(), *(piece("and on ") for _ in range(200))]
    fake.does([*endless[:1], *endless[3:]], "exec sleep 60")
    meter = Metered()
    answer = fake.backend().ask(QUESTION, meter, ignore)
    assert (answer.text[:8], answer.usage, answer.stop) == ("and on a", None, "length")
    assert meter.calls[0].is_open


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_tokens", "length"), ("refusal", "refused"), ("stop_sequence", "end"), (7, "end")],
)
def test_the_reason_for_the_end_is_read(fake: Fake, reason: Any, stop: str) -> None:
    spent = SPENT | {"total_cost_usd": 0.0012345, "modelUsage": {}, "errors": ["spent"]}
    fake.does([*message("Hello", stop=reason), spent])
    answer = fake.backend().ask(QUESTION, Metered(), ignore)
    assert (answer.stop, answer.usage) == (stop, Usage(39, 2, 5, 1234))


def test_a_message_without_pieces_is_read_and_counted_in_full(fake: Fake) -> None:
    said = {"model": MODEL, "content": [{"type": "text", "text": "Hello."}, {"type": "other"}, 5]}
    fake.does([{"type": "assistant", "message": said}, result(result="Hello.", modelUsage=USED)])
    heard: list[str] = []
    meter = Metered()
    answer = fake.backend().ask(QUESTION, meter, heard.append)
    assert (answer.text, answer.usage, heard) == ("Hello.", None, ["Hello."])
    assert meter.calls[0].is_open


LOGIN = "log in there with `/login`"
REFUSALS = {
    "Not logged in · Please run /login": LOGIN,
    "API Error: 401 {} · Please run /login": LOGIN,
    "There's an issue with the model": "llm.model",
    "API Error: Connection refused (ECONNREFUSED)": "`ctx doctor`",
}


def failure(fake: Fake, *steps: Any, silence_s: float = 10.0) -> tuple[str, str, bool]:
    """The message and hint of a failure, and whether the request counts."""
    fake.does(*steps)
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        fake.backend(PATIENCE._replace(silence_s=silence_s)).ask(QUESTION, meter, ignore)
    message = raised.value.message.removeprefix(f"Claude Code at {fake.path} ")
    [call] = meter.calls
    return message, raised.value.hint or "", call.is_open


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_is_reported_and_not_counted(fake: Fake, said: str) -> None:
    more = {"api_error_status": 404} if "model" in said else {}
    message, hint, counts = failure(fake, refused(said, **more), "exit 1")
    assert (message, counts) == (f"refused: {said}.", False)
    assert REFUSALS[said] in hint


ENDED = "ended without an answer (exit code"
FAILURES: list[tuple[Any, str]] = [
    (refused("API Error: 500 ouch", api_error_status=500), "refused: API Error: 500 ouch."),
    (
        [{"type": "result", "subtype": "error_during_execution", "is_error": False}],
        "refused: error_during_execution.",
    ),
    ("exit 0", f"{ENDED} 0)."),
    ([result(result="")], "answered with nothing."),
    ("echo a >&2; echo 'It has \033[31mno idea.' >&2; exit 1", f"{ENDED} 1): It has [31mno idea."),
    (b"\xff\xfe{}\n[1]\n" + b"[" * 100_000 + b'\n"text"\nnull\n<html>\n', f"{ENDED} 0): <html>."),
    (b'{"type":"stream_event","event":{"type":"mess', f'{ENDED} 0): {{"type":"stream_event"'),
    ("kill -9 $$", f"{ENDED} -9)."),
    ("exec cat /dev/zero", "sent an answer of more than 8 MB."),
]


@pytest.mark.parametrize(("step", "message"), FAILURES)
def test_a_failure_is_reported_and_counted(fake: Fake, step: Any, message: str) -> None:
    found, hint, counts = failure(fake, step)
    assert found.startswith(message)
    assert "`ctx doctor`" in hint
    assert counts


def test_an_unknown_option_is_not_counted(fake: Fake) -> None:
    said = "error: unknown option '--tools'"
    message, hint, counts = failure(fake, f'echo "{said}" >&2; exit 1')
    assert (message, counts) == (f"{ENDED} 1): {said}.", False)
    assert "update Claude Code" in hint


@pytest.mark.parametrize(
    "step",
    [
        'while echo \'{"type":"system"}\'; do sleep 0.05; done',
        "trap '' TERM; sleep 60 & wait; sleep 60",
    ],
)
def test_silence_is_reported_and_counted(fake: Fake, step: str) -> None:
    message, hint, counts = failure(fake, step, silence_s=0.4)
    assert (message, counts) == ("was silent for 0.4 s.", True)
    assert "llm.timeout_seconds" in hint


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ((message("Hel")[:2], "exec sleep 60"), "was silent for 1 s"),
        ((message("Hel")[:2], "exit 3"), "ended without an answer (exit code 3)"),
        (([*message("Hel")[:2], *refused("API Error: lost")],), "refused: API Error: lost"),
        # The client ends the message itself when the connection breaks.
        (([*message("Hel"), *refused("API Error: lost")],), "refused: API Error: lost"),
    ],
)
def test_the_text_before_a_failure_is_kept(
    fake: Fake, steps: tuple[Any, ...], problem: str
) -> None:
    fake.does(*steps)
    meter = Metered()
    patience = PATIENCE._replace(silence_s=1.0) if "silent" in problem else PATIENCE
    answer = fake.backend(patience).ask(QUESTION, meter, ignore)
    sentence = f"Claude Code at {fake.path} {problem}."
    assert answer._replace(duration_ms=0) == Answer("Hel", MODEL, None, "cut", sentence)
    assert meter.calls[0].is_open


def test_a_busy_server_is_retried(fake: Fake) -> None:
    busy = refused("API Error: 529 Overloaded", api_error_status=529)
    fake.does(busy, "exit 1")
    meter = Metered()
    with pytest.raises(ModelFailure, match="Overloaded"):
        fake.backend(PATIENCE._replace(retries=2)).ask(QUESTION, meter, ignore)
    assert [call.is_open for call in meter.calls] == [True] * 3
    with pytest.raises(BudgetExceeded) as raised:
        fake.backend(PATIENCE._replace(retries=2)).ask(QUESTION, Metered(cap=5_000), ignore)
    assert "Overloaded" in (raised.value.detail or "")


def test_a_key_is_not_shown(fake: Fake) -> None:
    fake.variables["ANTHROPIC_AUTH_TOKEN"] = "token-that-nobody-is-to-see"
    fake.does("echo $ANTHROPIC_AUTH_TOKEN >&2; exit 1")
    with pytest.raises(ModelFailure) as raised:
        fake.backend().ask(QUESTION, Metered(), ignore)
    assert raised.value.message.endswith("(exit code 1): ….")


def test_closing_ends_a_running_request(fake: Fake) -> None:
    fake.does(message("Hel")[:2], "exec sleep 60")
    backend = fake.backend()
    answers: list[Answer] = []
    spoken = threading.Event()
    thread = threading.Thread(
        target=lambda: answers.append(backend.ask(QUESTION, Metered(), lambda _: spoken.set()))
    )
    thread.start()
    assert spoken.wait(300)
    backend.close()
    thread.join(10)
    assert [(answer.text, answer.stop) for answer in answers] == [("Hel", "cut")]


def test_a_missing_program_is_an_error(fake: Fake) -> None:
    fake.path.unlink()
    meter = Metered()
    for do in (fake.backend().probe, lambda: fake.backend().ask(QUESTION, meter, ignore)):
        with pytest.raises(ModelFailure) as raised:
            do()
        assert raised.value.message == "There is no program claude on the PATH."
        assert "llm.command" in (raised.value.hint or "")
    assert meter.calls == []


def test_a_program_in_the_current_folder_is_not_run(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fake.folder)
    fake.variables["PATH"] = f".::{os.environ['PATH']}"
    for command in ("claude", "./claude"):
        backend = ClaudeCli(command, "default", str(fake.folder / "own"), fake.variables, PATIENCE)
        with pytest.raises(ModelFailure, match="There is no program"):
            backend.probe()
    assert fake.request_count == 0


def test_a_program_that_cannot_be_started_is_an_error(fake: Fake) -> None:
    fake.path.write_text("#!/no/such/shell\n")
    with pytest.raises(ModelFailure, match="cannot be started: No such file"):
        fake.backend().probe()


def test_another_program_is_refused(fake: Fake) -> None:
    fake.does(GOOD, options="--print --tools")
    with pytest.raises(ModelFailure, match="does not know --output-format") as raised:
        fake.backend().ask(QUESTION, Metered(), ignore)
    assert "Update Claude Code" in (raised.value.hint or "")
    assert fake.request_count == 0


def test_a_probe_reads_the_version(fake: Fake) -> None:
    assert fake.backend().probe() == Capabilities("", detail="Claude Code 2.0.47")
    assert fake.backend(model="haiku").probe() == Capabilities("haiku", detail="Claude Code 2.0.47")
    assert not fake.backend().is_free
    fake.path.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(ModelFailure, match="does not say its version"):
        fake.backend().probe()


@pytest.mark.parametrize("is_logged_in", [True, False])
def test_a_probe_reports_the_login_state(fake: Fake, is_logged_in: bool) -> None:
    state = json.dumps({"loggedIn": is_logged_in})
    fake.path.write_text(
        f"#!/bin/sh\n[ $1 = auth ] && echo '{state}' || echo 2.1.400\nexit {1 - is_logged_in}\n"
    )
    if is_logged_in:
        assert fake.backend().probe().detail == "Claude Code 2.1.400"
    else:
        with pytest.raises(ModelFailure, match="is not logged in"):
            fake.backend().probe()
