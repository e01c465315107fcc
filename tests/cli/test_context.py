"""`ctx context`"""

from pathlib import Path

import pytest

from ctx.context import hook_queries, layers
from ctx.exchange.foreign import claude_mem
from tests.capture.conversations import Client, context_of
from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.exchange.foreign import databases
from tests.packs.session_store import session, step


@pytest.fixture
def client(repo: Path, surroundings: Path, add: Add) -> Client:
    add("--type=fact", "--tag=tier:pinned", "Deploys run on Fridays")
    client = Client(surroundings / ".ctx", repo)
    with client.memory() as memory:
        session(memory.user, "s1", 1, completed="Refresh takes a lock")
        for number in range(12):
            session(memory.user, f"old{number}", number + 2, completed=f"Step {number} " * 9)
    return client


def test_the_same_context_as_a_session(client: Client, ctx: Ctx) -> None:
    shown = ctx("context")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == context_of(client.talk().start())
    told = ctx("context", "--format=json").json
    assert told["text"] == shown.out
    assert (told["project"], told["source"], told["parts"]) == ("app", "startup", 1)
    assert not told["is_ready"]
    client.apply()
    again = ctx("context", "--format=json").json
    assert (again["is_ready"], again["text"]) == (True, shown.out)
    assert again["layers"] == told["layers"]


def test_how_it_comes_about(client: Client, ctx: Ctx) -> None:
    client.talk().start()
    client.apply()
    told = ctx("context", "--format=json").json
    sizes = {each["name"]: each["tokens"] for each in told["layers"]}
    frame = told["tokens"] - sum(sizes.values())
    rows = [line.split("  ") for line in ctx("context", "--explain").out.splitlines()]
    shown = next(each for each in told["layers"] if each["name"] == "sessions")
    assert 0 < shown["shown"] < 10
    budget = "The budget is 2,000, without pinned nodes."
    assert rows[0] == [f"startup for app: {told['tokens']} tokens, ready. {budget}"]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows[1 : len(sizes) + 2]]
    assert [row[0] for row in cells] == [*sizes, "frame"]
    explained = ctx("context", "--explain").out
    assert all(each["reason"] in explained for each in told["items"])
    by_name = {row[0]: row[1:] for row in cells}
    assert by_name["memory"] == [str(sizes["memory"]), "1", "nodes of the view `default`"]
    assert by_name["sessions"] == [
        *(str(sizes["sessions"]), str(shown["shown"]), str(shown["left_out"])),
        "sessions and their summaries",
    ]
    assert by_name["rules"][-1] == (
        "observations tagged `kind:rule`, `kind:correction` or `kind:decision`"
    )
    assert by_name["frame"] == [str(frame), "headings and instructions"]
    # It does not depend on the flags of whoever prepares it.
    expected = ctx("context").out
    assert ctx("hook", "apply", "--set=context.budget=100").code == 0
    again = ctx("context", "--format=json").json
    assert (again["is_ready"], again["text"]) == (True, expected)
    assert context_of(client.talk("second").start()) == expected


def test_settings_and_other_places(client: Client, ctx: Ctx, tmp_path: Path) -> None:
    client.talk().start()
    client.apply()
    for words in (["--budget=100"], ["--set", "context.budget=100"]):
        small = ctx("context", *words, "--format=json").json
        assert small["budget"] == 100
        assert small["tokens"] <= 100
        assert not small["is_ready"]
    prompt = ctx("context", "--prompt=refresh", "--set=context.prompt_budget=77", "--format=json")
    assert prompt.json["budget"] == 77
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    told = ctx("context", "--project-path", str(elsewhere), "--format=json").json
    assert told["project"] is None
    assert "Refresh takes a lock" not in told["text"]
    large = ctx("context", "--budget=6000", "--format=json").json
    assert large["text"].count("<!-- ctx:end -->") == large["parts"]


def test_a_session_that_goes_on(client: Client, ctx: Ctx) -> None:
    conversation = client.talk("5dd65eaa-e3b1")
    conversation.start()
    with client.memory() as memory:
        step(memory.user, "5dd65eaa-e3b1", "write", path="src/auth.py")
        session(memory.user, "5dd65eaa-e3b1", 0, completed="My own work")
    # It is named by its beginning too.
    compacted = ctx("context", "--source=compact", "--session=5dd65eaa-e3b1").out
    assert ctx("context", "--source=compact", "--session=5dd6").out == compacted
    assert "## Where you were\n\n- In work: src/auth.py\n" in compacted
    assert "My own work" not in compacted
    assert ctx("context", "--source=resume", "--session=5dd6").out == (
        "Nothing new since this session last got a context.\n"
    )
    with client.memory() as memory:
        session(memory.user, "theirs", 0, completed="What they did")
    resumed = ctx("context", "--source=resume", "--session=5dd6").out
    assert layers.CHANGED in resumed
    assert "What they did" in resumed
    for words, code, said in (
        (["--source=compact", "--session=bogus"], 1, "No session begins with 'bogus'"),
        (["--source=resume"], 2, "--source=resume needs --session"),
        (["--session=s1"], 2, "--session needs --source"),
        (["--budget=10"], 2, "--budget must be a whole number from 100 to 10000000, not 10."),
        (["--project-path=/nowhere/at/all"], 2, "/nowhere/at/all is not a folder"),
    ):
        ran = ctx("context", *words)
        assert (ran.code, said in ran.err) == (code, True), words


