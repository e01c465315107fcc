import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.cli.output import (
    Block,
    Line,
    Markdown,
    Output,
    Table,
    VerbatimText,
    age_text,
    count,
    listing,
    plain,
    size,
)
from ctx.cli.settings import Screen
from ctx.cli.terminal import (
    colour_text,
    fitted_example,
    shortened,
    shortened_in_the_middle,
    width,
    wrapped,
)
from ctx.errors import CtxError
from tests import effort


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, screen = io.StringIO(), Terminal()
    for stream in (pipe, screen):
        with Output(io.StringIO(), stream).progress("Reading") as tick:
            tick(1, 2)
        assert stream.getvalue() == "", "it was short"
    now = iter(number * 0.2 for number in range(100))
    monkeypatch.setattr(clock, "monotonic", lambda: next(now))
    with Output(io.StringIO(), screen).progress("Reading") as tick:
        for number in range(5):
            tick(number, 1000)
    shown = screen.getvalue()
    assert "Reading [" in shown
    assert "/1,000" in shown
    assert shown.endswith("\r")


def shown(form: str, *blocks: Block) -> str:
    """What a pipe is given."""
    out = io.StringIO()
    Output(out, io.StringIO(), form).show(None, lambda _: list(blocks))
    return out.getvalue()


def on_terminal(*blocks: Block, columns: int = 80) -> str:
    """What a terminal without colours is given."""
    out = Terminal()
    Output(out, io.StringIO(), "text", Screen(False, columns)).show(None, lambda _: list(blocks))
    return out.getvalue()


def test_a_table_as_markdown_cannot_be_broken_by_its_cells() -> None:
    rows = [
        ("1|2", "3\n4"),
        ("a\\", "\x1b[31m"),
        ("`a|b`", "half `"),
        ("``", "</table>\r\nVec<T>"),
    ]
    assert shown("markdown", Line("x"), Table(("a", "b"), rows)) == (
        "x\n"
        "\n"
        "| a | b |\n"
        "| --- | --- |\n"
        "| 1\\|2 | 3 4 |\n"
        "| a\\\\ | \\\\x1b[31m |\n"
        "| `a\\|b` | half \\` |\n"
        "| \\`\\` | \\</table> Vec\\<T> |\n"
    )


@settings(deadline=None, max_examples=effort.times(25))
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_every_row_of_a_markdown_table_is_one_row(rows: list[tuple[str, str]]) -> None:
    lines = shown("markdown", Table(("a", "b"), rows)).split("\n")
    assert len(lines) == len(rows) + 3
    for line in lines[:-1]:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 3
        assert bare.replace("\\`", "").count("`") % 2 == 0


def test_the_blocks_in_every_form() -> None:
    blocks: list[Block] = [
        Line("What is known", "heading"),
        Line("two nodes", "dim"),
        Line(""),
        Line(""),
        Table(("id", "content"), [("01", "a\nb")], ("id", "text")),
        Markdown("\n# Already\n\n\ttab \x1b[0m\n"),
        VerbatimText("```\n\n\ninner\n```\n"),
    ]
    assert shown("text", *blocks) == (
        "What is known\ntwo nodes\n\n\n  01  a b\n\n# Already\n\n\ttab \\x1b[0m\n"
        "```\n\n\ninner\n```\n"
    )
    assert shown("markdown", *blocks) == (
        "## What is known\n\ntwo nodes\n\n| id | content |\n| --- | --- |\n| 01 | a b |\n\n"
        "# Already\n\n\ttab \\x1b[0m\n\n````\n```\n\n\ninner\n```\n````\n"
    )
    assert shown("markdown", Table(("a",), [])) == ""
    assert on_terminal(Markdown("\ttab \x1b[0m\n")) == "\ttab \\x1b[0m\n"
    lines = shown("text", *listing(("n",), [(str(n),) for n in range(1025)], ("number",)))
    assert lines.count("\n") == 21
    assert lines.endswith("  … and 1,005 more\n")


def test_a_terminal_sees_headings_and_right_aligned_numbers() -> None:
    table = Table(("name", "tokens"), [("a", "1,000"), ("設計", "7")], ("", "number"))
    assert on_terminal(table) == "  name  tokens\n  a      1,000\n  設計       7\n"
    assert shown("text", table) == "  a     1,000\n  設計  7\n"
    fields = Table(("field", "value"), [("type", "fa\nct")], ("field", ""))
    assert on_terminal(fields) == "  type  fa\\x0act\n"
    assert on_terminal(Table(("a", "b"), [])) == ""
    assert on_terminal(Table(("what",), [("one",), ("two",)])) == "  one\n  two\n"


