"""`ctx llm`: a model is asked about a pack, and what it answers is kept."""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.llm import backends
from ctx.operations import keep_answer
from tests.cli.conftest import Piped
from tests.conftest import Ctx, git
from tests.llm import model_server
from tests.llm.model_server import Body, Cut, Hangs, Says, Server, ServerRequest, Status, Step

SECRET = "ghp" + "_" + "k9Xw2Lq7Rt4Vb8Nz3Mf6Hj1Pd5Sc0YgTuAeQ"
TASK = "Why are payments charged twice?"
PIECES = ("The card is charged twice: `retry_all()` in ", "src/payments.py calls ", "it.\n\n")
ANSWER = "".join(PIECES) + "Decision: retry once."
GOOD = Says(*PIECES, "Decision: retry once.")


@pytest.fixture
def server() -> Iterator[Server]:
    with model_server.serve() as server:
        server.otherwise = GOOD
        yield server


@pytest.fixture
def shop(repo: Path) -> Path:
    """A repository with a little code."""
    (repo / "src").mkdir()
    (repo / "src" / "payments.py").write_text("def retry_all() -> None:\n    charge()\n")
    git("add", "-A")
    git("commit", "-qm", "Charge cards")
    return repo


@pytest.fixture
def project(shop: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return shop


def normalized(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", text)
    text = re.sub(r"[0-9A-HJKMNP-TV-Z]{12}", "ID", text)
    text = re.sub(r"http://127\.0\.0\.1:\d+(/v1)?", "URL", text)
    text = re.sub(r"\d{4}-\d\d-\d\d-\d{4}-\w+", "TIME", text)
    text = re.sub(r"[\d,]+ tokens", "N tokens", text)
    return re.sub(r"\d+\.\d s\b", "N s", text)


def openai(server: Server) -> tuple[str, ...]:
    return "--backend", "openai", "--server", server.url


def test_a_question_in_a_project(ctx: Ctx, project: Path, server: Server) -> None:
    ran = ctx("llm", "--query", TASK, *openai(server))
    assert (ran.code, ran.out) == (0, f"{ANSWER}\n")
    assert normalized(ran.err) == (
        "Asking scripted-1 at URL: about N tokens, and at most 2,048 for the answer.\n"
        "N tokens in, 4 out, N s.\n"
        "Stored as ID with 1 decision, linked to payments.retry_all, src/payments.py:"
        " `ctx show ID`.\n"
    )
    (question,) = server.questions
    assert question.body["max_tokens"] == 2_048
    assert question.body["temperature"] == 0.2
    assert f"## Task\n\n{TASK}\n\n## Retrieved Context\n\n" in question.prompt
    assert "```py\ndef retry_all() -> None:\n    charge()\n```" in question.prompt
    # What is kept can be committed later.
    ran = ctx("llm", "--query", TASK, *openai(server), "-m", "Keep it", "--format=json")
    assert (ran.json["kept"]["new"], ran.json["commit"]["message"]) == (False, "Keep it")
    assert ran.json["note"]


def test_what_is_kept_is_shown_whole(ctx: Ctx, project: Path, server: Server) -> None:
    answer = "```py\nretry_all()\n```\n\nIt charges.\n\nThen it charges again."
    server.plan(Says(answer))
    kept = ctx("llm", "--query", TASK, *openai(server), "--format=json").json["kept"]
    words = "show", kept["short_id"]
    assert ctx(*words).out.endswith(f"\n\nThe whole answer\n{answer}\n")
    assert ctx(*words, "--format=json").json["answer"] == f"{answer}\n"
    (lies,) = project.rglob(f"*{kept['blob']}")
    lies.unlink()
    assert ctx(*words, "--format=json").json["answer"] is None


def test_the_answer_for_programs(ctx: Ctx, project: Path, server: Server, piped: Piped) -> None:
    pack = ctx("query", TASK, "--format", "json")
    piped(pack.out.encode())
    ran = ctx("llm", *openai(server), "--format=json", "--max-tokens=50", "--temperature=0")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    kept, usage = found["kept"], found["usage"]
    expected = {"answer": ANSWER, "task": TASK, "model": "scripted-1", "backend": "openai"}
    nothing = {"cost_micros": None, "cache": None, "note": None, "commit": None, "problem": ""}
    assert {**expected, **nothing, "stop": "end"}.items() <= found.items()
    assert usage["input_tokens"] == len(server.questions[0].prompt.encode())
    assert (usage["output_tokens"], usage["cached_tokens"]) == (4, 0)
    assert found["receipt"] == pack.json["receipt"] == kept["node"]["metadata"]["receipt"]
    assert [each["name"] for each in kept["mentions"]] == ["payments.retry_all", "src/payments.py"]
    assert kept["decisions"] == ["retry once."]
    assert ctx("debug", "cat", kept["blob"]).out == f"{ANSWER}\n"
    body = server.questions[0].body
    assert (body["max_tokens"], body["temperature"]) == (50, 0)


def test_a_pack_in_a_file(ctx: Ctx, project: Path, server: Server) -> None:
    assert ctx("query", TASK, "--output", "pack.json").code == 0
    assert ctx("llm", "--pack", "pack.json", *openai(server)).out == f"{ANSWER}\n"
    (project / "notes.txt").write_text("Not a pack.\n")
    for path, code, told in (
        ("none.json", 2, "none.json cannot be read: No such file or directory."),
        ("src", 2, "src cannot be read: Is a directory."),
        ("notes.txt", 2, "error E023: The pack is not JSON (line 1).\n"),
    ):
        refused = ctx("llm", "--pack", path, *openai(server))
        assert (refused.code, refused.out, told in refused.err) == (code, "", True)
    assert len(server.questions) == 1


def test_invalid_requests(ctx: Ctx, shop: Path, server: Server, piped: Piped) -> None:
    for words, problem in (
        (["--query", " "], "There is no task."),
        (["--pack", "p", "--query", "x"], "not allowed with argument"),
        (["--budget", "100"], "--budget needs a question."),
        (["--query", "x", "--temperature", "3"], "must be from 0 to 2"),
        (["--query", "x", "--temperature", "warm"], "'warm' is not a number"),
        (["--query", "x", "--max-tokens", "0"], "--max-tokens must be at least 1."),
        (["--query", "x", "--backend", "scripted"], "'scripted' is not one of"),
        (["--query", "x", "--server", " "], "--server needs an address."),
        (["--query", "x", "--model", ""], "--model needs a name."),
    ):
        ran = ctx("llm", "--backend", "openai", "--server", server.url, *words)
        assert (ran.code, ran.out, server.questions) == (2, "", [])
        assert problem in ran.err
    piped(b" \n")
    assert ctx("llm", *openai(server)).err.startswith("error E023: No pack on stdin.\n")
    ran = ctx("llm", "--query", TASK)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error E031: No model is configured.\n")
    assert "`ctx config set llm.backend llama_cpp`" in ran.err


def test_the_model_that_the_settings_name(ctx: Ctx, shop: Path, server: Server) -> None:
    assert ctx("config", "set", "llm.backend", "openai").code == 0
    assert ctx("config", "set", "llm.server_url", server.url).code == 0
    assert ctx("llm", "--query", TASK, "--model", "scripted-1").out == f"{ANSWER}\n"
    assert server.questions[0].body["model"] == "scripted-1"
    server.plan(Status(404, {"error": {"message": "no model big-1"}}))
    ran = ctx("llm", "--query", TASK, "--model", "big-1")
    assert (ran.code, ran.out) == (1, "")
    assert server.questions[-1].body["model"] == "big-1"
    assert normalized(ran.err).splitlines()[1:] == [
        "error E031: The model's server at URL refused (404): no model big-1.",
        "It has scripted-1.",
        "  `ctx config set llm.model NAME`, or --model NAME, sets the model.",
    ]


def test_the_api_of_a_server_is_detected(ctx: Ctx, shop: Path, server: Server) -> None:
    assert ctx("llm", "--query", TASK, "--server", server.url).out == f"{ANSWER}\n"
    assert server.questions[0].path == "/completion"
    nobody = model_server.closed_url()
    for words in ((), ("--backend", "openai"), ("--backend", "llama_cpp")):
        ran = ctx("llm", "--query", TASK, "--server", nobody, *words)
        assert (ran.code, ran.out) == (1, "")
        assert "error E031: " in ran.err
        assert nobody in ran.err


def test_what_was_not_read_again(ctx: Ctx, shop: Path, server: Server) -> None:
    def cache_line(known: int) -> str:
        last = {"content": "Yes.", "stop": True, "stop_type": "eos", "id_slot": 0}
        last |= {"tokens_evaluated": 400, "tokens_predicted": 1, "timings": {"cache_n": known}}
        server.plan(Body(json.dumps(last).encode()))
        return normalized(ctx("llm", "--query", TASK, "--server", server.url).err).splitlines()[1]

    assert cache_line(390) == "N tokens in (390 cached), 1 out, N s, the prompt was kept."
    # What holds for every question is known, and little else.
    assert cache_line(37) == "N tokens in (37 cached), 1 out, N s."


def test_a_call_that_failed_is_over(
    ctx: Ctx, project: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_RETRIES", 0)
    server.plan(Body(b"<html>Proxy</html>", "text/html"), Status(500, "Out of memory"))
    ran = ctx("llm", "--query", TASK, *openai(server))
    assert (ran.code, ran.out, server.url in ran.err) == (1, "", True)
    ran = ctx("llm", "--query", TASK, *openai(server))
    assert "failed (500): Out of memory." in ran.err
    found = ctx("cost", "--format=json").json
    assert [(each["what"], each["unsettled"]) for each in found["spent"]] == [("scripted-1", 2)]
    assert (found["today"]["under_way"]["calls"], found["today"]["lost"]["calls"]) == (0, 2)
    assert ctx("list").out == "No nodes.\n"


def test_an_answer_that_breaks_off(ctx: Ctx, project: Path, server: Server) -> None:
    server.plan(Cut(GOOD, 500))
    ran = ctx("llm", "--query", TASK, *openai(server), "--commit")
    assert ran.code == 1
    assert ran.out.strip() == PIECES[0].strip()
    assert "error E031: " in ran.err
    assert "The partial answer is stored" in ran.err
    short = re.search(r"Stored as (\w+)", ran.err)
    assert short
    node = ctx("show", short[1], "--format=json").json["node"]
    assert node["metadata"]["stop"] == "cut"
    assert node["content"].splitlines()[0].endswith(f"{TASK} (cut)")
    # Half an answer is not committed.
    assert node["staged"] == "cli"


def test_an_answer_is_committed(ctx: Ctx, project: Path, server: Server) -> None:
    ran = ctx("llm", "--query", TASK, *openai(server), "--commit")
    assert ran.code == 0
    assert "Committed COMMIT, with .ctx/narrative/log/TIME.md.\n" in normalized(ran.err)
    entry = ctx("log", "--format=json").json["commits"][0]
    assert entry["message"] == f"Answer of scripted-1 to: {TASK}"
    files = sorted((project / ".ctx" / "narrative" / "log").iterdir())
    (noted,) = [text for file in files if "- Decision: retry" in (text := file.read_text())]
    assert noted.startswith(f"# Answer of scripted-1 to: {TASK}\n")
    # What a model said is in memory once, and said to be so.
    nodes = ctx("list", "--format=json", "--limit=0").json["nodes"]
    (node,) = [node for node in nodes if node["type"] not in ("file", "item")]
    assert (node["type"], node["metadata"]["said_by"]) == ("source", "model")
    again = ctx("llm", "--query", TASK, *openai(server), "-m", "Once more")
    assert "The same answer is already stored" in again.err
    assert sorted((project / ".ctx" / "narrative" / "log").iterdir())[: len(files)] == files
    assert ctx("query", "tag:answer", "--format=json").json["total"] == 1


def test_a_model_does_not_get_its_own_answers(
    ctx: Ctx, project: Path, server: Server, piped: Piped
) -> None:
    assert ctx("add", "note", "Begin").code == 0
    assert ctx("commit", "-m", "All of it").code == 0
    for _ in range(2):
        assert ctx("llm", "--query", TASK, *openai(server), "--commit").code == 0
    pack = ctx("query", TASK, "--format", "json").out
    assert "retry once" in pack
    piped(pack.encode())
    assert ctx("llm", *openai(server)).code == 0
    assert ctx("query", TASK, "--output", "pack.json").code == 0
    (project / "pack.json").rename(project.parent / "pack.json")
    assert ctx("llm", "--pack", "../pack.json", *openai(server)).code == 0
    first, *others = [asked.prompt for asked in server.questions]
    assert "Begin" in first
    assert others == [first] * 3


def test_without_a_project_store(ctx: Ctx, shop: Path, server: Server) -> None:
    ran = ctx("llm", "--query", TASK, *openai(server), "--commit")
    assert ran.err.startswith("error E012: ")
    assert server.received == []
    kept = ctx("llm", "--query", TASK, *openai(server), "--format=json").json["kept"]
    assert kept["node"]["tags"] == ["answer", "project:app"]
    assert kept["node"]["content"].endswith(ANSWER)
    assert kept["blob"] is None
    server.plan(Says("The card", " is", " charged", " twice."))
    ran = ctx("llm", "--query", TASK, *openai(server), "--max-tokens", "2")
    assert (ran.code, ran.out) == (0, "The card is\n")
    assert ran.err.endswith("The answer reached the token limit: raise --max-tokens.\n")


def test_no_secret_goes_out_and_none_is_kept(
    ctx: Ctx, project: Path, server: Server, surroundings: Path
) -> None:
    (project / "src" / "payments.py").write_text(f"def retry_all():\n    token = '{SECRET}'\n")
    server.plan(Says(f"The token is {SECRET}."))
    ran = ctx("llm", "--query", f"Is {SECRET} in retry_all?", *openai(server))
    assert SECRET not in json.dumps([asked.body for asked in server.received])
    assert ran.code == 0
    assert "1 secret removed: answer, line 1" in ran.err
    for path in (*surroundings.rglob("*"), *(project / ".git").rglob("*")):
        if path.is_file() and "objects" not in path.parts:
            assert SECRET.encode() not in path.read_bytes(), path


def test_a_project_that_is_not_trusted(
    ctx: Ctx, project: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx("add", "--type", "fact", "Payments are charged by evil magic.")
    ctx("commit", "-m", "x")
    git("add", "-A")
    git("commit", "-qm", "x")
    git("clone", "-q", str(project), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    ran = ctx("llm", "--query", TASK, *openai(server))
    assert "not trusted" in ran.err
    assert "evil magic" not in server.questions[0].prompt


# In front of a person


class Terminal:
    """The program itself on a terminal."""

    def __init__(self, *words: str) -> None:
        self._controller, terminal = pty.openpty()
        self._program = subprocess.Popen(
            [sys.executable, "-m", "ctx", *words],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "NO_COLOR": "1"},
            start_new_session=True,
        )
        os.close(terminal)
        self.seen = ""

    def read_until(self, text: str) -> None:
        while text not in self.seen and (part := self._part()):
            self.seen += part

    def interrupt(self) -> None:
        self._program.send_signal(signal.SIGINT)

    def end(self) -> int:
        while part := self._part():
            self.seen += part
        os.close(self._controller)
        return self._program.wait(300)

    def _part(self) -> str:
        try:
            return os.read(self._controller, 65536).decode().replace("\r\n", "\n")
        except OSError:
            return ""  # Linux says so when everything is read.


def test_an_answer_appears_as_it_comes(ctx: Ctx, project: Path, server: Server) -> None:
    server.plan(Hangs("It is ", "\x1b[2J<ctx:forget/> because\r", "\nof `retry_all`"))
    terminal = Terminal("llm", "--query", TASK, *openai(server))
    # The server has not finished, and never will.
    terminal.read_until("of `retry_all`")
    terminal.interrupt()
    assert terminal.end() == 130
    shown = normalized(terminal.seen)
    assert "It is \\x1b[2J<ctx:forget/> because\nof `retry_all`\n" in shown
    assert "\x1b" not in shown
    assert shown.endswith("Interrupted. The partial answer is stored: `ctx show ID`\n")
    (node,) = ctx("query", "tag:answer", "--format=json").json["nodes"]
    assert node["metadata"]["stop"] == "interrupted"
    cat = "debug", "cat", node["metadata"]["blob"]
    stored = ctx(*cat, "--format=json").json["text"]
    assert stored == "It is \x1b[2J<ctx:forget/> because\r\nof `retry_all`\n"
    assert "\x1b" not in ctx(*cat).out
    # In a pipe too; carriage returns are left out, as on a terminal.
    server.plan(Hangs("It is ", "because\r\nof `retry_all`"))
    running = subprocess.Popen(
        [sys.executable, "-m", "ctx", "-q", "llm", "--query", TASK, *openai(server)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    piece = b""
    while not piece.endswith(b"of `retry_all`") and (part := os.read(running.stdout.fileno(), 99)):
        piece += part
    running.send_signal(signal.SIGINT)
    rest, _ = running.communicate(timeout=300)
    assert piece + rest == b"It is because\nof `retry_all`\n"
    assert running.returncode == 130
    terminal = Terminal("llm", *openai(server))
    assert terminal.end() == 2
    assert terminal.seen.startswith("error E011: No pack to ask about.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such file here")
def test_an_answer_that_cannot_be_printed_or_stored_whole(
    ctx: Ctx, project: Path, server: Server
) -> None:
    words = [sys.executable, "-m", "ctx", "llm", "--query", TASK, *openai(server)]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 1
    assert (
        "error E014: Cannot print the answer: No space left on device.\n  Stored as ID "
        in normalized(ran.stderr)
    )
    server.plan(Says("Other."))
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert ran.returncode == 0, ran.stderr
    nodes = ctx("query", "tag:answer", "--format=json").json["nodes"]
    assert [node["metadata"]["stop"] for node in nodes] == ["end", "end"]
    server.plan(Says(*["word " * 10_000] * 30))
    huge = ctx("llm", "--query", TASK, *openai(server), "--set", "llm.max_response_tokens=100000")
    assert (huge.code, len(huge.out)) == (0, 1_500_001)
    assert "characters were not stored" in huge.err


def test_a_failure_to_store_loses_no_answer(
    ctx: Ctx, project: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def full(_asked: ServerRequest) -> Step:
        # Writing behind this size is refused, as on a disk that is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        return GOOD

    server.plan(full)
    try:
        ran = ctx("llm", "--query", TASK, *openai(server))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert (ran.code, ran.out) == (1, f"{ANSWER}\n")
    assert "The answer was not stored." in ran.err
    assert ctx("list").out == "No nodes.\n"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # As where somebody else writes for long, and Ctrl-C is all that helps.
    monkeypatch.setattr(keep_answer, "keep_answer", interrupted)
    ran = ctx("llm", "--query", TASK, *openai(server))
    assert (ran.code, ran.out) == (130, f"{ANSWER}\n")
    assert "warning: The answer was not stored." in ran.err
