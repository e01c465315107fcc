"""`ctx add` of nodes; files are in test_add_file.py."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ctx import clock, ids
from ctx.hook_files import live
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx

# Put together here, so that no line looks like a key to the scanners of a forge.
SECRET = "_".join(("ghp", "a1B2c3D4" * 4 + "e5F6"))


def test_a_node_with_everything(ctx: Ctx) -> None:
    ran = ctx(
        *("add", "--type=decision", "--tag=tier:reference", "--tag=project:shop"),
        *("--meta=rationale=no servers to run", "--meta=confidence=high", "--summary=SQLite"),
        *("We use", "SQLite", "--format=json"),
    )
    node = ran.json["node"]
    assert ran.json["short_id"] == node["id"][:12]
    assert {name: node[name] for name in ("type", "content", "summary", "tags", "metadata")} == {
        "type": "decision",
        "content": "We use SQLite",
        "summary": "SQLite",
        "tags": ["project:shop", "tier:reference"],
        "metadata": {"rationale": "no servers to run", "confidence": "high"},
    }
    assert node["token_estimate"] == 4
    assert node["created_at"] == node["updated_at"]


def test_a_mistyped_subcommand_is_no_fact(ctx: Ctx) -> None:
    ran = ctx("add", "flie", "src")
    assert ran.code == 2
    assert ran.err == ("error E011: `ctx add` has no subcommand 'flie'.\n  Did you mean `file`?\n")
    assert ctx("add", "nonsense").err == (
        "error E011: 'nonsense' is one word, and no subcommand of `ctx add`.\n"
        '  To add it: `ctx add fact "nonsense"`\n'
    )
    assert ctx("add", "Deploys", "run").err == (
        'error E011: The text is not in quotes.\n  Write `ctx add "Deploys run"`.\n'
    )
    assert ctx("add", "").err.startswith("error E023: There is no content.\n")
    assert "Did you mean `pattern`?" in ctx("add", "patern", "use tabs").err


def test_a_type_can_be_the_first_word(ctx: Ctx, add: Add) -> None:
    for word in ("fact", "pattern", "question", "hypothesis", "decision", "note", "task"):
        type = {"question": "open-question", "note": "observation"}.get(word, word)
        node = ctx("add", word, f"Use {word}", "--format=json").json["node"]
        assert (node["type"], node["content"]) == (type, f"Use {word}")
        assert ctx("help", "add", word).out.startswith("usage: ctx add ")
    assert ctx("show", add("Deploys run on Mondays")).out.startswith("fact ")
    # With a type even the name of a subcommand is content.
    for words in (["--type=fact", "note"], ["--type=fact", "node"], ["file", "--type=fact"]):
        node = ctx("add", *words, "--format=json").json["node"]
        assert node["content"] == min(words, key=len)


def test_content_from_stdin(ctx: Ctx, piped: Piped) -> None:
    for data, message in (
        (b" \n\t ", "There is no content."),
        (b"a\0b", "The content has NUL bytes in it, so it is not text."),
        (b"ab\xff", "The text on stdin is not UTF-8: byte 0xff at 2."),
    ):
        piped(data)
        ran = ctx("add", "--type=fact", "--stdin")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error E023: {message}")
    for words in (["--stdin"], ["-"]):
        piped("\n  zwölf\n    indented\n".encode())
        ran = ctx("add", "--type=observation", *words, "--format=json")
        assert ran.json["node"]["content"] == "zwölf\n    indented"
    assert ctx("add").err == 'error E011: The text is missing.\n  `ctx add "…"`, or --stdin\n'
    assert ctx("add", "--type=fact").err.startswith("error E023: There is no content.")
    assert ctx("add", "fact").err.startswith("error E023: There is no content.")
    assert ctx("list", "--format=json").json["total"] == 2
    # Large content is kept with a warning.
    ran = ctx("-q", "add", "--type=source", "x" * 50_001)
    assert (ran.code, ran.err) == (0, "warning: Large node: 50,001 characters.\n")
    assert ctx("-q", "add", "--type=source", "y" * 50_000).err == ""


def test_mistakes_come_with_the_next_step(ctx: Ctx) -> None:
    fact = "--type=fact"
    for words, message, hint in (
        ([fact, "--tag=tier:pined", "x"], "no tier 'tier:pined'.", "Did you mean `tier:pinned`"),
        ([fact, "--tag=Tier:Pinned", "x"], "", "Did you mean `tier:pinned`?"),
        ([fact, "--meta=novalue", "x"], "--meta novalue has no value.", "Write --meta KEY=VALUE."),
        (["--stdin", "x"], "Give the content", "as an argument or with --stdin"),
        ([fact, "--tag=tier:working", "--tag=tier:off-context", "x"], "", "only one tier besides"),
        (["--no-tier", "--tag=tier:reference", "A fact"], "--no-tier and a tag for a tier", ""),
    ):
        ran = ctx("add", *words)
        assert ran.code == 2
        assert message in ran.err
        assert hint in ran.err
    assert ctx("add", fact, "--tag=tier:working", "--tag=tier:pinned", "x").code == 0


def test_a_secret_is_removed_and_reported(ctx: Ctx) -> None:
    meta = (f"--meta=password={SECRET}", f"--meta={SECRET}=1")
    ran = ctx("add", "--type=fact", f"The key is {SECRET}", *meta)
    assert ran.code == 0
    assert "3 secrets removed: content, line 1" in ran.err
    assert "metadata password" in ran.err
    assert SECRET not in ran.err
    assert SECRET not in ctx("export").out
    ran = ctx("add", "--type=fact", f"--tag=key:{SECRET}", "x")
    assert ran.code == 2
    assert "A tag contains a secret." in ran.err
    assert ctx("list", "--format=json").json["total"] == 1


@pytest.mark.slow
def test_two_megabytes(ctx: Ctx, piped: Piped) -> None:
    piped(b"the quick brown fox \n" * 100_000)
    ran = ctx("add", "--type=source", "--stdin")
    assert ran.code == 0
    assert ctx("search", "quick").out.startswith(f"  {ran.out.split()[1]}  source")


def test_what_is_typed_is_shown_to_agents(ctx: Ctx) -> None:
    for words in (["A fact"], ["fact", "A fact"], ["--type=fact", "A fact"]):
        ran = ctx("add", *words)
        assert ran.out.endswith(" (tier:reference)\n")
        assert ran.err.startswith("Agents are shown this from their next session on.")
    assert ctx("compose").out.count("] A fact\n") == 3
    assert ctx("add", "--type=fact", "--tag=tier:reference", "Fact").err == ""
    ran = ctx("add", "--type=fact", "--no-tier", "Fact")
    assert ran.err == (
        "Agents are not shown this at start. To show it: "
        f"`ctx tag {ran.out.split()[1]} tier:reference`\n"
    )
    ctx("task", "start", "Retry")
    ran = ctx("add", "Half done")
    assert ran.out.endswith(" (tier:working, task:retry)\n")
    assert ran.err.startswith("Agents are shown this during the current task.")
    assert ctx("add", "Kept for good", "--tag=tier:reference", "--format=json").json["given"] == []


def test_a_correction_of_a_node_without_a_tier_is_shown(ctx: Ctx, add: Add) -> None:
    def corrected(old: str, *words: str) -> Any:
        return ctx("add", f"--supersedes={old}", "A new one", *words, "--format=json").json

    assert corrected(add("--type=fact", "Old", "--no-tier"))["given"] == ["tier:reference"]
    away = add("--type=fact", "--tag=tier:off-context", "Old")
    assert corrected(away)["given"] == ["tier:off-context"]
    assert corrected(away, "--no-tier")["given"] == []
    # It has the type and place of what it corrects.
    old = add("--type=decision", "--tag=tier:reference", "--tag=project:shop", "Old")
    ran = corrected(old)
    assert ran["node"]["type"] == "decision"
    assert ran["given"] == ["project:shop", "tier:reference"]
    other = corrected(old, "--type=fact", "--tag=tier:working")["node"]
    assert (other["type"], other["tags"]) == ("fact", ["project:shop", "tier:working"])


def test_what_comes_through_a_pipe_or_from_an_agent_gets_no_tier(
    ctx: Ctx, piped: Piped, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["--stdin"], ["--type=fact", "-"], ["note", "-"]):
        piped(b"A log line")
        assert "tier:" not in " ".join(ctx("add", *words, "--format=json").json["node"]["tags"])
    session = "0b5c8a0e-1f7e-4f6e-9d57-0f1a3f3f2b11"
    live.begin(str(surroundings / ".ctx"), session, str(os.getpid()), str(surroundings))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    assert ctx("add", "Fact found", "--format=json").json["given"] == []
    assert ctx("compose", "--format=json").json["nodes"] == []


def test_nodes_added_in_a_project_belong_to_it(ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:reference", "x").out.endswith(" (project:app)\n")
    assert "project:" not in ctx("add", "--type=fact", "--user", "x").out
    named = ctx("add", "--no-tier", "--tag=project:other", "x y", "--format=json").json
    assert named["node"]["tags"] == ["project:other"]


def test_a_clock_that_was_ahead_does_not_date_what_comes_after(
    ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now_ms()
    monkeypatch.setattr(time, "time_ns", lambda: (now + 365 * 86_400_000) * 1_000_000)
    ahead = ctx("add", "--type=fact", "--tag=a:b", "Ahead", "--format=json").json["node"]
    assert ahead["created_at"] > clock.iso(now + 300 * 86_400_000)
    monkeypatch.setattr(time, "time_ns", lambda: now * 1_000_000)
    ids._source.forget()  # The next command would be another process.
    node = ctx("add", "--type=fact", "--tag=a:b", "Right again", "--format=json").json["node"]
    assert node["created_at"] == node["updated_at"] == clock.iso(now)
    ctx("update", node["id"], "--content=Later")
    assert ctx("show", node["id"], "--format=json").json["node"]["updated_at"] == clock.iso(now)
    assert ctx("store", "check").code == 0


def test_the_answer_names_the_session_that_has_staged_it(project: Path, ctx: Ctx) -> None:
    for words, session in [(["--session=s-42"], "s-42"), ([], "cli"), (["--user"], None)]:
        added = ctx("add", "--no-tier", f"Of {session}", *words, "--json").json["node"]
        shown = ctx("show", added["id"], "--json").json["node"]
        assert (added["staged"], shown["staged"]) == (session, session)