@pytest.mark.parametrize(
    ("columns", "content", "tags"),
    [(200, 100, 60), (150, 100, 32), (130, 100, 12), (100, 71, 11), (69, 40, 11), (68, 52, 0)],
)
def test_tags_give_way_to_prose(columns: int, content: int, tags: int) -> None:
    rows = [("01M7ESYZ1SB4", "w" * 100, "t" * 60)]
    table = Table(("id", "content", "tags"), rows, ("id", "text", "tags"))
    heading, line = on_terminal(table, columns=columns).splitlines()
    assert [len(word) for word in line.split()] == [12, content, tags][: 3 if tags else 2]
    assert heading.split() == ["id", "content", "tags"][: 3 if tags else 2]
    # Short prose leaves the rest to tags.
    table = Table(("content", "tags"), [("w" * 30, "t" * 60)], ("text", "tags"))
    assert on_terminal(table, columns=60).splitlines()[1] == f"  {'w' * 30}  {'t' * 25}…"
    alone = Table(("tag", "nodes"), [("t" * 60, "3")], ("tags", "number"))
    assert on_terminal(alone, columns=30).splitlines()[1] == f"  {'t' * 20}…      3"
    assert on_terminal(alone, columns=5).split() == ["t" * 60, "nodes:", "3"]


def test_constant_columns_are_left_out_if_a_table_does_not_fit() -> None:
    headings = ("id", "project", "status", "tags", "what")
    kinds = ("id", "", "", "tags", "text")
    rows = [
        ("0123456789", "shop", "completed", "project:shop", "one " * 8),
        ("0123456790", "shop", "completed", "project:shop", "two " * 8),
    ]
    table = Table(headings, rows, kinds)
    assert on_terminal(table, columns=60) == (
        f"  id          what\n  0123456789  {'one ' * 8}\n  0123456790  {'two ' * 8}\n"
        "  All: project:shop, status:completed, project:shop\n"
    ).replace(" \n", "\n")
    assert "All:" not in on_terminal(table, columns=120)
    assert "All:" not in shown("text", table)
    assert shown("text", table).count("completed") == 2
    # One row has no constants, and what the table is about is never left out.
    assert "completed" in on_terminal(Table(headings, rows[:1], kinds), columns=60)
    same = Table(("file", "about"), [("a.py", "x" * 90), ("a.py", "x" * 90)], ("", "text"))
    assert on_terminal(same, columns=60).count("a.py") == 2
    empty = Table(headings, [("1", "", "s", "t", "w" * 60), ("2", "", "s", "t", "w" * 60)], kinds)
    assert "project" not in on_terminal(empty, columns=60)


def test_long_values_lose_their_middle() -> None:
    path = "src/ctx/operations/a_very_long_folder/with_more/inner/file_name.py"
    table = Table(("path", "state"), [(path, "new"), ("README.md", "changed")], ("", "type"))
    heading, first, second = on_terminal(table, columns=50).splitlines()
    assert first == "  src/ctx/oper…th_more/inner/file_name.py  new"
    assert second.split() == ["README.md", "changed"]
    assert (width(first), heading.split()) == (46, ["path", "state"])
    for columns in range(40, 100):
        assert max(map(width, on_terminal(table, columns=columns).splitlines())) <= columns


def test_rows_are_stacked_where_they_do_not_fit() -> None:
    rows = [("0123456789", "x" * 24, "y" * 24, "a few words"), ("0123456790", "", "z", "more")]
    table = Table(("id", "from", "to", "why"), rows, ("id", "edge", "edge", "text"))
    assert on_terminal(table, columns=60) == (
        f"  0123456789\n    from: {'x' * 24}\n    to: {'y' * 24}\n    why: a few words\n"
        "  0123456790\n    to: z\n    why: more\n"
    )
    wide = Table(table.headings, [("0", "x" * 60, "y" * 60, "a few words")], table.kinds)
    assert len(on_terminal(wide, columns=110).splitlines()) == 2
    fields = Table(("field", "value"), [("created", "some day in the past")], ("field", ""))
    assert on_terminal(fields, columns=20) == "  created\n    some day in the\n    past\n"


def test_no_control_sequence_reaches_a_terminal() -> None:
    evil = "\x1b[2J\x9b31m\x07\r\u202e\u2066\u200f\x7f"
    out, err = Terminal(), Terminal()

    def render(_: object) -> list[Block]:
        return [
            Line(evil),
            Line(evil, "heading"),
            Table(("a", "b"), [(evil, evil)], ("text", "id")),
            VerbatimText(evil),
            Markdown(evil),
        ]

    for form in ("text", "markdown", "json"):
        output = Output(out, err, form, Screen(False, 80))
        output.show({"evil": evil}, render)
        output.result(evil)
        output.note(evil)
        output.warn(evil)
        output.error(CtxError(evil, hint=evil))
    for written in (out.getvalue(), err.getvalue()):
        assert len(written) > 500
        assert all(line.isprintable() for line in written.split("\n"))


@settings(deadline=None)
@given(st.text())
def test_json_keeps_the_text(text: str) -> None:
    out = io.StringIO()
    Output(out, io.StringIO(), "json").show({"text": text}, lambda _: [])
    assert json.loads(out.getvalue()) == plain({"text": text})


NOW = 1_768_903_200_000  # 2026-01-20T10:00:00Z


