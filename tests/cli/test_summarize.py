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


def test_tags_of_its_own(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "--tag=tier:working", "--tag=project:shop", "--tag=task:x", "One")
    words = ["--tag=tier:pinned", "--tag=task:y", "--format=json"]
    answer = ctx("summarize", one, "--content=C", *words).json
    assert answer["summary"]["tags"] == ["project:shop", "task:y", "tier:pinned"]


def test_from_stdin(folder: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    one = add("--type=fact", "One")
    for words in (["--stdin"], ["--content=-"]):
        stdin = io.TextIOWrapper(io.BytesIO("Line one\nline two ü\n".encode()))
        monkeypatch.setattr("sys.stdin", stdin)
        answer = ctx("summarize", one, *words, "--format=json").json
        assert answer["summary"]["content"] == "Line one\nline two ü"


def test_secrets_are_not_kept(folder: Path, ctx: Ctx, add: Add) -> None:
    one = add("--type=fact", "One")
    ran = ctx("summarize", one, "--content=The key is AKIAQ3EGZT5WJ7NBX2LP")
    assert "AKIAQ3EGZT5WJ7NBX2LP" not in ctx("export").out
    assert ran.err.startswith("warning: 1 secret removed: content, line 1")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "error E011: The summary is missing.\n  Give it as the last argument,"),
        (["--content="], 1, "error E023: There is no content.\n"),
        (["--content=x", "--stdin"], 2, "error E011: Give the text as an argument,"),
        (["--content=x", "--tag=tier:nope"], 2, "error E011: There is no tier 'tier:nope'.\n"),
        (["01ZZZZZZ", "--content=x"], 1, "error E020: No node has an id that begins with"),
    ],
)
def test_mistakes_change_nothing(
    folder: Path, ctx: Ctx, add: Add, words: list[str], code: int, told: str
) -> None:
    one = add("--type=fact", "One")
    ran = ctx("summarize", one, *words)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(told)
    assert ctx("list", "--format=json").json["total"] == 1


def test_the_text_can_be_the_last_argument(ctx: Ctx, add: Add) -> None:
    one, two = add("--type=fact", "One"), add("--type=fact", "Two")
    made = ctx("summarize", one, two, "Both are numbers", "--json").json
    assert made["summary"]["content"] == "Both are numbers"
    assert "The summary is missing." in ctx("summarize", one, two).err
    assert ctx("summarize", one, "Two words", "--content=Other").code == 2
    # One word that cannot be an id is a text, too.
    made = ctx("summarize", one, two, "Numbers", "--json").json
    assert (made["summary"]["content"], len(made["sources"])) == ("Numbers", 2)
    assert "begins with '01ZZZZZZ'" in ctx("summarize", one, "01ZZZZZZ", "Numbers").err
