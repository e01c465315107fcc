"""`ctx add` of nodes; files are in test_add_file.py."""

import io
import os
import sys
import time
from pathlib import Path

import pytest

from ctx import clock, ids
from ctx.hook_files import live
from tests.cli.conftest import Add
from tests.conftest import Ctx

# Put together here, so that no line looks like a key to the scanners of a forge.
SECRET = "_".join(("ghp", "a1B2c3D4" * 4 + "e5F6"))


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_node_with_everything(ctx: Ctx) -> None:
    ran = ctx(
        "add",
        "--type=decision",
        "--tag=tier:reference",
        "--tag=project:shop",
        "--meta=rationale=no servers to run",
        "--meta=confidence=high",
        "--summary=SQLite",
        "We use SQLite",
        "--format=json",
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


def test_words_are_joined(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=task", "Deploy", "on", "Mondays")
    assert ctx("show", node_id, "--format=json").json["node"]["content"] == "Deploy on Mondays"


def test_a_sentence_is_a_fact(ctx: Ctx, add: Add) -> None:
    assert ctx("show", add("Deploys run on Mondays")).out.startswith("fact ")


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


@pytest.mark.parametrize(
    ("word", "type"),
    [
        ("fact", "fact"),
        ("pattern", "pattern"),
        ("question", "open-question"),
        ("hypothesis", "hypothesis"),
        ("decision", "decision"),
        ("note", "observation"),
        ("task", "task"),
    ],
)
def test_a_type_can_be_the_first_word(ctx: Ctx, word: str, type: str) -> None:
    node = ctx("add", word, "Use tabs", "--format=json").json["node"]
    assert (node["type"], node["content"]) == (type, "Use tabs")
    assert ctx("help", "add", word).out.startswith("usage: ctx add ")


@pytest.mark.parametrize("word", ["file", "note", "node"])
def test_the_name_of_a_subcommand_can_be_content(ctx: Ctx, add: Add, word: str) -> None:
    node_id = add("--type=fact", word)
    assert ctx("show", node_id, "--format=json").json["node"]["content"] == word


def test_with_a_type_even_the_first_word_is_content(ctx: Ctx, add: Add) -> None:
    node_id = add("file", "--type=fact")
    assert ctx("show", node_id, "--format=json").json["node"]["content"] == "file"


def test_without_a_text_and_a_terminal_it_is_an_error(ctx: Ctx) -> None:
    assert ctx("add").err == 'error E011: The text is missing.\n  `ctx add "…"`, or --stdin\n'
    assert ctx("add", "--type=fact").err.startswith("error E023: There is no content.")
    assert ctx("add", "fact").err.startswith("error E023: There is no content.")


@pytest.mark.parametrize("words", [["--stdin"], ["-"]])
def test_content_from_stdin(ctx: Ctx, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    stdin(monkeypatch, "\n  zwölf\n    indented\n".encode())
    ran = ctx("add", "--type=observation", *words, "--format=json")
    assert ran.json["node"]["content"] == "zwölf\n    indented"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "error E023: There is no content."),
        (b" \n\t ", "error E023: There is no content."),
        (b"a\0b", "error E023: The content has NUL bytes in it, so it is not text."),
        (b"ab\xff", "error E023: The text on stdin is not UTF-8: byte 0xff at 2."),
    ],
)
def test_what_is_no_text_is_refused(
    ctx: Ctx, monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    stdin(monkeypatch, data)
    ran = ctx("add", "--type=fact", "--stdin")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(message)
    assert ctx("list").out == "No nodes.\n"


def test_large_content_is_kept_with_a_warning(ctx: Ctx) -> None:
    ran = ctx("-q", "add", "--type=source", "x" * 50_001)
    assert ran.code == 0
    assert ran.err == "warning: Large node: 50,001 characters.\n"
    assert ctx("-q", "add", "--type=source", "y" * 50_000).err == ""


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--type=fcat", "x"], "There is no node type 'fcat'.", "Did you mean `fact`?"),
        (["--type=", "x"], "There is no node type ''.", "There are: fact, decision, "),
        (["--type=fact", "--tag=a b", "x"], "'a b' cannot be a tag.", "A tag is namespace:value"),
        (
            ["--type=fact", "--tag=tier:pined", "x"],
            "There is no tier 'tier:pined'.",
            "Did you mean `tier:pinned`",
        ),
        (
            ["--type=fact", "--meta=novalue", "x"],
            "--meta novalue has no value.",
            "Write --meta KEY=VALUE.",
        ),
        (["--stdin", "x"], "Give the content", "as an argument or with --stdin"),
    ],
)
def test_mistakes_come_with_the_next_step(
    ctx: Ctx, words: list[str], message: str, hint: str
) -> None:
    ran = ctx("add", *words)
    assert ran.code == 2
    assert message in ran.err
    assert hint in ran.err


def test_a_secret_is_removed_and_reported(ctx: Ctx, surroundings: Path) -> None:
    ran = ctx("add", "--type=fact", f"The key is {SECRET}", f"--meta=password={SECRET}")
    assert ran.code == 0
    assert "2 secrets removed: content, line 1" in ran.err
    assert "metadata password" in ran.err
    stored = (surroundings / ".ctx" / "store.db").read_bytes()
    assert SECRET.encode() not in stored
    for log in (surroundings / ".ctx").glob("*-wal"):
        assert SECRET.encode() not in log.read_bytes()