def test_how_long_ago_a_time_was() -> None:
    for text, told in (
        ("2026-01-20T09:59:15Z", "45 s"),
        ("2026-01-20T08:00:00Z", "2 h"),
        ("2026-01-15T10:00:00Z", "5 d"),
        ("2025-11-21T10:00:00Z", "60 d"),
        ("2025-11-21T09:59:59Z", "2025-11-21"),
        ("2024-01-15T10:30:00.5+02:00", "2024-01-15"),
        ("2026-01-20T10:00:30Z", "0 s"),
        ("2031-05-01T00:00:00Z", "2031-05-01"),
        ("yesterday", "yesterday"),
    ):
        assert age_text(text, NOW) == told


def test_an_error_with_its_details() -> None:
    err = io.StringIO()
    error = CtxError("Several\nnodes.", detail="  01 a\n  02 \x1b[2J", hint="Give more.")
    Output(io.StringIO(), err).error(error)
    Output(io.StringIO(), err, "json").error(error)
    assert err.getvalue() == (
        "error E000: Several\\x0anodes.\n  01 a\n  02 \\x1b[2J\n  Give more.\n"
        '{"error": {"code": "E000", "message": "Several\\nnodes.", "hint": "Give more.", '
        '"detail": "  01 a\\n  02 \\u001b[2J"}}\n'
    )


def test_lone_surrogates_can_be_printed() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err)
    output.result("bad-\udcff\n")
    output.error(CtxError("bad-\udcff"))
    assert out.getvalue() == "bad-\\xff\n"
    assert "bad-\\xff" in err.getvalue()
    assert plain({"a": ("b\udcff", 1, "\ud800")}) == {"a": ["b\\xff", 1, "\\ud800"]}


def test_prose_is_broken_at_spaces() -> None:
    text = "  To see all of them, with their tags: `ctx list --limit 0 --anchors`"
    assert wrapped(text, 100) == text
    assert wrapped(text, 40).splitlines() == [
        "  To see all of them, with their tags:",
        "  `ctx list --limit 0 --anchors`",
    ]
    assert wrapped("x" * 50, 40) == "x" * 50
    assert wrapped("漢字 " * 6, 20).splitlines() == ["漢字 漢字 漢字 漢字", "漢字 漢字"]
    line = "  ctx pack WORDS        what to read for a task"
    assert fitted_example(line, 80) == line
    assert fitted_example(line, 40) == "  ctx pack WORDS\n      what to read for a task"
    assert fitted_example(line, 24) == "  ctx pack WORDS\n      what to read for a\n      task"
    assert fitted_example("  ctx pack --budget 4000", 20) == "  ctx pack --budget 4000"


def test_prose_gives_way_to_the_width_of_the_terminal() -> None:
    rows = [("01", "設計メモの全文をここに書く", "4"), ("02", "plain words that go on", "7")]
    table = Table(("id", "content", "tokens"), rows, ("id", "text", "number"))
    assert on_terminal(table, columns=32) == (
        "  id  content             tokens\n"
        "  01  設計メモの全文を…        4\n"
        "  02  plain words that…        7\n"
    )
    assert "…" not in on_terminal(table, columns=80)
    assert "…" not in shown("text", table)
    # Too narrow a terminal wraps rather than hides.
    narrow = Table(("id", "content"), [("0123456789", "w" * 40)], ("id", "text"))
    assert on_terminal(narrow, columns=10) == f"  0123456789\n    content:\n    {'w' * 40}\n"
    sentence = "a sentence that is longer than the screen"
    last = Table(("state", "result"), [("ok", sentence), ("", "short")], ("state",))
    assert on_terminal(last, columns=40).splitlines() == [
        "  state  result",
        "  ok     a sentence that is longer than",
        "         the screen",
        "         short",
    ]
    title = "src/ctx/operations/a_very_long_folder/file_name.py"
    line = on_terminal(Line(title, "heading"), columns=30)
    assert width(line.rstrip()) == 30
    assert line.startswith("src/")
    assert line.endswith("name.py\n")


@settings(deadline=None, max_examples=effort.times(25))
@given(st.text(), st.integers(1, 30))
def test_a_shortened_text_fits_and_is_a_beginning_or_has_both_ends(text: str, columns: int) -> None:
    found = shortened(text, columns)
    assert width(found) <= columns
    assert found == text or (found[-1] == "…" and text.startswith(found[:-1]))
    found = shortened_in_the_middle(text, columns)
    assert width(found) <= columns
    start, dots, end = found.partition("…")
    assert found == text or (dots and text.startswith(start) and text.endswith(end))


def test_sizes_counts_and_states() -> None:
    sizes = {0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 5 * 2**20: "5.0 MiB", 2**42: "4.0 TiB"}
    assert {number: size(number) for number in sizes} == sizes
    assert (count(1, "file"), count(2, "copy", "copies")) == ("1 file", "2 copies")
    assert colour_text("problem", "state") == "\x1b[1;31mproblem\x1b[0m"
    assert colour_text("→ other", "state") == "→ other"