@pytest.fixture
def imported(repo: Path, ctx: Ctx, tmp_path: Path) -> Path:
    """A project whose sessions another program captured."""
    path = databases.make(tmp_path / "mem.db", databases.CLAUDE_MEM_SCHEMA)
    for number, title in enumerate(("The queue drops jobs", "Jobs have ids", "Locks are files"), 1):
        databases.observation(path, "theirs", number, project="app", title=title)
    for number, done in ((4, "Looked at the queue"), (5, "Jobs are put back first")):
        databases.summary(path, "theirs", number, project="app", completed=done)
    databases.summary(path, "other", 6, project="elsewhere", completed="Not about this")
    assert ctx("import", "--from=claude-mem", str(path)).code == 0
    return repo


def test_imported_sessions_reach_agents(imported: Path, ctx: Ctx) -> None:
    assert hook_queries.IMPORTED == claude_mem.SOURCE
    text = ctx("context").out
    # Only the last summary of a session is shown.
    assert text.count("Jobs are put back first") == 1
    assert "Looked at the queue" not in text
    assert "Not about this" not in text
    assert "Locks are files" not in text
    assert "] Locks are files\n" in ctx("context", "--prompt=Which files are locks?").out


def test_a_session_that_was_captured_and_imported_appears_once(
    imported: Path, surroundings: Path, ctx: Ctx
) -> None:
    client = Client(surroundings / ".ctx", imported)
    with client.memory() as memory:
        session(memory.user, "theirs", 1, completed="Jobs stay in the queue")
    text = ctx("context").out
    assert text.count("Jobs stay in the queue") == 1
    assert "Jobs are put back first" not in text
    assert "Locks are files" not in ctx("context", "--prompt=Which files are locks?").out
    assert "Locks are files" in ctx("recall", "locks files").out


def test_what_sessions_left_in_the_store_of_the_project(client: Client, ctx: Ctx) -> None:
    """Where they are shared, others read them there; nobody's table of sessions knows them."""
    assert ctx("init").code == 0
    with client.memory() as memory, memory.transaction("add") as made:
        told = made.add_node("summary", "Text", metadata={"completed": ["Theirs", "and more"]})
        noted = made.add_node("observation", "They use uv\n\nIt is faster.")
        known = made.add_node("pattern", "Theirs to know")
        for node_id, tag in (
            (told, "session:far"),
            (noted, "session:far"),
            (noted, "kind:decision"),
        ):
            made.tag(node_id, tag)
        made.tag(known, "learning:convention")
    shown = ctx("context").out
    assert "## Recent Sessions\n- [today] Theirs; and more\n- [yesterday] Refresh takes" in shown
    assert "Theirs to know\n" in shown
    assert "They use uv It is faster." in ctx("context", "--prompt=do they use uv?").out
    assert context_of(client.talk().start()) == shown


def test_each_item_says_why_it_is_there(client: Client, ctx: Ctx, add: Add) -> None:
    add("--type=decision", "--tag=tier:reference", "We use SQLite")
    client.talk().start()
    client.apply()
    told = ctx("context", "--format=json").json
    items = {each["text"].partition("\n")[0]: each for each in told["items"]}
    pinned = next(each for text, each in items.items() if "Deploys run on Fridays" in text)
    assert (pinned["layer"], pinned["reason"], pinned["source"]) == ("memory", "pinned", "user")
    assert (pinned["age_days"], pinned["tokens"] > 0) == (0, True)
    stated = next(each for text, each in items.items() if "We use SQLite" in text)
    assert stated["reason"] == "`tier:reference`, in the view `default`"
    listed = [each for each in told["items"] if each["layer"] == "sessions"]
    assert {each["reason"] for each in listed} == {"one of the latest sessions"}
    # The texts of the items are the text of the context, in the same order.
    at = 0
    for each in told["items"]:
        at = told["text"].index(each["text"], at)
    by_layer = {each["name"]: each["tokens"] for each in told["layers"]}
    for name, tokens in by_layer.items():
        parts = [each["tokens"] for each in told["items"] if each["layer"] == name]
        assert sum(parts) <= tokens
    assert {each["layer"] for each in told["omitted"]} == {"sessions"}
    assert told["omitted"][0]["reason"] == "no room in the layer sessions"


def test_what_has_no_room_is_named(ctx: Ctx, repo: Path, add: Add) -> None:
    for number in range(12):
        add("--type=fact", "--tag=tier:reference", f"Fact {number}: {'word ' * 80}")
    told = ctx("context", "--budget=500", "--format=json").json
    memory = next(each for each in told["layers"] if each["name"] == "memory")
    omitted = [each for each in told["omitted"] if each["layer"] == "memory"]
    shown = {each["id"] for each in told["items"]}
    assert memory["left_out"] == len(omitted) == 12 - memory["shown"]
    assert not shown & {each["id"] for each in omitted}
    assert all("no room" in each["reason"] and each["tokens"] > 80 for each in omitted)


def test_items_of_a_prompt_name_the_words_they_share(client: Client, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "The frobnicator needs a warm cache before it starts")
    told = ctx("context", "--prompt=why is the frobnicator cache cold?", "--format=json").json
    [item] = told["items"]
    assert item["layer"] == "said"
    assert item["reason"] == "shares `frobnicator`, `cache` with the prompt"
    assert (item["source"], item["age_days"]) == ("user", 0)
    assert item["text"] in told["text"]
