"""`ctx query` with a task: a pack."""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from ctx import tokens
from ctx.codebase import background_refresh, freshness
from ctx.packs.prompt_pack import PromptPack
from tests.cli.conftest import Add, Piped
from tests.cli.test_colours import seen_by_a_terminal
from tests.conftest import Ctx, git

FILES = {
    "src/net.py": '''\
"""Connections to the payment gateway."""

from src.waiting import Backoff


class Client:
    """A connection to one server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def connect(self, timeout: float = 3.0) -> bool:
        """Connect, and try again after a timeout."""
        for delay in Backoff(5).delays():
            if self.send("hello", timeout + delay):
                return True
        return False

    def send(self, text: str, timeout: float) -> bool:
        return bool(self.address and text and timeout)
''',
    "src/waiting.py": '''\
"""How long to wait before the next try."""


class Backoff:
    """Delays that double."""

    def __init__(self, retries: int) -> None:
        self.retries = retries

    def delays(self) -> list[float]:
        return [0.1 * 2**number for number in range(self.retries)]
''',
    "src/invoices.py": '''\
"""Invoices as people print them."""


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
    kinds = {chunk["chunk_kind"] for chunk in pack["retrieved"]}
    assert "Decision" in kinds
    assert "src/waiting.py" in paths(pack)
    assert "src/invoices.py" not in paths(pack)[:2]
    assert pack["files"][0]["path"] == "src/net.py"
    assert pack["code_index"]["state"] == "fresh"
    assert pack["token_budget"]["total"] == 16_000
    assert 0 < pack["token_budget"]["used"] <= 16_000
    assert 0 < pack["confidence"] <= 1
    assert pack["receipt"]
    assert git("status", "--porcelain") == ""


def without_receipt(pack: dict[str, Any]) -> dict[str, Any]:
    return {**pack, "receipt": None, "code_index": None}


def test_the_same_in_every_format(shop: Path, ctx: Ctx) -> None:
    pack = ctx("query", TASK, "--format=json").json
    written = ctx("query", TASK, "--format=yaml").out
    assert without_receipt(yaml.load(written, yaml.SafeLoader)) == without_receipt(pack)
    assert "snippet: |2" in written
    markdown = ctx("query", TASK, "--format=markdown").out
    assert markdown.startswith(f"# Context for `{TASK}`\n")
    assert "def connect(self, timeout: float = 3.0) -> bool:" in markdown
    assert tokens.estimate(markdown) <= pack["token_budget"]["used"]
    text = ctx("query", TASK, "--format=text")
    head = f"{len(pack['retrieved'])} chunks, {pack['token_budget']['used']:,} of 16,000 tokens."
    assert text.out.startswith(head)
    assert "\nsrc/net.py:" in text.out
    assert text.err.startswith("To see why: `ctx why ")


def test_a_budget(shop: Path, ctx: Ctx) -> None:
    small = ctx("query", TASK, "--budget=600").json
    assert small["token_budget"]["used"] <= small["token_budget"]["total"] == 600
    assert paths(small)[0] == "src/net.py"
    assert tokens.estimate(ctx("query", TASK, "--budget=600", "--format=markdown").out) <= 600
    reserved = ctx("query", TASK, "--budget=900", "--set=retrieval.reserved_for_response=300").json
    assert reserved["token_budget"]["used"] <= 600
    refused = ctx("query", TASK, "--budget=5")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error E010: ")
    assert len(ctx("query", TASK, "--limit=1").json["retrieved"]) == 1
    assert ctx("query", TASK, "--budget", "9" * 20).err == (
        "error E011: Argument --budget: 999999999999999… is too large.\n"
        "  `ctx query --help` shows examples.\n"
    )


def test_without_the_graph(shop: Path, ctx: Ctx) -> None:
    for words in (["--no-graph"], ["--depth=0"]):
        pack = ctx("query", TASK, *words).json
        assert not [chunk for chunk in pack["retrieved"] if chunk["via"]]
        assert pack["graph_context"]["expansion_depth"] == 0
    assert ctx("query", TASK, "--depth=11").err == (
        "error E011: Argument --depth: must be at most 10.\n  `ctx query --help` shows examples.\n"
    )
    assert ctx("query", TASK, "--depth=1", "--no-graph").code == 2


def test_into_a_file(shop: Path, ctx: Ctx, tmp_path: Path) -> None:
    file = tmp_path / "pack.json"
    ran = ctx("query", TASK, "--output", str(file))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith(f"Wrote {len(json.loads(file.read_text())['retrieved'])} chunks, ")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(json.loads(file.read_text())) == list(PromptPack._fields)
    there = ctx("-C", "src", "query", TASK, "--output", "../pack.md", "--format=markdown")
    assert there.err.startswith("Wrote ")
    assert (shop / "pack.md").read_text().startswith("# Context for")
    assert ctx("query", TASK, "--output", "-").json["task"] == TASK
    for path, told in ((str(tmp_path), "is a folder."), (os.devnull, "is not a plain file.")):
        refused = ctx("query", TASK, "--output", path)
        assert (refused.code, told in refused.err) == (1, True)
    missing = ctx("query", TASK, "--output", "no/such/folder.json")
    assert (missing.code, missing.err) == (
        1,
        (f"error E015: There is no folder {shop}/no/such.\n  Create it, or name another file.\n"),
    )


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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--budget=500"], "--budget"),
        (["--no-graph"], "--no-graph"),
        (["--depth=2"], "--depth"),
        (["--output=x"], "--output"),
        (["--explain"], "--explain"),
        (["--no-narrative"], "--no-narrative"),
        (["--include-narrative"], "--include-narrative"),
    ],
)
def test_what_is_about_packs_is_refused_for_nodes(
    folder: Path, ctx: Ctx, words: list[str], named: str
) -> None:
    ran = ctx("query", "type:fact", *words)
    assert (ran.code, ran.err) == (
        2,
        (
            f"error E011: {named} applies to packs, and filters alone list nodes.\n"
            "  Add words, or `--as pack`.\n"
        ),
    )


def test_what_led_there(shop: Path, ctx: Ctx) -> None:
    pack = ctx("query", TASK).json
    receipt = pack["receipt"]
    told = ctx("query", TASK, "--explain", "--format=text").out
    why = ctx("why", receipt)
    best = pack["retrieved"][0]
    sum_of = " + ".join(f"{each['name']} {each['value']:.2f}" for each in best["signals"])
    for text in (told, why.out):
        assert f"{best['tokens']:,} tokens, score {best['relevance_score']:.2f}: {sum_of}" in text
        assert "by way of " in text
    assert "\nFiles by rank\n" in told
    assert why.out.splitlines()[:4] == [
        (
            f"query for app, {ctx('why', receipt, '--format=json').json['at']}:"
            f" {len(pack['retrieved'])} chunks, {pack['token_budget']['used']:,} of 16,000 tokens"
        ),
        f"Session cli, receipt {receipt}",
        f"Task: {TASK}",
        f"Confidence {100 * pack['confidence']:.0f} %; the code: fresh",
    ]
    explained = ctx("why", receipt, "--format=json").json
    assert explained["event"] == "query"
    packed = explained["packed"]
    assert [(each["title"], each["kind"], each["tokens"]) for each in packed["chunks"]] == [
        (each["title"], each["chunk_kind"], each["tokens"]) for each in pack["retrieved"]
    ]
    assert [each["via"] for each in packed["chunks"]] == [each["via"] for each in pack["retrieved"]]
    assert [(each["title"], each["reason"]) for each in packed["left_out"]] == [
        (each["title"], each["reason"]) for each in pack["left_out"][:50]
    ]
    [given] = explained["items"]
    assert given["content"].startswith("Timeouts double at every retry")
    assert ctx("why").out.startswith("query for app, ")
    listed = ctx("why", "--list", "--limit=1").out
    assert f"  query  {len(pack['retrieved'])} chunks  " in listed


def test_a_receipt_says_what_has_changed_since(project: Path, ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "Deploys run on Fridays")
    receipt = ctx("query", "When do deploys run?").json["receipt"]
    assert "Not any more" not in ctx("why", receipt).out
    assert "Fact: Deploys run on Fridays" in ctx("why", receipt).out
    assert ctx("delete", node, "--yes").code == 0
    assert ctx("why", receipt).out.endswith(f"\nChanged since\n  fact:{node}    (deleted since)\n")
    # It is forgotten how it began, too.
    assert "\nFact: (deleted since)\n" in ctx("why", receipt).out


def test_no_secret_enters_a_receipt(folder: Path, ctx: Ctx, surroundings: Path) -> None:
    secret = "Tr0ub4dor-and-3-horses"
    pack = ctx("query", f"Why is password={secret} refused?").json
    assert "[redacted:password]" in ctx("why", pack["receipt"]).out
    with closing(sqlite3.connect(surroundings / ".ctx" / "store.db")) as connection:
        [(kept,)] = connection.execute("SELECT items FROM receipts")
    assert secret not in kept


def test_a_secret_of_many_lines_does_neither(folder: Path, ctx: Ctx, piped: Piped) -> None:
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


def test_filters_hold_for_what_is_named(project: Path, ctx: Ctx, add: Add) -> None:
    assert ctx("add", "task", "Ship the walrus").code == 0
    add("--type=fact", "A walrus is heavy")

    def titles(task: str) -> list[str]:
        return [chunk["title"] for chunk in ctx("query", task).json["retrieved"]]

    assert titles("task_0001 walrus")[0] == "Task: Ship the walrus"
    assert titles("type:fact task_0001 is a heavy walrus") == ["Fact: A walrus is heavy"]
    assert titles("type:task task_0001") == ["Task: Ship the walrus"]


def test_a_pack_repeats_nothing(project: Path, ctx: Ctx) -> None:
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


def test_outside_of_a_project_only_memory_is_searched(folder: Path, ctx: Ctx, add: Add) -> None:
    (folder / "deploys.py").write_text("def deploys_run():\n    pass\n")
    add("--type=fact", "Deploys run on Fridays")
    pack = ctx("query", "When do deploys run?").json
    assert [chunk["snippet"] for chunk in pack["retrieved"]] == ["Deploys run on Fridays"]
    assert (pack["files"], pack["code_index"]["state"]) == ([], "none")
    nothing = ctx("query", "Where are elephants?", "--format=text")
    assert (nothing.out, nothing.err) == (
        "Nothing found.\n",
        "Searched memory only: this folder is not a project. To make it one: `ctx init`\n",
    )


def test_what_to_do_where_nothing_was_found(shop: Path, ctx: Ctx) -> None:
    for task, told in (
        ("Where are elephants?", "Try other words, or names from the code."),
        (
            "connect fails with path:None",
            "`path:None` limits the search. To search for it as words, put it in quotes.",
        ),
    ):
        ran = ctx("query", task, "--format=text")
        assert (ran.out, ran.err) == ("Nothing found.\n", f"{told}\n")
    assert paths(ctx("query", 'connect fails with "path:None"').json)


def test_where_a_graph_lies_says_nothing_about_code(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To ask makes neither a folder nor a store.
    named = tmp_path / "no" / "such" / "store.db"
    ran = ctx("--db", str(named), "query", TASK)
    assert (ran.code, paths(ran.json)[0], ran.json["receipt"]) == (0, "src/net.py", None)
    assert ctx("--db", str(named), "list").out == "No nodes.\n"
    assert not (tmp_path / "no").exists()
    # Nor does an answer need a place for the user store.
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


def test_a_receipt_elsewhere(
    shop: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = ctx("query", TASK).json["receipt"]
    [given] = ctx("why", receipt, "--format=json").json["items"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    [there] = ctx("why", receipt, "--format=json").json["items"]
    assert (given["changed"], there["changed"], there["content"]) == (False, None, None)
    told = ctx("why", receipt).out
    assert told.endswith(f"\nUnknown here: {given['label']}\n")
    assert "deleted" not in told


def test_what_happened_lately_has_its_price(shop: Path, ctx: Ctx) -> None:
    assert ctx("add", "task", "Longer timeouts").code == 0
    assert ctx("commit", "-m", "A task for the timeouts").code == 0
    pack = ctx("query", TASK).json
    price = tokens.estimate(pack["recent_narrative"])
    assert price
    why = ctx("why", pack["receipt"], "--format=json").json
    chunks = sum(chunk["tokens"] for chunk in pack["retrieved"])
    assert why["packed"]["narrative"] == price
    assert why["frame"] == pack["token_budget"]["used"] - chunks - price
    line = f"\nRecent log: {price:,} tokens.\n"
    assert line in ctx("why", pack["receipt"]).out
    assert line in ctx("query", TASK, "--format=text").out


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


def trace() -> Iterator[str]:
    yield "Traceback (most recent call last):"
    while True:
        yield '  File "src/net.py", line 16, in connect\n    if self.send("hello", timeout)'


@pytest.mark.slow
def test_a_long_one_comes_from_stdin(shop: Path, ctx: Ctx, piped: Piped) -> None:
    lines = trace()
    text = "\n".join(next(lines) for _ in range(3_000)) + '\nTimeoutError: AND ( "\n'
    assert len(text) > 200_000
    piped(text.encode())
    pack = ctx("query", "-").json
    assert paths(pack)[0] == "src/net.py"
    assert pack["token_budget"]["used"] <= 16_000
    # It was pasted, and is not given back.
    assert len(pack["task"]) < 5_000


@pytest.mark.parametrize(
    "task",
    [
        "timeout",
        "the and of it",
        "タイムアウト 連接 超时",
        "тайм-аут соединения",
        '"unclosed (timeout* NEAR/2 ^x AND OR NOT',
        "a" * 5_000,
        "word " * 10_000,
        "\u0000\x1b[31m",
    ],
    ids=["one", "stop words", "CJK", "Russian", "operators", "long word", "many", "control"],
)
def test_any_words_have_an_answer(shop: Path, ctx: Ctx, task: str) -> None:
    ran = ctx("query", task)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["token_budget"]["used"] <= 16_000


def test_on_a_terminal_it_is_an_overview(folder: Path, add: Add) -> None:
    add("--type=fact", "Deploys run on Fridays")
    told = seen_by_a_terminal("query", "When do deploys run?", NO_COLOR="1")
    told = re.sub(r"\d{13}-\d+-\w{8}", "ID", told)
    assert re.sub(r"; by .*", "; by …", re.sub(r"\d[\d,]*\d|\d", "N", told)) == (
        "N chunk, N of N tokens.\n"
        "\n"
        "Fact: Deploys run on Fridays\n"
        "  N tokens; by …\n"
        "    Deploys run on Fridays\n"
        "To see why: `ctx why ID`\n"
        "A query with words is a pack, see `ctx pack`. For nodes: `ctx search`\n"
    )


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


@pytest.mark.parametrize("table", ["edges", "items", "commits", "history_paths", "files"])
@pytest.mark.parametrize("words", [("query", TASK), ("recall", "connection", "timeout")])
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


def test_a_pack_has_a_command_of_its_own(ctx: Ctx, shop: Path) -> None:
    queried, packed = ctx("query", TASK).json, ctx("pack", TASK).json
    for answer in (queried, packed):
        del answer["receipt"], answer["code_index"]["refreshed_at"]
    assert packed == queried
    assert packed["retrieved"]
    # Filters alone, too.
    assert "retrieved" in ctx("pack", "type:fact").json


def test_a_query_with_words_says_that_it_is_a_pack(ctx: Ctx, shop: Path) -> None:
    told = "A query with words is a pack, see `ctx pack`. For nodes: `ctx search`\n"
    assert ctx("query", TASK, "--format=text").err.endswith(told)
    assert told not in ctx("pack", TASK, "--format=text").err
    assert told not in ctx("query", "type:fact").err


def test_a_limit_gives_the_first_of_the_whole_pack(ctx: Ctx, shop: Path) -> None:
    every = [each["title"] for each in ctx("pack", TASK).json["retrieved"]]
    assert len(every) > 2
    for limit in range(1, len(every)):
        limited = ctx("pack", TASK, "-n", str(limit)).json["retrieved"]
        assert [each["title"] for each in limited] == every[:limit]
