"""`ctx query` with a task: a pack."""

import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from ctx import tokens
from ctx.codebase import background_refresh, freshness
from ctx.packs.prompt_pack import PromptPack
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx, git

FILES = {
    "src/net.py": '''\
"""Connections to the payment gateway."""

from src.waiting import Backoff


class Client:
    """A connection to one server."""

    def connect(self, timeout: float = 3.0) -> bool:
        """Connect, and try again after a timeout."""
        for delay in Backoff(5).delays():
            if self.send("hello", timeout + delay):
                return True
        return False

    def send(self, text: str, timeout: float) -> bool:
        return bool(text and timeout)
''',
    "src/waiting.py": '''\
"""How long to wait before the next try."""


class Backoff:
    """Delays that double."""

    def delays(self) -> list[float]:
        return [0.1 * 2**number for number in range(self.retries)]
''',
    "src/invoices.py": '''\
def printed(number: int) -> str:
    """An invoice on paper."""
    return f"Invoice {number}"
''',
    "tests/test_net.py": """\
from src.net import Client


def test_connect():
    assert Client("here").connect()
""",
}
TASK = "The connection timeout in Client.connect is too short"


@pytest.fixture
def shop(project: Path, ctx: Ctx) -> Path:
    """A project with code, a decision about it, and a git commit."""
    for path, text in FILES.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text(text)
    body = "All clients at once would bring the gateway down again."
    ran = ctx("add", "decision", "Timeouts double at every retry", "--body", body)
    assert ran.code == 0, ran.err
    assert ctx("add", "--type=fact", "Invoices are kept for ten years").code == 0
    git("add", "-A")
    git("commit", "-qm", "A shop")
    return project


def paths(pack: dict[str, Any]) -> list[str]:
    return [chunk["path"] for chunk in pack["retrieved"] if chunk["path"]]


def test_a_task_gives_a_pack(shop: Path, ctx: Ctx) -> None:
    ran = ctx("query", TASK)
    assert (ran.code, ran.err) == (0, "")
    pack = ran.json
    assert list(pack) == list(PromptPack._fields)
    assert pack["task"] == TASK
    first = pack["retrieved"][0]
    assert (first["path"], first["chunk_kind"]) == ("src/net.py", "FileContent")
    assert "def connect(self, timeout: float = 3.0) -> bool:" in first["snippet"]
    assert "Decision" in {chunk["chunk_kind"] for chunk in pack["retrieved"]}
    assert "src/waiting.py" in [each["path"] for each in pack["related"]]
    assert "src/invoices.py" not in paths(pack)[:2]
    assert pack["files"][0]["path"] == "src/net.py"
    assert pack["code_index"]["state"] == "fresh"
    assert 0 < pack["token_budget"]["used"] <= pack["token_budget"]["total"] == 4_000
    assert 0 < pack["confidence"] <= 1
    assert git("status", "--porcelain") == ""
    packed = ctx("pack", TASK).json
    for answer in (pack, packed):
        del answer["receipt"], answer["code_index"]["refreshed_at"]
    assert packed == pack
    # Filters alone, too.
    assert "retrieved" in ctx("pack", "type:fact").json
    more = ctx("pack", TASK, "--more").json
    assert more["token_budget"]["total"] == 16_000
    assert (pack["unlikely"], more["unlikely"]) == (1, 0)
    every = [each["title"] for each in more["retrieved"]]
    assert len(every) > 2
    for limit in range(1, len(every)):
        limited = ctx("pack", TASK, "--more", "-n", str(limit)).json["retrieved"]
        assert [each["title"] for each in limited] == every[:limit]


