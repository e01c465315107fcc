import io

import pytest

from ctx import clock
from ctx.cli.output import Block, Line, Output, Table, Verbatim, count, plain, size
from ctx.errors import CtxError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(number * 0.2 for number in range(100))
    monkeypatch.setattr(clock, "monotonic", lambda: next(now))
    screen = Terminal()
    with Output(io.StringIO(), screen).progress("Reading") as tick:
        for number in range(5):
            tick(number, 1000)
    shown = screen.getvalue()
    assert "Reading [" in shown
    assert "/1,000" in shown
    assert shown.endswith("\r")


def test_no_progress_in_a_pipe_or_for_short_work() -> None:
    pipe, screen = io.StringIO(), Terminal()
    for stream in (pipe, screen):
        with Output(io.StringIO(), stream).progress("Reading") as tick:
            tick(1, 2)
        assert stream.getvalue() == ""


def test_a_table_as_markdown_cannot_be_broken_by_its_cells() -> None:
    out = io.StringIO()
    blocks: list[Block] = [
        Line("x"),
        Table(("a", "b"), [("1|2", "3\n4")]),
        Verbatim("```\ninner\n```\n"),
    ]
    Output(out, io.StringIO(), "markdown").show(None, lambda _: blocks)
    assert "| 1\\|2 | 3\\x0a4 |" in out.getvalue()
    assert "````\n```\ninner\n```\n````" in out.getvalue()


def test_lone_surrogates_can_be_printed() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err)
    output.result("bad-\udcff\n")
    output.error(CtxError("bad-\udcff"))
    assert out.getvalue() == "bad-\\xff\n"
    assert "bad-\\xff" in err.getvalue()
    assert plain({"a": ("b\udcff", 1, "\ud800")}) == {"a": ["b\\xff", 1, "\\ud800"]}


def test_columns_line_up_in_any_script() -> None:
    out = io.StringIO()
    rows = [("設計", "x"), ("abcd", "y"), ("a\nb", "z")]
    Output(out, io.StringIO()).show(None, lambda _: [Table(("a", "b"), rows)])
    assert out.getvalue() == "  設計    x\n  abcd    y\n  a\\x0ab  z\n"


def test_sizes_and_counts() -> None:
    assert [size(n) for n in (0, 1023, 1024, 5 * 2**20, 3 * 2**30, 2**42)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
        "4.0 TiB",
    ]
    assert (count(1, "file"), count(2, "copy", "copies")) == ("1 file", "2 copies")
