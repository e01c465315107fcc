import re
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx, git

DAY = "2001-09-09"


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return repo


def timeless(text: str) -> str:
    """Commits, nodes and times by what they are."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\d", "DAY", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", re.sub(r"\b0[0-9A-Z]{11}\b", "NODE", text))


def test_commits_and_what_each_changed(project: Path, ctx: Ctx, add: Add) -> None:
    (project / "a.txt").write_text("a\n")
    first = add("--type=fact", "--tag=tier:reference", "Deploys run on Mondays")
    ctx("add", "file", "a.txt")
    ctx("commit", "-m", "One\n\nWith a body")
    ctx("update", first, "--content", "Deploys run on Fridays")
    add("--type=decision", "We use SQLite\n\nNo servers to run.")
    assert (
        timeless(ctx("log").out)
        == """\
staged in session cli
date:    TIME

    ~ fact NODE: content: Deploys run on Fridays
    + decision NODE: We use SQLite

commit COMMIT (head)
author:  A Person <person@example.org>
date:    TIME
session: cli

    One

    With a body

    + fact NODE: Deploys run on Mondays (tier:reference)
    = a.txt

commit COMMIT
author:  A Person <person@example.org>
date:    TIME
session: cli

    Initial commit

"""
    )
    ctx("commit", "--auto")
    assert (
        timeless(ctx("log", "--oneline", "--limit", "2").out)
        == """\
COMMIT DAY Decide: We use SQLite (head)
COMMIT DAY One
… and 1 older commit (--limit)
"""
    )


def test_as_json_with_everything(project: Path, ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "Deploys run on Mondays")
    made = ctx("commit", "-m", "One", "--format", "json").json
    add("--type=fact", "--user", "Mine alone, of no commit")
    add("--type=fact", "Staged by another", "--session", "other")
    answer = ctx("log", "--limit", "1", "--format", "json").json
    [staged], [commit] = answer["staged"], answer["commits"]
    assert (staged["session"], staged["steps"], len(staged["changes"])) == ("other", 1, 1)
    assert commit == {
        "commit": made["commit"],
        "parents": made["parents"],
        "is_head": True,
        "time": commit["time"],
        "author": "A Person <person@example.org>",
        "session": "cli",
        "message": "One",
        "changes": [f"+ fact {node}: Deploys run on Mondays"],
        "files": [],
        "documents": [made["log"]],
    }
    assert answer["more"] == 1


def test_a_merge_joins_its_heads(project: Path, ctx: Ctx, add: Add) -> None:
    git("add", "-A")
    git("commit", "-qm", "init")
    git("switch", "-qc", "side")
    add("--type=fact", "Of the side")
    ctx("commit", "-m", "Side")
    git("add", "-A")
    git("commit", "-qm", "side")
    git("switch", "-q", "main")
    add("--type=fact", "Of the main line")
    ctx("commit", "-m", "Main")
    git("add", "-A")
    git("commit", "-qm", "main")
    git("merge", "-q", "--no-edit", "side")
    lines = ctx("log", "--oneline").out.splitlines()
    assert sorted(line.partition(" ")[2][11:] for line in lines[:2]) == [
        "Main (head)",
        "Side (head)",
    ]
    ctx("commit", "-m", "Both")
    assert re.search(r"^joins:   [0-9a-f]{12} [0-9a-f]{12}$", ctx("log").out, re.MULTILINE)


def test_a_day_is_its_log_files(project: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Deploys run on Mondays")
    made = ctx("commit", "-m", "One", "--format", "json").json
    day = made["log"].removeprefix("log/")[:10]
    found = ctx("log", "--day", day, "--format", "json").json
    assert found["day"] == day
    assert "Deploys run on Mondays" in found["text"]
    assert ctx("log", "--day", day).out == found["text"]
    refused = ctx("log", "--day", DAY)
    assert (refused.code, refused.err) == (
        2,
        f"error E011: There is no log of {DAY}.\n  The last day with an entry is {day}.\n",
    )
    assert ctx("log", "--day", "yesterday").code == 2


def test_without_a_project_there_is_no_log(folder: Path, ctx: Ctx) -> None:
    ran = ctx("log")
    assert (ran.code, ran.err.partition(":")[0]) == (1, "error E012")


def test_a_commit_lists_the_net_result(project: Path, ctx: Ctx, add: Add) -> None:
    kept = add("--type=fact", "--tag=x:kept", "--tag=x:old", "Deploys run on Mondays")
    other = add("--type=fact", "Releases need a tag")
    ctx("view", "create", "old", "--query=type:fact")
    ctx("view", "create", "gone", "--query=type:fact")
    ctx("link", kept, other, "--type=DEPENDS_ON")
    ctx("commit", "-m", "One")
    new = add("--type=fact", "--tag=x:a", "The cache is cold")
    ctx("untag", new, "x:a")
    ctx("tag", new, "x:b")
    ctx("update", kept, "--content", "Other words", "--meta", "why=a freeze")
    ctx("update", kept, "--content", "Deploys run on Mondays", "--meta", "why=a holiday")
    for command, tag in [("tag", "x:a"), ("untag", "x:a"), ("untag", "x:kept"), ("tag", "x:kept")]:
        ctx(command, kept, tag)
    ctx("untag", kept, "x:old")
    ctx("unlink", kept, other, "--type=DEPENDS_ON")
    ctx("link", kept, other, "--type=DEPENDS_ON")
    ctx("link", new, kept, "--type=DEPENDS_ON")
    ctx("unlink", new, kept, "--type=DEPENDS_ON")
    ctx("delete", other)
    ctx("restore", other)
    ctx("link", kept, add("--type=fact", "Deleted again"), "--type=DEPENDS_ON")
    ctx("undo")
    ctx("undo")
    ctx("view", "create", "brief", "--query=type:fact")
    ctx("view", "delete", "brief")
    ctx("view", "update", "old", "--query=type:task")
    ctx("view", "delete", "gone")
    changes = [
        f"+ fact {new}: The cache is cold (x:b)",
        f"~ fact {kept}: why = a holiday: Deploys run on Mondays",
        f"# fact {kept}: -x:old",
        "~ view old: type:task",
        "- view gone",
    ]
    assert ctx("log", "--json").json["staged"][0]["changes"] == changes
    made = ctx("commit", "-m", "Two", "--json").json
    assert made["changes"] == changes
    assert ctx("log", "--json").json["commits"][0]["changes"] == changes
    page = (project / ".ctx" / "narrative" / made["log"]).read_text()
    assert "The cache is cold (x:b)" in page
    assert "brief" not in page