def test_the_same_in_every_format(shop: Path, ctx: Ctx) -> None:
    pack = ctx("query", TASK, "--format=json").json
    written = ctx("query", TASK, "--format=yaml").out
    same = {"receipt": None, "code_index": None}
    assert {**yaml.load(written, yaml.SafeLoader), **same} == {**pack, **same}
    markdown = ctx("query", TASK, "--format=markdown").out
    assert markdown.startswith(f"# Context for `{TASK}`\n")
    assert "def connect(self, timeout: float = 3.0) -> bool:" in markdown
    assert tokens.estimate(markdown) <= pack["token_budget"]["used"]
    text = ctx("query", TASK, "--format=text")
    head = f"{len(pack['retrieved'])} chunks, {pack['token_budget']['used']:,} of 4,000 tokens."
    assert text.out.startswith(head)
    assert "\nsrc/net.py:" in text.out
    assert text.err.startswith("To see why: `ctx why ")
    told = "A query with words is a pack, see `ctx pack`. For nodes: `ctx search`\n"
    assert text.err.endswith(told)
    assert told not in ctx("pack", TASK, "--format=text").err


def test_into_a_file(shop: Path, ctx: Ctx, tmp_path: Path) -> None:
    file = tmp_path / "pack.json"
    ran = ctx("query", TASK, "--output", str(file))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith(f"Wrote {len(json.loads(file.read_text())['retrieved'])} chunks, ")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ctx("-C", "src", "query", TASK, "--output", "../pack.md", "--format=markdown")
    assert (shop / "pack.md").read_text().startswith("# Context for")
    missing = ctx("query", TASK, "--output", "no/such/folder.json")
    assert f"error E015: There is no folder {shop}/no/such." in missing.err


def test_filters_hold_for_everything(shop: Path, ctx: Ctx) -> None:
    [chunk] = ctx("query", "type:decision timeout").json["retrieved"]
    assert chunk["chunk_kind"] == "Decision"
    only = ctx("query", "timeout retries path:src/waiting.py").json
    assert set(paths(only)) == {"src/waiting.py"}
    assert all(chunk["path"] for chunk in only["retrieved"])
    rest = ctx("query", "connection retries NOT path:src/net.py").json
    assert "src/net.py" not in paths(rest)
    assert paths(rest)
    user = ctx("query", "timeout", "--user").json
    assert (user["retrieved"], user["code_index"]["state"]) == ([], "none")


def test_nodes_or_a_pack(shop: Path, ctx: Ctx) -> None:
    nodes = ctx("query", "timeout", "--as=nodes", "--format=json").json["nodes"]
    assert [node["type"] for node in nodes] == ["decision"]
    assert "Timeouts double" in ctx("query", "type:decision").out
    packed = ctx("query", "type:decision OR type:fact", "--as=pack").json
    assert [chunk["chunk_kind"] for chunk in packed["retrieved"]] == ["Memory", "Decision"]
    assert yaml.safe_load(ctx("query", "type:decision", "--format=yaml").out)["total"] == 1


def test_what_is_about_packs_is_refused_for_nodes(folder: Path, ctx: Ctx) -> None:
    narrative = ("--no-narrative", "--include-narrative")
    for option in ("--budget=9", "--no-graph", "--depth=2", "--output=x", "--explain", *narrative):
        ran = ctx("query", "type:fact", option)
        named = option.partition("=")[0]
        told = f"error E011: {named} applies to packs, and filters alone list nodes.\n"
        assert (ran.code, ran.err.startswith(told)) == (2, True)


