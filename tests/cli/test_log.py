import re
from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx, git

DAY = "2001-09-09"


def test_commits_and_what_each_changed(project: Path, ctx: Ctx, add: Add) -> None:
    (project / "a.txt").write_text("a\n")
    first = add("--type=fact", "--tag=tier:reference", "Deploys run on Mondays")
    ctx("add", "file", "a.txt")
    made = ctx("commit", "-m", "One\n\nWith a body", "--format", "json").json
    ctx("update", first, "--content", "Deploys run on Fridays")
    second = add("--type=decision", "We use SQLite\n\nNo servers to run.")
    add("--type=fact", "--user", "Mine alone, of no commit")
    short = made["commit"][:12]
    lines = ctx("log").out.splitlines()
    assert lines[0] == "staged in session cli"
    assert lines[3:6] == [
        f"    ~ fact {first}: content: Deploys run on Fridays",
        f"    + decision {second}: We use SQLite",
        "",
    ]
    assert lines[6:8] == [
        f"commit {short} (head)",
        "author:  A Person <person@example.org>",
    ]
    assert lines[9:18] == [
        *("session: cli", "", "    One", "", "    With a body", ""),
        f"    + fact {first}: Deploys run on Mondays (tier:reference)",
        *("    = a.txt", ""),
    ]
    assert lines[-2] == "    Initial commit"
    answer = ctx("log", "--limit", "1", "--format", "json").json
    [staged], [commit] = answer["staged"], answer["commits"]
    assert (staged["session"], staged["steps"], len(staged["changes"])) == ("cli", 2, 2)
    assert f"\ndate:    {commit.pop('time')}\n" in ctx("log").out
    assert commit.pop("parents") == made["parents"]
    assert commit == {
        "commit": made["commit"],
        "is_head": True,
        "author": "A Person <person@example.org>",
        "session": "cli",
        "message": "One\n\nWith a body",
        "changes": [f"+ fact {first}: Deploys run on Mondays (tier:reference)"],
        "files": ["a.txt"],
        "documents": [made["log"]],
    }
    assert answer["more"] == 1
    ctx("commit", "--auto")
    lines = ctx("log", "--oneline", "-n2").out.splitlines()
    assert lines[0].endswith(" Decide: We use SQLite (head)")
    assert lines[1:] == [f"{short} {lines[0].split()[1]} One", "… and 1 older commit (--limit)"]


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
