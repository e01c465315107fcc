"""`ctx add note`: a node, and in a project a file of its log."""

from pathlib import Path

from tests.cli.conftest import Piped
from tests.conftest import Ctx, git


def test_a_note_of_a_project_is_a_node_and_a_file(ctx: Ctx, project: Path) -> None:
    words = ["--tag=area:net", "--no-tier", "--format=json"]
    added = ctx("add", "note", "The proxy", "timed out", *words).json
    node = added["node"]
    assert (node["type"], node["content"]) == ("observation", "The proxy timed out")
    assert (node["tags"], node["scope"], node["staged"]) == (["area:net", "note"], "project", "cli")
    assert added["number"] is None
    path = added["path"].removeprefix(".ctx/narrative/")
    assert node["metadata"] == {"file": path}
    [file] = (project / ".ctx/narrative/log").iterdir()
    assert f"log/{file.name}" == path
    written = f"{node['created_at']}"
    assert file.read_text() == (
        "# The proxy timed out\n\n<!-- metadata:\n"
        f"created: {written}\nupdated: {written}\nauthor: cli\nsession: cli\ntags: [area:net]\n"
        "-->\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert git("status", "--short", "--", ".ctx/narrative/log") == "?? .ctx/narrative/log/\n"
    mine = ctx("add", "note", "Mine", "--user", "--no-tier", "--format=json").json
    assert (mine["node"]["scope"], mine["node"]["tags"]) == ("user", ["note"])
    assert mine["path"] is None


def test_outside_of_a_project_it_is_a_node_alone(ctx: Ctx, repo: Path) -> None:
    ran = ctx("add", "note", "Tests are slow")
    assert ran.out.endswith(" (tier:reference, project:app)\n")
    assert ran.err == (
        "Added to your own store. `ctx init` creates a project store, with files.\n"
        "Agents are shown this from their next session on. To prevent it: --no-tier\n"
    )
    shown = ctx("show", ran.out.split()[1], "--format=json").json["node"]
    assert shown["tags"] == ["note", "project:app", "tier:reference"]
    assert shown["metadata"] == {}
    decision = ctx("add", "decision", "Run them at night", "--format=json").json["node"]
    assert decision["tags"] == ["project:app", "tier:reference"]
    assert list(repo.iterdir()) == [repo / ".git"]
    # There is nothing to commit to.
    ran = ctx("add", "note", "x", "--commit")
    assert (ran.code, ran.err[:11]) == (1, "error E012:")
    ctx("init")
    assert ctx("add", "note", "x", "--commit", "--user").code == 2
    assert ctx("list", "--format=json").json["total"] == 2


def test_with_a_body(ctx: Ctx, project: Path, piped: Piped) -> None:
    for data, words, content in (
        (b"p99 is 45 ms\n", ["Load test", "--body", "-"], "Load test\n\np99 is 45 ms"),
        (b"All of it\nfrom there\n", ["-"], "All of it\nfrom there"),
        (b"", ["--body", "First line\nand more"], "First line\n\nand more"),
    ):
        piped(data)
        assert ctx("add", "note", *words, "--format=json").json["node"]["content"] == content
    missing = 'error E011: The text is missing.\n  `ctx add note "…"`, or --stdin\n'
    assert ctx("add", "note").err == missing
    assert ctx("add", "note", "  ").err.startswith("error E023: ")
    ran = ctx("add", "note", "x", "--body", "y" * 1_000_000)
    assert ran.err.startswith("error E023: The document would have 1,000,")
    assert len(list((project / ".ctx/narrative/log").iterdir())) == 3


def test_while_a_task_is_the_current_one_it_is_a_working_node(ctx: Ctx, project: Path) -> None:
    ctx("task", "start", "Retry")
    assert (
        ctx("add", "note", "Half done").out.splitlines()[0].endswith(" (tier:working, task:retry)")
    )
    for word, tags in (
        ("--tag=tier:reference", ["note", "tier:reference"]),
        ("--no-tier", ["note", "task:retry"]),
    ):
        ran = ctx("add", "note", "Kept for good", word, "--format=json").json
        assert ran["node"]["tags"] == tags


def test_streams(ctx: Ctx, project: Path) -> None:
    one = ctx("add", "note", "a", "--stream=retry", "--format=json").json["path"]
    two = ctx("add", "note", "b", "--stream=work", "--session=s-1", "--format=json").json["path"]
    assert one.startswith(".ctx/narrative/feature/retry/log/")
    assert two.startswith(".ctx/narrative/work/s-1/log/")
    for name in ("../..", "a/b", ""):
        ran = ctx("add", "note", "c", f"--stream={name}")
        assert (ran.code, ran.err[:11]) == (2, "error E011:")


def test_it_can_be_committed_at_once(ctx: Ctx, project: Path) -> None:
    ran = ctx("add", "note", "Ready", "-m", "Retry with jitter", "--format=json").json
    assert ran["commit"]["message"] == "Retry with jitter"
    assert ran["added"]["path"].removeprefix(".ctx/narrative/") in ran["commit"]["documents"]
    assert ctx("show", ran["added"]["node"]["id"], "--format=json").json["node"]["staged"] is None
    ran = ctx("add", "note", "Said by itself", "--commit", "--format=json").json
    assert ran["commit"]["message"] == "Said by itself"
