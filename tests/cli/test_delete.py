"""`ctx delete`, `ctx restore` and `ctx forget`."""

import io
import sys

import pytest

from tests.cli.conftest import Add, ageless
from tests.conftest import Ctx


def ids(ctx: Ctx) -> set[str]:
    return {n["id"][:12] for n in ctx("list", "--limit=0", "--format=json").json["nodes"]}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_deleting_and_bringing_back(ctx: Ctx, add: Add) -> None:
    kept = add("--type=decision", "We use SQLite")
    gone = add("--type=fact", "--tag=a:b", "No servers")
    ctx("link", kept, gone, "--type=RELATES_TO")
    assert ctx("delete", gone).out == f"Deleted: {gone} fact: No servers\n"
    assert ids(ctx) == {kept}
    assert ctx("edges", kept).out == "No edges.\n"
    assert ctx("show", gone[:10]) == (
        1,
        "",
        f"error E020: The node {gone} was deleted.\n  `ctx restore {gone}` restores it.\n",
    )
    assert f"{gone}  fact  0 s  No servers" in ageless(ctx("list", "--deleted").out)
    assert ctx("restore", "01ZZZZ").err.startswith("error E020: No deleted node")
    assert ctx("restore", gone[:8]).code == 0
    shown = ctx("show", gone, "--with-edges", "--format=json").json
    assert shown["node"]["tags"] == ["a:b"]
    assert [edge["type"] for edge in shown["edges"]] == ["RELATES_TO"]


def test_cascade_takes_what_was_derived(ctx: Ctx, add: Add) -> None:
    source = add("--type=source", "A log")
    summary = ctx("summarize", source, "--content=Short", "--format=json").json["short_id"]
    longer = ctx("summarize", summary, "--content=Shorter", "--format=json").json["summary"]["id"][
        :12
    ]
    other = add("--type=fact", "Unrelated")
    dry = ctx("delete", source, "--cascade", "--dry-run")
    assert dry.out.startswith("Would delete 3 nodes:")
    assert ids(ctx) == {source, summary, longer, other}
    assert ctx("delete", source, "--cascade").out.startswith("Deleted 3 nodes:")
    assert ids(ctx) == {other}
    ctx("undo")
    assert ids(ctx) == {source, summary, longer, other}


def test_what_others_depend_on(ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    base, decision = add("--type=fact", "Premise"), add("--type=decision", "Conclusion")
    ctx("link", decision, base, "--type=DEPENDS_ON")
    warning = f"warning: 1 node depends on deleted nodes: {decision}.\n"
    # In a pipe it warns.
    for words in (("delete", base), ("forget", "premise", "-y")):
        ran = ctx(*words)
        assert (ran.code, ran.err) == (0, f"{warning}To restore it: `ctx undo`\n")
        assert ctx("undo").code == 0
    # On a terminal it asks.
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    refused = ctx("delete", base)
    assert refused.code == 1
    assert f"1 node depends on deleted nodes: {decision}. Continue? [y/N]" in refused.err
    assert base in ids(ctx)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert ctx("delete", base).code == 0
    assert ids(ctx) == {decision}


def test_forgetting_by_words_or_filters(
    ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = add("--type=fact", "--tag=tier:pinned", "--tag=task:spike", "The production server")
    one = add("--type=fact", "--tag=task:spike", "The staging server is called bert")
    assert ctx("forget", "staging server production", "-y").out == "Nothing to delete.\n"
    assert ctx("forget", "staging server").code == 1, "without a terminal only with --yes"
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    ran = ctx("forget", "staging server")
    assert ran.code == 0
    assert one in ran.err, "what will be deleted is shown before the question"
    assert "Delete 1 node? [y/N]" in ran.err
    assert ids(ctx) == {kept}
    ctx("undo")
    assert ids(ctx) == {kept, one}
    filters = "tag:task:spike AND NOT tag:tier:pinned"
    dry = ctx("forget", filters, "--dry-run", "--format=json").json
    assert [node["id"][:12] for node in dry["deleted"]] == [one]
    assert dry["dry_run"] is True
    for words in (filters, "server NOT tag:tier:pinned"):
        assert ctx("forget", words, "--yes").code == 0
        assert ids(ctx) == {kept}
