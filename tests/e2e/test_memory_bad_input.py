"""Bad input and unusual file systems give one clear error, and nothing is half-done."""

import io
import os
import shlex
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Ctx
from tests.e2e.forked_commands import Forker

NO_NODE = "01ZZZZZZZZZZZZZZZZZZZZZZZZ"
NOT_UTF8 = os.fsdecode(b"caf\xe9")


@pytest.fixture
def node(ctx: Ctx, folder: Path) -> str:
    ran = ctx("add", "--type=fact", "--tag=a:b", "The API speaks OAuth 2.0.", "--format", "json")
    node_id: str = ran.json["node"]["id"]
    return node_id


def everything(ctx: Ctx) -> str:
    ran = ctx("export")
    assert ran.code == 0, ran.err
    return "\n".join(line for line in ran.out.splitlines() if "exported" not in line)


# The error code, words of the error, and what was typed. `ID` is a node.
MISTAKES = [
    ("E011", "`fact`", "add --type=fcat x"),
    ("E011", "", "add --type= x"),
    ("E023", "Give some text.", 'add --type=fact ""'),
    ("E023", "There is no content.", "add --type=fact ' \n '"),
    ("E011", "namespace:value", "add --type=fact --tag= x"),
    ("E011", "namespace:value", "add --type=fact --tag=a\x1b[0m x"),
    ("E011", "namespace:value", f"add --type=fact --tag={'x' * 201} x"),
    ("E020", "No node has an id", f"add --type=fact --supersedes {NO_NODE} x"),
    ("E011", "", "update ID"),
    ("E011", "There are: fact", "update ID --type=nonsense"),
    ("E023", "There is no content.", "update ID --content="),
    ("E020", "No node has an id", f"update {NO_NODE} --content=x"),
    ("E011", "itself", "link ID ID"),
    ("E020", "No node has an id", f"link ID {NO_NODE}"),
    ("E011", "DEPENDS_ON", "link ID ID --type=DEPEND_ON"),
    ("E011", "'huge' is not one of", "link ID ID --confidence=huge"),
    ("E011", "", "tag ID"),
    ("E011", "'two words' cannot be a tag.", "tag ID 'two words'"),
    ("E020", "4 characters", "show 01"),
    ("E020", "", "show ../../etc/passwd"),
    ("E020", "'' is not the id", 'show ""'),
    ("E020", "No node has an id", f"delete {NO_NODE} --yes"),
    ("E011", "is not deleted", "restore ID"),
    ("E020", "ctx undo --list", f"undo {NO_NODE}"),
    ("E022", "", "query type:nonsense"),
    ("E022", "", "query 'type:fact AND'"),
    ("E022", "", f"query {'((((' * 500}"),
    ("E022", "", "view create x --query=type:nonsense"),
    ("E025", "ctx view list", "view render missing"),
    ("E011", "No current task.", "task end"),
    ("E011", "", "list --limit=-1"),
    ("E011", "7d", "list --since=whenever"),
    ("E011", "There is no node type", "list --type=nonsense"),
    ("E015", "", "import missing.json"),
    ("E011", "mysql://: unknown kind of store", "--db mysql://h/d list"),
    ("E011", "--db needs a file.", '--db "" list'),
]
NOT_TEXT = [
    ["add", "--type=fact", NOT_UTF8],
    ["add", "--type=fact", f"--tag={NOT_UTF8}", "x"],
    ["add", "--type=fact", f"--meta={NOT_UTF8}=1", "x"],
    ["add", "--type=fact", f"--meta=a={NOT_UTF8}", "x"],
    ["add", "--type=fact", f"--summary={NOT_UTF8}", "x"],
    ["add", f"--type={NOT_UTF8}", "x"],
    ["update", "ID", f"--content={NOT_UTF8}"],
    ["link", "ID", "ID", f"--reason={NOT_UTF8}"],
    ["tag", "ID", NOT_UTF8],
    ["show", NOT_UTF8],
    ["search", NOT_UTF8],
    ["query", f"tag:{NOT_UTF8}"],
    ["list", f"--tag={NOT_UTF8}"],
    ["view", "create", NOT_UTF8, "--query=type:fact"],
    ["task", "start", NOT_UTF8],
    ["import", NOT_UTF8],
    ["store", "restore", NOT_UTF8],
    ["add", "--type=fact", "--session", NOT_UTF8, "x"],
    [NOT_UTF8],
    ["config", "get", NOT_UTF8],
    ["--set", f"gc.keep_days={NOT_UTF8}", "list"],
]


def test_a_mistake_is_reported_and_changes_nothing(ctx: Ctx, node: str) -> None:
    before = everything(ctx)
    for code, message, line in MISTAKES:
        ran = ctx(*shlex.split(line.replace("ID", node)))
        assert (ran.code, ran.out) == (2 if code in ("E011", "E022", "E023") else 1, ""), line
        assert ran.err.startswith(f"error {code}: "), ran.err
        assert message in ran.err, line
        assert everything(ctx) == before, line