def test_a_tag_that_is_a_secret_is_refused(ctx: Ctx) -> None:
    ran = ctx("add", "--type=fact", f"--tag=key:{SECRET}", "x")
    assert ran.code == 1
    assert "A tag contains a secret." in ran.err
    assert ctx("list").out == "No nodes.\n"


@pytest.mark.slow
def test_ten_megabytes(ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"the quick brown fox \n" * 500_000)
    ran = ctx("add", "--type=source", "--stdin")
    assert ran.code == 0
    assert ctx("search", "quick").out.startswith(f"  {ran.out.split()[1]}  source")


@pytest.mark.parametrize("words", [["A fact"], ["fact", "A fact"], ["--type=fact", "A fact"]])
def test_what_is_typed_is_shown_to_agents(ctx: Ctx, words: list[str]) -> None:
    ran = ctx("add", *words)
    assert ran.out.endswith(" (tier:reference)\n")
    assert ran.err.startswith("Agents are shown this from their next session on.")
    assert "] A fact\n" in ctx("compose").out


def test_during_a_task_it_is_a_working_node(ctx: Ctx) -> None:
    ctx("task", "start", "Retry")
    ran = ctx("add", "Half done")
    assert ran.out.endswith(" (tier:working, task:retry)\n")
    assert ran.err.startswith("Agents are shown this during the current task.")
    assert ctx("add", "Kept for good", "--tag=tier:reference", "--format=json").json["given"] == []


def test_a_correction_of_a_node_without_a_tier_is_shown(ctx: Ctx, add: Add) -> None:
    old = add("--type=fact", "On Fridays", "--no-tier")
    ran = ctx("add", f"--supersedes={old}", "On Mondays", "--format=json").json
    assert ran["given"] == ["tier:reference"]
    away = add("--type=fact", "--tag=tier:off-context", "Old")
    ran = ctx("add", f"--supersedes={away}", "New one", "--format=json").json
    assert ran["given"] == ["tier:off-context"]
    ran = ctx("add", f"--supersedes={away}", "New one", "--no-tier", "--format=json").json
    assert ran["given"] == []


def test_what_comes_through_a_pipe_gets_no_tier(ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["--stdin"], ["--type=fact", "-"], ["note", "-"]):
        stdin(monkeypatch, b"A log line")
        assert "tier:" not in " ".join(ctx("add", *words, "--format=json").json["node"]["tags"])
    assert ctx("compose", "--format=json").json["nodes"] == []


def test_what_an_agent_adds_in_its_shell_gets_no_tier(
    ctx: Ctx, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = "0b5c8a0e-1f7e-4f6e-9d57-0f1a3f3f2b11"
    live.begin(str(surroundings / ".ctx"), session, str(os.getpid()), str(surroundings))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    assert ctx("add", "Fact found", "--format=json").json["given"] == []


def test_a_node_without_a_tier_gets_a_note(ctx: Ctx) -> None:
    ran = ctx("add", "--type=fact", "--no-tier", "Fact")
    short = ran.out.split()[1]
    assert ran.err == (
        f"Agents are not shown this at start. To show it: `ctx tag {short} tier:reference`\n"
    )
    refused = ctx("add", "--no-tier", "--tag=tier:reference", "A fact")
    assert refused.err == "error E011: --no-tier and a tag for a tier exclude each other.\n"
    assert ctx("add", "--type=fact", "--tag=tier:reference", "Fact").err == ""


def test_a_correction_has_the_type_and_place_of_what_it_corrects(ctx: Ctx, add: Add) -> None:
    old = add("--type=decision", "--tag=tier:reference", "--tag=project:shop", "On Fridays")
    ran = ctx("add", f"--supersedes={old}", "Deploy on Mondays", "--format=json").json
    assert ran["node"]["type"] == "decision"
    assert ran["given"] == ["project:shop", "tier:reference"]
    other = ctx(
        "add", f"--supersedes={old}", "--type=fact", "--tag=tier:working", "x", "--format=json"
    )
    assert other.json["node"]["type"] == "fact"
    assert other.json["node"]["tags"] == ["project:shop", "tier:working"]


def test_nodes_added_in_a_project_belong_to_it(ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:reference", "x").out.endswith(" (project:app)\n")
    assert "project:" not in ctx("add", "--type=fact", "--user", "x").out
    named = ctx("add", "--no-tier", "--tag=project:other", "x y", "--format=json").json
    assert named["node"]["tags"] == ["project:other"]


def test_a_node_has_one_tier_beside_the_pin(ctx: Ctx) -> None:
    ran = ctx("add", "--type=fact", "--tag=tier:working", "--tag=tier:off-context", "x")
    assert ran.code == 2
    assert "A node can have only one tier besides the pin." in ran.err
    assert ctx("add", "--type=fact", "--tag=tier:working", "--tag=tier:pinned", "x").code == 0
    assert "Did you mean `tier:pinned`?" in ctx("add", "--type=fact", "--tag=Tier:Pinned", "x").err


def test_a_secret_in_a_key_is_reported_without_it(ctx: Ctx) -> None:
    ran = ctx("add", "--type=fact", "--tag=tier:reference", "x", f"--meta={SECRET}=1")
    assert "secret removed" in ran.err
    assert SECRET not in ran.err


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
