"""`ctx summarize`"""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx


def shown(ctx: Ctx, node_id: str) -> Any:
    return ctx("show", node_id, "--with-edges", "--format=json").json


def test_a_summary_and_its_sources(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=observation", "--tag=tier:working", "--tag=task:x", "--tag=a:b", "One")
    two = add("--type=fact", "--tag=tier:reference", "--tag=task:x", "Two")
    made = ctx("summarize", one, two, one, "--content=Both in short")
    summary = made.out.split()[-1]
    assert made.out == f"Created summary: {summary}\n"
    answer = shown(ctx, summary)
    assert answer["node"]["type"] == "summary"
    assert answer["node"]["content"] == "Both in short"
    assert answer["node"]["tags"] == ["task:x", "tier:working"]
    assert [edge["type"] for edge in answer["edges"]] == ["DERIVED_FROM"] * 2
    assert {edge["to_id"][:12] for edge in answer["edges"]} == {one, two}
    assert shown(ctx, one)["node"]["tags"] == ["a:b", "task:x", "tier:working"]


def test_archiving_the_sources(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=observation", "--tag=tier:working", "One")
    two = add("--type=fact", "--tag=tier:reference", "--tag=tier:pinned", "Two")
    three = add("--type=fact", "Three")
    made = ctx("summarize", one, two, three, "--content=All", "--archive-sources")
    summary = made.out.split()[2]
    assert made.out == (
        f"Created summary: {summary}\nArchived: {one}\nArchived: {three}\n"
        f"Kept, because pinned: {two}\n"
    )
    assert shown(ctx, one)["node"]["tags"] == ["tier:off-context"]
    assert shown(ctx, two)["node"]["tags"] == ["tier:pinned", "tier:reference"]
    assert shown(ctx, three)["node"]["tags"] == ["tier:off-context"]
    context = ctx("compose").out
    assert summary in context
    assert one not in context
    ctx("undo")
    assert shown(ctx, one)["node"]["tags"] == ["tier:working"]
    assert ctx("show", summary).code == 1


def test_mistakes_change_nothing(folder: Path, ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    for words, code, told in (
        ([two], 2, "E011: The summary is missing.\n  Give it as the last argument,"),
        (["--content="], 2, "E023: There is no content.\n"),
        (["--content=x", "--stdin"], 2, "E011: Give the text as an argument,"),
        (["Two words", "--content=x"], 2, "E011"),
        (["--content=x", "--tag=tier:nope"], 2, "E011: There is no tier 'tier:nope'.\n"),
        (["01ZZZZZZ", "--content=x"], 1, "E020: No node has an id that begins with"),
        (["01ZZZZZZ", "Numbers"], 1, "E020: No node has an id that begins with '01ZZZZZZ'"),
    ):
        ran = ctx("summarize", one, *words)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(f"error {told}")
    assert ctx("list", "--format=json").json["total"] == 2


def test_where_the_text_comes_from(ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    one = add("--type=fact", "--tag=project:shop", "--tag=task:x", "One")
    two = add("--type=fact", "--tag=project:shop", "Two")
    words = ["--tag=tier:pinned", "--tag=task:y", "--json"]
    made = ctx("summarize", one, two, "Both are numbers", *words).json
    assert made["summary"]["content"] == "Both are numbers"
    assert made["summary"]["tags"] == ["project:shop", "task:y", "tier:pinned"]
    # One word that cannot be an id is a text, too.
    made = ctx("summarize", one, two, "Numbers", "--json").json
    assert (made["summary"]["content"], len(made["sources"])) == ("Numbers", 2)
    for words in (["--stdin"], ["--content=-"]):
        stdin = io.TextIOWrapper(io.BytesIO("Line one\nline two ü\n".encode()))
        monkeypatch.setattr("sys.stdin", stdin)
        answer = ctx("summarize", one, *words, "--format=json").json
        assert answer["summary"]["content"] == "Line one\nline two ü"
    ran = ctx("summarize", one, "--content=The key is AKIAQ3EGZT5WJ7NBX2LP")
    assert "AKIAQ3EGZT5WJ7NBX2LP" not in ctx("export").out
    assert ran.err.startswith("warning: 1 secret removed: content, line 1")
