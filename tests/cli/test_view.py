"""`ctx view`"""

from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx

DEFAULT = "tag:tier:pinned OR tag:tier:reference OR tag:tier:working"


def budgets(ctx: Ctx) -> dict[str, int | None]:
    return {
        each["name"]: each["budget"] for each in ctx("view", "list", "--format=json").json["views"]
    }


def test_a_view_from_its_making_to_its_end(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "Seen")
    add("--type=decision", "Not seen")
    made = ctx("view", "create", "facts", "--query=type:fact", "--budget=300")
    assert made.out == "Created view: facts (type:fact, 300 tokens)\n"
    again = ctx("view", "create", "facts", "--query=type:fact", "--budget=300")
    assert (again.code, again.out) == (0, "Unchanged view: facts (type:fact, 300 tokens)\n")
    assert ctx("view", "list").out == (
        f"  default  50,000 (default)  {DEFAULT}\n  facts    300               type:fact\n"
    )
    rendered = ctx("view", "render", "facts")
    assert "Seen" in rendered.out
    assert "Not seen" not in rendered.out
    answer = ctx("view", "render", "facts", "--format=json").json
    assert answer["meta"]["budget"] == 300
    assert [node["content"] for node in answer["nodes"]] == ["Seen"]
    assert ctx("view", "render", "facts", "--budget=30", "--format=json").json["nodes"] == []
    changed = ctx("view", "update", "facts", "--query=type:decision")
    assert changed.out == "Updated view: facts (type:decision, 300 tokens)\n"
    assert "Not seen" in ctx("view", "render", "facts").out
    assert ctx("view", "update", "facts", "--budget=default").out == (
        "Updated view: facts (type:decision)\n"
    )
    assert budgets(ctx) == {"default": None, "facts": None}
    assert ctx("view", "update", "facts", "--budget=default").out.startswith("Unchanged view:")
    assert ctx("view", "delete", "facts").out == "Deleted view: facts (type:decision)\n"
    assert ctx("view", "delete", "facts").code == 1
    assert ctx("undo").code == 0
    assert budgets(ctx) == {"default": None, "facts": None}


def test_the_default_view(folder: Path, ctx: Ctx, add: Add) -> None:
    add("--type=fact", "--tag=tier:reference", "Reference")
    assert "Reference" in ctx("view", "render", "default").out
    ran = ctx("view", "delete", "default")
    assert ran.code == 2
    assert ran.err == (
        "error E011: The view 'default' cannot be deleted: sessions start with it.\n"
        '  `ctx view update default "…"` changes it.\n'
    )
    assert ctx("view", "update", "default", "--budget=80000").code == 0
    assert ctx("view", "render", "default", "--format=json").json["meta"]["budget"] == 80_000


def test_mistakes(folder: Path, ctx: Ctx) -> None:
    ctx("view", "create", "facts", "--query=type:fact")
    for words, code, told in (
        (["create", "facts", "--query=type:task"], 2, "E011: The view 'facts' already exists, "),
        (["create", "facts", "--query=type:fact", "--budget=9"], 2, "E011: The view 'facts' alrea"),
        (["render", "no"], 1, "E025: There is no view 'no'.\n  `ctx view list` lists the views.\n"),
        (["update", "no", "--budget=100"], 1, "E025: There is no view 'no'."),
        (["delete", "no"], 1, "E025: There is no view 'no'."),
        (["update", "default"], 2, "E011: Nothing to change.\n  Give a query or --budget.\n"),
        (["update", "default", "--budget=many"], 2, "E011"),
        (["update", "default", "--query=(type:fact"], 2, "E022"),
        (["create", "bad", "--query=type:fact AND tpye:x"], 2, "E022"),
    ):
        ran = ctx("view", *words)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(f"error {told}")
    assert "  type:fact AND tpye:x\n                ^^^^\n" in ran.err
    for name in ("", "-x", ".x", "a b", "a/b", "x" * 101, "a:b", "a\nb"):
        ran = ctx("view", "create", "--query=type:fact", "--", name)
        assert (ran.code, "cannot name a view" in ran.err) == (2, True)
    names = ("x", "a-b_c.d", "2024", "設計", "x" * 100)
    for name in names:
        assert ctx("view", "create", name, "--query=type:fact").code == 0
    assert ctx("view", "render", names[-1]).code == 0
    assert budgets(ctx) == dict.fromkeys(["default", "facts", *names])