def test_arguments_that_are_not_utf8_change_nothing(ctx: Ctx, node: str) -> None:
    before = everything(ctx)
    for words in NOT_TEXT:
        ran = ctx(*[node if word == "ID" else word for word in words])
        # What only looks finds nothing; what writes refuses.
        assert ran.code in (1, 2) or words[0] in ("search", "list", "query"), words
        assert ran.code == 0 or ran.err.startswith("error E0"), ran.err
        assert "Unexpected" not in ran.err
        ran.out.encode()
        ran.err.encode()
    assert everything(ctx) == before


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"ab\xed\xa0\x80", b"", b"\xef\xbb\xbf"])
def test_stdin_that_is_not_text_is_refused(
    ctx: Ctx, node: str, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    before = everything(ctx)
    for words in (["add", "--type=fact"], ["update", node], ["summarize", node], ["import"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        ran = ctx(*words, *(["--stdin"] if words != ["import"] else []))
        assert ran.code in (1, 2), ran
        assert ran.err.startswith("error E0")
        assert "Unexpected" not in ran.err
    assert everything(ctx) == before


def test_unreadable_files_are_named_in_the_error(ctx: Ctx, node: str, folder: Path) -> None:
    before = everything(ctx)
    (folder / "nul").write_bytes(b"a\0b")
    (folder / "latin").write_bytes(b"caf\xe9")
    (folder / "empty").write_bytes(b"")
    (folder / "inside").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("nul", "latin", "empty", "inside", "pipe", "missing", NOT_UTF8):
        ran = ctx("ingest", name)
        assert (ran.code, ran.out.partition("\n")[0]) == (1, "Refused 1 file:"), name
        assert "Unexpected" not in ran.err
    assert everything(ctx) == before


def test_a_missing_folder_is_created(ctx: Ctx, folder: Path) -> None:
    assert ctx("add", "--type=fact", "x", "--db", "a/b/c.db").code == 0
    assert [path.name for path in (folder / "a" / "b").iterdir()] == ["c.db"]
    assert (folder / "a").stat().st_mode & 0o777 == 0o700
    assert (folder / "a" / "b" / "c.db").stat().st_mode & 0o777 == 0o600


def test_a_relative_path_in_the_environment_is_relative_to_the_folder(
    ctx: Ctx, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_DB", "here.db")
    assert ctx("add", "--type=fact", "x").code == 0
    assert (folder / "here.db").exists()
    (folder / "below").mkdir()
    assert ctx("store", "path", "-C", "below").out == f"{folder}/below/here.db\n"
    monkeypatch.setenv("CTX_DB", "~/there.db")
    assert ctx("store", "path").out == f"{os.environ['HOME']}/there.db\n"


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_another_programs_file_is_refused_and_not_touched(
    ctx: Ctx, folder: Path, journal: str
) -> None:
    with sqlite3.connect(folder / "theirs.db") as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.execute("INSERT INTO bookmarks VALUES ('https://example.org')")
    connection.close()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words in (["list"], ["add", "--type=fact", "x"], ["search", "x"], ["store", "recover"]):
        ran = ctx("--db", "theirs.db", *words)
        assert ran.code == 1
        assert ran.err.startswith(
            f"error E018: {folder}/theirs.db is a database of another program; it was not touched."
        ), words
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.fixture
def space() -> Iterator[Path]:
    """A folder that another user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def closed_store(ctx: Ctx, path: Path) -> None:
    for content in ("One.", "Two."):
        assert ctx("add", "--type=fact", content, "--db", str(path)).code == 0


@pytest.mark.parametrize("folder_mode", [0o555, 0o777], ids=["read-only folder", "open folder"])
def test_a_read_only_store_can_be_read(
    ctx: Ctx, folder: Path, space: Path, forked: Forker, folder_mode: int
) -> None:
    place = space / "store"
    path = place / "store.db"
    closed_store(ctx, path)
    path.chmod(0o444)
    place.chmod(folder_mode)
    for words in (["list"], ["search", "one"], ["query", "type:fact"], ["store", "check"]):
        ran = forked.run(["--db", str(path), *words], as_nobody=True)
        assert (ran.code, ran.err) == (0, ""), words
    for words in (
        ["add", "--type=fact", "Three."],
        ["view", "create", "v", "--query=type:fact"],
        ["store", "rebuild"],
        ["undo"],
    ):
        ran = forked.run(["--db", str(path), *words], as_nobody=True)
        assert (ran.code, ran.out) == (1, ""), words
        assert ran.err.startswith(f"error E014: {path} cannot be used: "), (words, ran.err)
        assert ran.err.count("\n") == 2, "a sentence and the next step"
    place.chmod(0o755)
    assert ctx("store", "check", "--db", str(path)).code == 0


def test_a_read_only_home_can_be_read(ctx: Ctx, folder: Path, space: Path, forked: Forker) -> None:
    space.chmod(0o555)
    database = ["--db", str(space / "home" / ".ctx" / "store.db")]
    # Whoever only looks finds nothing, and nothing has to be made for that.
    looked = forked.run(["list"], as_nobody=True)
    assert (looked.code, looked.out) == (0, "No nodes.\n")
    ran = forked.run(["add", "--type=fact", "x", *database], as_nobody=True)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error E014: Not permitted while opening a database")
    assert "Check who owns the folder and its permissions." in ran.err
    space.chmod(0o755)


def test_a_file_in_place_of_the_home_is_an_error(
    ctx: Ctx, folder: Path, surroundings: Path
) -> None:
    (surroundings / ".ctx").write_text("mine")
    for words in (["list"], ["add", "--type=fact", "x"]):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("error E014: "), ran.err
    assert (surroundings / ".ctx").read_text() == "mine"
