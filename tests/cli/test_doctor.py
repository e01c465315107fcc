"""`ctx doctor`"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import ctx as package
from tests import installed
from tests.conftest import Ctx
from tests.llm import model_server
from tests.llm.protocols import MODEL


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have some."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client and this ctx on the PATH, and nothing else of that name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    (folder / "claude").write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    (folder / "ctx").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctx "$@"\n')
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


def stable(text: str, programs: Path) -> str:
    text = re.sub(r"ok +ctx +\d.*", "ok ctx VERSION", text.replace(str(programs), "BIN"))
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "NOW", text)
    text = re.sub(r"tried session-start, .*, subagent-stop, pre-edit", "tried ALL", text)
    text = re.sub(r"[\d,]+ MB free on the disk of \S+", "N MB free", text)
    return re.sub(r" {2,}", "  ", re.sub(r"0\.\d MB", "0.N MB", text))


def test_before_and_after_an_install(folder: Path, programs: Path, ctx: Ctx) -> None:
    ran = ctx("doctor")
    assert ran.code == 1
    assert stable(ran.out, programs) == (
        """  ok ctx VERSION
  ok  clock  NOW
  warning  store  ~/.ctx/store.db does not exist yet.
  → `ctx install` or the first `ctx add` creates it.
  ok  disk space  N MB free
  ok  settings  1 set
  ok  capture  no event has come yet
  ok  hook errors  none in the last day
  ok  client  Claude Code 2.1.325: BIN/claude
  problem  hooks  No hook of ctx is registered with Claude Code.
  → `ctx install` registers them.
  ok  PATH  `ctx` is BIN/ctx, of the same version as this one
  warning  skill  It is not in ~/.claude/skills/ctx, so Claude does not know the commands.
  → `ctx install` writes it.
  ok  model  off; available, but not configured: claude_cli (Claude Code is on the PATH)
1 problem and 2 warnings.
"""
    )
    assert ctx("install").code == 0
    ran = ctx("doctor")
    assert (ran.code, ran.err) == (0, "")
    shown = stable(ran.out, programs).splitlines()
    assert {line.split()[0] for line in shown[:-1]} == {"ok"}
    assert {
        "  ok  store  ~/.ctx/store.db: 0 nodes, 0.N MB, whole",
        "  ok  permissions  ~/.ctx is private",
        "  ok  hooks  9 in ~/.claude/settings.json, up to date",
        "  ok  hooks run  tried ALL: fine",
        "  ok  skill  ~/.claude/skills/ctx, up to date",
    } < set(shown)
    assert shown[-1] == "No problems found."


def test_a_file_in_the_place_of_the_store_hides_nothing_else(
    folder: Path, surroundings: Path, ctx: Ctx
) -> None:
    ran = ctx("doctor", "--format=json")
    assert ran.code == 1
    assert (ran.json["problems"], ran.json["warnings"]) == (1, 2)
    assert set(ran.json["checks"][0]) == {"name", "state", "seen", "advice"}
    # It has only looked.
    assert list(surroundings.iterdir()) == []
    (surroundings / ".ctx").write_text("")
    ran = ctx("doctor", "--format=json")
    assert (ran.code, ran.err) == (1, "")
    assert {check["name"]: check["state"] for check in ran.json["checks"]} == {
        "ctx": "ok",
        "clock": "ok",
        "store": "problem",
        "disk space": "ok",
        "client": "ok",
        "hooks": "problem",
        "PATH": "ok",
        "skill": "warning",
        "model": "ok",
    }


def model(ctx: Ctx, *words: str) -> list[tuple[str, str, str]]:
    """What is said about models, and the ledger of what they used."""
    checks = json.loads(ctx("doctor", "--format=json", *words).out)["checks"]
    return [
        (check["state"], check["seen"], check["advice"])
        for check in checks
        if check["name"] in ("model", "ledger")
    ]


def test_a_model_that_answers(folder: Path, ctx: Ctx) -> None:
    with model_server.serve() as server:
        ctx("config", "set", "llm.server_url", server.url)
        ctx("config", "set", "llm.backend", "llama_cpp")
        told = f"llama_cpp: {MODEL} at {server.url}, 32,768 tokens of context (b1-scripted)"
        assert model(ctx) == [("ok", told, "")]
        assert model(ctx, "--set", "llm.backend=auto") == [("ok", f"auto, {told}", "")]
        assert (server.spent, server.questions) == (0, [])


def test_a_model_that_does_not_answer(
    folder: Path, ctx: Ctx, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = model_server.closed_url()
    ctx("config", "set", "llm.server_url", away)
    ctx("config", "set", "llm.backend", "llama_cpp")
    ((state, seen, advice),) = model(ctx)
    assert state == "problem"
    assert seen.startswith(f"llama_cpp: The llama.cpp server at {away} cannot be reached: ")
    assert advice == "Start it, or set its address: `ctx config set llm.server_url URL`."
    ((state, seen, advice),) = model(ctx, "--set", "llm.backend=auto")
    assert state == "warning"
    assert seen == (
        f"auto: none is used, as no model answers at {away}; "
        "available, but not configured: claude_cli (Claude Code is on the PATH)"
    )
    assert advice.startswith("To configure one: `ctx config set llm.backend NAME`; ")
    (programs / "claude").unlink()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-shown")
    ((state, seen, _),) = model(ctx, "--set", "llm.backend=off")
    assert (state, seen) == (
        "ok",
        "off; available, but not configured: anthropic (ANTHROPIC_API_KEY is set)",
    )


def test_a_ledger_that_is_damaged(folder: Path, surroundings: Path, ctx: Ctx) -> None:
    path = surroundings / ".ctx" / "ledger.db"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"nonsense" * 1_000)
    _, (state, seen, advice) = model(ctx)
    assert (state, advice) == (
        "problem",
        f"`mv {path} {path}.damaged` starts a new one, without the usage of today.",
    )
    assert seen == (
        f"{path} is not a database, or its beginning is damaged. It is the ledger of model"
        " usage: without it, ctx sends no requests."
    )


UNWRITABLE = """
import os, sys
from ctx.cli.main import main
# The first call loads the modules, which the other user may not be allowed to read.
main(["doctor"])
sys.stdout.flush()
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
code = main(["doctor", "--format=json"])
sys.stdout.flush()
sys.exit(code)
"""


def test_no_advice_to_install_on_a_read_only_disk(programs: Path) -> None:
    """As another user, because root may write anywhere."""
    installed.expect_open(Path(package.__file__))
    with tempfile.TemporaryDirectory() as space:
        home = Path(space, "home")
        home.mkdir(mode=0o755)
        home.chmod(0o555)
        Path(space).chmod(0o755)
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        ran = subprocess.run(
            [sys.executable, "-c", UNWRITABLE, f"{space}/said"],
            cwd=space,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (ran.returncode, ran.stderr) == (1, "")
        answer = json.loads(Path(space, "said").read_text())
        home.chmod(0o755)
    found = {check["name"]: (check["state"], check["advice"]) for check in answer["checks"]}
    first = f"Make {home} writable for this user, then `ctx install`"
    assert found["store"] == ("warning", f"It cannot be created: `ls -ld {home}` shows why.")
    assert found["permissions"] == (
        "problem",
        f"`ls -ld {home}` shows its owner; CTX_HOME sets another folder.",
    )
    assert found["hooks"] == ("problem", f"{first} registers them.")
    assert found["skill"] == ("warning", f"{first} writes it.")