def test_a_receipt_says_what_has_changed_since(
    project: Path, ctx: Ctx, add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = add("--type=fact", "Deploys run on Fridays")
    receipt = ctx("query", "When do deploys run?").json["receipt"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    [there] = ctx("why", receipt, "--format=json").json["items"]
    assert (there["changed"], there["content"]) == (None, None)
    assert ctx("why", receipt).out.endswith(f"\nUnknown here: {there['label']}\n")
    monkeypatch.chdir(project)
    assert "Fact: Deploys run on Fridays" in ctx("why", receipt).out
    assert ctx("delete", node, "--yes").code == 0
    told = ctx("why", receipt).out
    assert told.endswith(f"\nChanged since\n  fact:{node}    (deleted since)\n")
    # It is forgotten how it began, too.
    assert "\n1  Fact: (deleted since)\n" in told


def test_a_deleted_node_that_a_pack_left_out_is_forgotten(
    project: Path, ctx: Ctx, add: Add
) -> None:
    for number in range(6):
        add("--type=fact", f"Deploys run on day {number} " + f"and take {number} hours " * 60)
    receipt = ctx("query", "When do deploys run?", "--budget=300").json["receipt"]

    def left_out() -> list[str]:
        pack = ctx("why", receipt, "--format=json").json["packed"]
        return [each["title"] for each in pack["left_out"]]

    title, *_ = left_out()
    (node,) = [
        each["id"]
        for each in ctx("list", "--type=fact", "--format=json").json["nodes"]
        if title[6:30] in each["content"]
    ]
    assert ctx("delete", node, "--yes").code == 0
    assert left_out()[0] == "Fact: (deleted since)"


def test_no_secret_enters_a_receipt(
    folder: Path, ctx: Ctx, surroundings: Path, piped: Piped
) -> None:
    secret = "Tr0ub4dor-and-3-horses"
    pack = ctx("query", f"Why is password={secret} refused?").json
    assert "[redacted:password]" in ctx("why", pack["receipt"]).out
    with closing(sqlite3.connect(surroundings / ".ctx" / "store.db")) as connection:
        [(kept,)] = connection.execute("SELECT items FROM receipts")
    assert secret not in kept
    lines = [f"{number:02}{'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKc' * 2}"[:64] for number in range(25)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    piped(f"The server refuses this key\n{key}\nand says why".encode())
    receipt = ctx("query", "-").json["receipt"]
    assert ctx("why", receipt, "--format=json").json["packed"]["task"] == (
        "The server refuses this key [redacted:private-key] and says why"
    )


def test_without_a_receipt_the_answer_is_the_same(
    folder: Path, ctx: Ctx, add: Add, surroundings: Path
) -> None:
    add("--type=fact", "Deploys run on Fridays")
    with closing(sqlite3.connect(surroundings / ".ctx" / "store.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = ctx("query", "When do deploys run?")
        other.execute("ROLLBACK")
    assert (ran.code, ran.err, ran.json["receipt"]) == (0, "", None)
    assert [chunk["chunk_kind"] for chunk in ran.json["retrieved"]] == ["Memory"]


def test_edges_do_not_lead_through_what_is_out_of_sight(project: Path, ctx: Ctx, add: Add) -> None:
    start = add("--user", "--type=fact", "The giraffe protocol has a handshake")
    theirs = add("--user", "--type=fact", "Secret plan of others", "--tag", "project:other")
    behind = add("--user", "--type=fact", "Walruses sing")
    beside = add("--user", "--type=fact", "Penguins dance")
    for one, other in ((start, theirs), (theirs, behind), (start, beside)):
        assert ctx("link", one, other).code == 0

    def answer(*words: str) -> str:
        ran = ctx("query", *words)
        assert ran.code == 0, ran.err
        return ran.out + ctx("why", ran.json["receipt"]).out

    told = answer("giraffe protocol handshake")
    assert "Penguins dance" in told
    assert "Secret plan" not in told
    assert "Walruses" not in told
    # What was replaced is named, but not to everybody.
    for old, tag in ((theirs, "project:other"), (beside, "project:app")):
        newer = add("--user", "--type=fact", "A newer one", "--tag", tag)
        assert ctx("link", newer, old, "--type=SUPERSEDES").code == 0
    told = answer("giraffe protocol handshake")
    assert "Penguins dance" in told
    assert "Secret plan" not in told
    assert "Penguins" not in answer("type:decision giraffe protocol handshake")


def test_where_a_graph_lies_says_nothing_about_code(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = str(tmp_path / "store.db")
    assert ctx("--db", named, "add", "A fact").code == 0
    assert paths(ctx("--db", named, "query", TASK).json)[0] == "src/net.py"
    # An answer needs no place for the user store.
    monkeypatch.setenv("CTX_HOME", os.path.join(os.devnull, "home"))
    ran = ctx("query", TASK)
    assert (ran.code, paths(ran.json)[0], ran.json["receipt"]) == (0, "src/net.py", None)


def test_what_git_refuses_is_not_looked_at(
    repo: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "deploys.py").write_text("def deploys_run():\n    pass\n")
    add("--user", "--type=fact", "Deploys run on Fridays")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    pack = ctx("query", "When do deploys run?").json
    assert [chunk["snippet"] for chunk in pack["retrieved"]] == ["Deploys run on Fridays"]
    assert pack["code_index"]["state"] == "refused"
    told = "The code is not included: git failed. See `git status`.\n"
    assert told in ctx("query", "When do deploys run?", "--format=text").out
    assert told in ctx("recall", "deploys").out


def test_a_stranger_gives_nothing_but_code(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "-q", str(shop), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    ran = ctx("query", TASK)
    assert "not trusted" in ran.err
    assert {chunk["chunk_kind"] for chunk in ran.json["retrieved"]} <= {
        "FileContent",
        "SymbolDefinition",
    }
    assert paths(ran.json)[0] == "src/net.py"
    assert (ran.json["recent_narrative"], ran.json["withheld"]) == ("", True)
    assert ctx("trust", "--yes").code == 0
    assert ctx("query", TASK).json["withheld"] is False
    [decision] = [
        chunk for chunk in ctx("query", TASK).json["retrieved"] if chunk["chunk_kind"] == "Decision"
    ]
    assert decision["title"].startswith("Decision by ")


def test_a_long_one_comes_from_stdin(shop: Path, ctx: Ctx, piped: Piped) -> None:
    frame = '  File "src/net.py", line 12, in connect\n    if self.send("hello", timeout)\n'
    piped(f'Traceback:\n{frame * 300}\nTimeoutError: AND ( "\n'.encode())
    pack = ctx("query", "-").json
    assert paths(pack)[0] == "src/net.py"
    # It was pasted, and is not given back.
    assert len(pack["task"]) < 5_000


def test_a_damaged_index_of_the_code_is_made_anew(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ctx("query", TASK).json
    (database,) = (shop / ".git" / "ctx").rglob("code.db")
    pages = bytearray(database.read_bytes())
    # All but the first pages, so that it can still be opened.
    pages[2 * 4096 :] = bytes(len(pages) - 2 * 4096)
    database.write_bytes(pages)
    # As one that is too large to be brought up to date first.
    monkeypatch.setattr(freshness, "FEW_FILES", 0)
    assert "E018" not in ctx("recall", "timeout retries").err
    ran = ctx("query", TASK)
    assert (ran.code, ran.json["files"][0]["path"]) == (0, before["files"][0]["path"])
    background_refresh.wait()


@pytest.mark.parametrize(
    ("table", "words"),
    [("edges", ("query", TASK)), ("files", ("query", TASK)), ("items", ("recall", "connection"))],
)
def test_damage_in_one_place_is_mended_too(
    shop: Path, ctx: Ctx, table: str, words: tuple[str, ...]
) -> None:
    assert ctx("query", TASK).code == 0
    (database,) = (shop / ".git" / "ctx").rglob("code.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        )
    pages = bytearray(database.read_bytes())
    pages[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    database.write_bytes(pages)
    ran = ctx(*words, "--format=json")
    assert (ran.code, ran.err) == (0, "")
    assert "src/net.py" in ran.out
    assert ctx("query", TASK).json["code_index"]["state"] == "fresh"


def test_limits_of_a_pack(shop: Path, ctx: Ctx) -> None:
    small = ctx("query", TASK, "--budget=600").json
    assert small["token_budget"]["used"] <= small["token_budget"]["total"] == 600
    assert paths(small)[0] == "src/net.py"
    reserved = ctx("query", TASK, "--budget=900", "--set=retrieval.reserved_for_response=300").json
    assert reserved["token_budget"]["used"] <= 600
    refused = ctx("query", TASK, "--budget=5")
    assert (refused.code, refused.out, refused.err[:12]) == (1, "", "error E010: ")
    for words in (["--no-graph"], ["--depth=0"]):
        pack = ctx("query", TASK, *words).json
        assert not [chunk for chunk in pack["retrieved"] if chunk["via"]]
        assert pack["graph_context"]["expansion_depth"] == 0
    for words, told in (
        (["--budget", "9" * 20], "--budget: 999999999999999… is too large."),
        (["--depth=11"], "--depth: must be at most 10."),
        (["--depth=1", "--no-graph"], "not allowed"),
    ):
        refused = ctx("query", TASK, *words)
        assert (refused.code, told in refused.err) == (2, True)


def test_why_explains_a_pack(shop: Path, ctx: Ctx) -> None:
    pack = ctx("query", TASK).json
    receipt = pack["receipt"]
    told = ctx("query", TASK, "--explain", "--format=text").out
    why = ctx("why", receipt)
    best = pack["retrieved"][0]
    sum_of = " + ".join(f"{each['name']} {each['value']:.2f}" for each in best["signals"])
    for text in (told, why.out):
        assert f"{best['tokens']:,} tokens, score {best['relevance_score']:.2f}: {sum_of}" in text
    assert "\nFiles by rank\n" in told
    head = why.out.splitlines()[:4]
    used = pack["token_budget"]["used"]
    of_kinds = "1 passage of a file and 1 node"
    assert head[0].endswith(f": {of_kinds}, {used:,} of 4,000 tokens")
    assert head[1:] == [
        f"Session cli, receipt {receipt}",
        f"Task: {TASK}",
        f"Confidence {100 * pack['confidence']:.0f} %; the code: fresh",
    ]
    explained = ctx("why", receipt, "--format=json").json
    packed = explained["packed"]
    for key in ("title", "tokens", "via"):
        assert [each[key] for each in packed["chunks"]] == [each[key] for each in pack["retrieved"]]
    assert [(each["title"], each["reason"]) for each in packed["left_out"]] == [
        (each["title"], each["reason"]) for each in pack["left_out"][:50]
    ]
    [given] = explained["items"]
    assert given["content"].startswith("Timeouts double at every retry")
    listed = ctx("why", "--list", "--limit=1").out
    assert f"  query  {of_kinds}  " in listed


def test_where_nothing_was_found(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(task: str) -> str:
        ran = ctx("query", task, "--format=text")
        assert ran.out == "Nothing found.\n"
        return ran.err

    assert told("Where are elephants?") == "Try other words, or names from the code.\n"
    assert told("connect fails with path:None").startswith("`path:None` limits the search.")
    assert paths(ctx("query", 'connect fails with "path:None"').json)
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    assert told("Where are elephants?").startswith("Searched memory only: this folder is not a ")
    (outside / "deploys.py").write_text("def deploys_run():\n    pass\n")
    ctx("add", "--type=fact", "Deploys run on Fridays")
    pack = ctx("query", "When do deploys run?").json
    assert [chunk["snippet"] for chunk in pack["retrieved"]] == ["Deploys run on Fridays"]
    assert (pack["files"], pack["code_index"]["state"]) == ([], "none")


def test_a_task_that_is_named_and_what_happened_lately(project: Path, ctx: Ctx) -> None:
    assert ctx("task", "start", "Round the walrus").code == 0
    assert ctx("add", "decision", "A walrus has whole tusks").code == 0
    assert ctx("commit", "-m", "About animals").code == 0
    pack = ctx("query", "does a walrus have whole tusks").json
    titles = [chunk["title"] for chunk in pack["retrieved"]]
    assert titles[:2] == ["Decision: A walrus has whole tusks", "Task: Round the walrus"]
    assert not any(title.endswith("› Decisions") for title in titles)
    assert "About animals" in pack["recent_narrative"]
    assert "walrus" not in pack["recent_narrative"]
    assert pack["graph_context"]["seed_nodes"] == ["decision_0001", "task_0001"]
    price = tokens.estimate(pack["recent_narrative"])
    why = ctx("why", pack["receipt"], "--format=json").json
    chunks = sum(chunk["tokens"] for chunk in pack["retrieved"])
    assert why["packed"]["narrative"] == price > 0
    assert why["frame"] == pack["token_budget"]["used"] - chunks - price
    assert f"\nRecent log: {price:,} tokens.\n" in ctx("why", pack["receipt"]).out
    ctx("add", "--type=fact", "A walrus is heavy")
    for query, first in (
        ("task_0001 walrus", "Task: Round the walrus"),
        ("type:fact task_0001 is a heavy walrus", "Fact: A walrus is heavy"),
        ("type:task task_0001", "Task: Round the walrus"),
    ):
        found = [chunk["title"] for chunk in ctx("query", query).json["retrieved"]]
        assert found[0] == first
        assert found == [first] or not query.startswith("type:")
