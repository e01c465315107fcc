"""`ctx status`"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.agents.host_setup import hook_trials
from ctx.hook_files import spool
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import prices
from ctx.llm.protocol import Usage
from ctx.memory import event_log, receipts
from ctx.memory.receipts import Receipt
from ctx.worker import process_lock
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


def test_a_new_store(folder: Path, ctx: Ctx) -> None:
    rest = (
        "Nodes: 0\nHooks: not installed; agents get no memory, and nothing is captured\n\n"
        "Next: `ctx install` registers the hooks with your agents\n"
    )
    assert ctx("status").out == f"Database: ~/.ctx/store.db (new)\n{rest}"
    assert re.fullmatch(
        r"Database: ~/.ctx/store.db \(\d.\d MB\)\nNodes: 0\n[^$]+", ctx("status").out
    )


def test_the_next_step(repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    # Trying the hooks takes a process for each.
    monkeypatch.setattr(hook_trials, "_trial", lambda *_: "")

    def next_step() -> str | None:
        step = ctx("status", "--json").json["next_step"]
        return str(step).partition(" ")[2][:14] if step else None

    assert next_step() == "install` regis"
    assert "\nNext: `ctx install` registers the hooks" in ctx("status").out
    ctx("install")
    assert ctx("status", "--json").json["hooks"] == ["Claude Code"]
    assert next_step() == 'add "…"` store'
    ctx("add", "Deploys run on Mondays")
    assert next_step() is None
    ctx("init")
    assert next_step() == "add .ctx` adds"
    ctx("add", "Deploys run on Fridays")
    assert next_step() == "commit -m MESS"
    assert "Project store: trusted\n" in ctx("status").out
    ctx("commit", "-m", "Fridays")
    git("add", "-A")
    git("commit", "-qm", "Fridays")
    assert next_step() is None
    ctx("trust", "--revoke")
    assert next_step() == "trust` shows w"
    assert "Project store: not trusted, not included\n" in ctx("status").out


def test_what_is_in_memory(repo: Path, ctx: Ctx, add: Add, surroundings: Path) -> None:
    old = add("--type=fact", "--tag=tier:reference", "--tag=x:y", "Deploys run on Fridays")
    add("--type=fact", "--tag=tier:reference", f"--supersedes={old}", "Deploys run on Mondays")
    one = add("--type=open-question", "--tag=tier:working", "What about Windows?")
    ctx("pin", one)
    ctx("view", "create", "facts", "--query=type:fact")
    ctx("task", "start", "Port to Windows")
    text = ctx("status").out
    assert "\nNodes: 4 (estimated 25 tokens)\n  fact: 2\n  task: 1\n  open-question: 1\n" in text
    for line in ("Edges: 1", "Tags: 6 unique", "Superseded: 1", "Views: 2", "Project: app"):
        assert f"\n{line}\n" in text
    assert "\nTask: port-to-windows\n" in text
    assert (
        "\n\nTier breakdown:\n  pinned: 1 node (6 tokens)\n  reference: 2 nodes (14 tokens)\n"
        "  working: 2 nodes (11 tokens)\n  off-context: 0 nodes (0 tokens)\n\nNext: "
    ) in text
    assert ctx("status", "--format=markdown").out == f"```\n{text}```\n"
    answer = ctx("status", "--format=json").json
    assert answer["database"] == str(surroundings / ".ctx" / "store.db")
    assert answer["bytes"] > 4096
    assert (answer["nodes"], answer["tokens"], answer["edges"], answer["tags"]) == (4, 25, 1, 6)
    assert answer["types"][0] == {"type": "fact", "nodes": 2}
    assert answer["tiers"][0] == {"tier": "tier:pinned", "nodes": 1, "tokens": 6}
    assert answer["scopes"] == [{"scope": "user", "nodes": 4, "staged": 0}]
    assert (answer["superseded"], answer["views"], answer["no_tier"]) == (1, 2, 0)
    assert (answer["project"], answer["project_store"]) == ("app", "none")
    for name in ("untracked", "removed_worktrees", "stray_heads", "staged"):
        assert answer[name] == []
    health = answer["health"]
    assert health["sizes"].pop("store") > 4096
    assert health["sizes"] == {"backups": 0, "indexes": 0, "spool": 0}
    assert (health["worker"], health["paused"], health["problems"]) == (None, [], [])
    assert set(health["queue"].values()) == {0, None}


def test_captured_events_and_given_tokens(
    repo: Path, ctx: Ctx, add: Add, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--type=fact", "One")
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_700_000_000)
    home = str(surroundings / ".ctx")
    with closing(sqlite3.connect(f"{home}/store.db", isolation_level=None)) as store:
        store.execute(
            "INSERT INTO sessions (id, folder, started_at, last_at) VALUES ('s', '/', 'x', 'x')"
        )
        for session, at, tokens in (
            ("s", "2026-11-14T23:00:00Z", 1400),
            ("s", "2026-11-10T10:00:00Z", 700),
            ("cli", "2026-11-14T23:00:00Z", 5),
        ):
            name = f"{clock.parse_iso(at)}-{session}"
            receipts.keep(store, Receipt(name, session, "query", at, None, tokens, ()))
        store.execute(
            "INSERT INTO events (id, session, event, at, status, body)"
            " VALUES ('1', 's', 'Stop', '2026-11-14T22:00:00Z', 'skipped', '{}')"
        )
    spool.put(home, spool.new_id(1_794_600_000_000), "stop", b"{}")
    told = ctx("status").out.partition("Project: app\n")[2].splitlines()[1:]
    assert told[:6] == [
        "Sessions: 1, last stored 2026-11-14T22:00:00Z",
        "Capture: 1 waiting, 1 skipped; worker not running",
        "Given to agents: 1,400 tokens today, 300 a day over a week",
        told[3],
        "Problem: 1 event could not be processed; see `ctx doctor`.",
        "Problem: Events are not processed (1 event); start the worker: `ctx worker start`",
    ]
    assert re.fullmatch(
        r"On disk: store 0\.\d MB, backups 0.0 MB, indexes 0.0 MB, spool 0.0 MB", told[3]
    )


def test_what_models_used(
    folder: Path, ctx: Ctx, add: Add, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--type=fact", "One")
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_700_000_000)
    home = surroundings / ".ctx"

    def model_lines() -> list[str]:
        return [line for line in ctx("status").out.splitlines() if line.startswith("Models")]

    assert model_lines() == []
    ctx("config", "set", "llm.backend", "llama_cpp")
    assert model_lines() == ["Models: 0 of 200,000 tokens used today"]
    with closing(sqlite3.connect(home / "store.db", isolation_level=None)) as store:
        event_log.add(
            store, event_log.MODEL_FAILED, "s", {"code": "E031", "message": "It is away."}
        )
    assert model_lines() == [
        "Models: 0 of 200,000 tokens used today; last problem 2026-11-14T23:46:40Z: It is away."
    ]
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_700_005_000)
    with Ledger(str(home / "ledger.db")) as ledger:
        to = ModelTarget("llama_cpp", "http://127.0.0.1:8080", "small")
        meter = ledger.meter(Purpose("llm"), to, Caps(9_000), prices([]))
        meter.reserve(2_000, 10).settle(Usage(1_000, 200), "small")
    with closing(sqlite3.connect(home / "store.db", isolation_level=None)) as store:
        store.execute(
            "INSERT INTO model_answers (session, kind, first, steps, at, model, body, problem)"
            " VALUES ('s', 'steps', '1', '[]', '2026-11-14T23:46:45Z', 'small', '{}', '')"
        )
    # It has answered since.
    assert model_lines() == ["Models: 1,200 of 200,000 tokens used today"]
    # What was used is said also where no model is wanted any more.
    ctx("config", "set", "llm.backend", "off")
    assert model_lines() == ["Models: 1,200 of 200,000 tokens used today"]
    monkeypatch.setattr(clock, "now_ms", lambda: 1_794_800_000_000)
    assert model_lines() == []
    (home / "ledger.db").write_bytes(b"nonsense" * 1_000)
    assert model_lines() == []
    ctx("config", "set", "llm.backend", "llama_cpp")
    (line,) = model_lines()
    assert line.startswith("Models: 0 of 200,000 tokens used today; last problem ")
    assert line.endswith("ledger of model usage: without it, ctx sends no requests.")


def test_a_skipped_event_is_reported_for_a_day(
    repo: Path, ctx: Ctx, add: Add, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("--type=fact", "One")
    with closing(sqlite3.connect(surroundings / ".ctx/store.db", isolation_level=None)) as store:
        store.execute(
            "INSERT INTO events (id, session, event, at, status, body)"
            " VALUES ('1', 's', 'Stop', '2026-11-14T22:00:00Z', 'skipped', '')"
        )
    for later, problems in ((0, 1), (86_400_000, 0)):
        monkeypatch.setattr(clock, "now_ms", lambda ms=later: 1_794_700_000_000 + ms)
        assert len(ctx("status", "--format=json").json["health"]["problems"]) == problems


def test_a_worker_that_hangs(repo: Path, ctx: Ctx, add: Add, surroundings: Path) -> None:
    add("--type=fact", "One")
    home = str(surroundings / ".ctx")
    spool.put(home, spool.new_id(clock.now_ms() - 3_600_000), "stop", b"{}")
    with process_lock.hold(f"{home}/worker.lock", 0):
        (told,) = ctx("status", "--format=json").json["health"]["problems"]
        assert told.startswith(
            "The worker does not process events (1 event waiting); stop it with `ctx worker stop`"
        )
        # On a full disk it could not write down who it is.
        Path(home, "worker.lock").write_text("")
        assert "worker running (pid ?)" in ctx("status").out


def test_a_disabled_capture_is_reported(repo: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "One")

    def not_recorded() -> list[str]:
        lines = ctx("status").out.splitlines()
        return [line.partition(": ")[2] for line in lines if line.startswith("Not recorded: ")]

    assert not_recorded() == []
    ctx("pause")
    ctx("pause", "--project", "--for=2h")
    everywhere, here = not_recorded()
    assert re.fullmatch(
        r"paused everywhere since [\dTZ:-]{20}; `ctx resume` resumes capture\.", everywhere
    )
    assert here.startswith(f"paused in {repo} since ")
    assert " until 2" in here
    assert len(ctx("status", "--format=json").json["health"]["paused"]) == 2
    ctx("resume")
    ctx("config", "set", "capture.ignore_projects", "~/")
    assert not_recorded() == []
    ctx("config", "set", "capture.ignore_projects", "app", "--user")
    left_out = "the project is left out by capture.ignore_projects"
    assert not_recorded() == [
        f"{left_out}; `ctx config explain capture.ignore_projects` shows where it is set."
    ]
    ctx("config", "set", "capture.enabled", "false", "--user")
    assert not_recorded() == [
        "capture.enabled is false; `ctx config explain capture.enabled` shows where it is set."
    ]
