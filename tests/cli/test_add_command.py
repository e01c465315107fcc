"""`ctx add command`: what a command printed, and how it ended."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.project import command_output as output
from tests import effort
from tests.cli.conftest import Piped
from tests.conftest import Ctx

FAILED = b"""   Compiling core v0.1.0
\x1b[1m\x1b[31merror[E0433]\x1b[0m: could not find `retry` in `crate`
  --> src/lib.rs:3:12
error: could not compile `core`
"""


def test_a_failure_in_a_project(ctx: Ctx, project: Path, piped: Piped) -> None:
    piped(FAILED)
    ran = ctx("add", "command", "--stdin", "--name", "cargo test", "--exit-code", "101")
    short = ran.out.split()[1]
    headline = (
        "cargo test failed with exit code 101: 1 error (E0433 src/lib.rs:3), 4 lines of output"
    )
    found = "  src/lib.rs:3  error[E0433]: could not find `retry` in `crate`\n"
    assert ran == (0, f"Added: {short} {headline}\n{found}", "")
    node = ctx("show", short, "--format=json").json["node"]
    assert (node["type"], node["tags"], node["scope"]) == ("observation", ["command"], "project")
    plain = re.sub(rb"\x1b\[\d+m", b"", FAILED).decode()
    assert node["content"] == f"{headline}\n{plain.rstrip()}"
    assert node["metadata"]["exit_code"] == 101
    blob = node["metadata"]["blob"]
    assert ctx("debug", "cat", blob).out == plain
    assert ctx("commit", "-m", "x").code == 0
    assert ctx("debug", "cat", blob).out == plain
    assert ctx("debug", "verify").code == 0


def test_the_first_errors_of_a_long_output(ctx: Ctx, project: Path, piped: Piped) -> None:
    lines = [b"line %d" % number for number in range(10_000)]
    lines[4_000] = b"FAILED test_one"
    piped(b"\n".join(lines))
    words = ["--stdin", "--name=pytest", "--exit-code=1", "--format=json"]
    kept = ctx("add", "command", *words).json
    assert (kept["lines"], kept["cut"]) == (10_000, 9_500)
    told = kept["node"]["content"].splitlines()
    assert told[1:3] == ["FAILED test_one", "…"]
    assert told[3:] == [f"line {number}" for number in range(9_990, 10_000)]
    log = ctx("debug", "cat", kept["blob"]).out.splitlines()
    assert len(log) == 501
    assert log[249:252] == ["line 249", "… 9,500 lines left out …", "line 9750"]
    piped(b"")
    kept = ctx("add", "command", *words[:2], "--exit-code=0", "--format=json").json
    assert kept["node"]["content"] == "pytest passed (0 lines of output)"
    assert (kept["lines"], kept["cut"], kept["blob"]) == (0, 0, None)


def test_without_an_exit_code(ctx: Ctx, folder: Path, piped: Piped) -> None:
    piped(b"ok\n")
    ran = ctx("add", "command", "--stdin", "--name", "make  lint")
    assert ran.out.endswith(" make lint ended (1 line of output)\n")
    # In a pipe `--exit-code $?` would be the code of what ran before it.
    assert ran.err == (
        "Exit code unknown. To record it: `make test > out 2>&1; "
        'ctx add command --name "make test" --exit-code $? --stdin < out`\n'
    )
    kept = ctx("add", "command", "--body=ok", "--name=x", "--exit-code=0", "--format=json").json
    assert kept["node"]["content"] == "x passed (1 line of output)\n\nok"
    assert kept["node"]["metadata"] == {
        "command": "x",
        "exit_code": 0,
        "lines": 1,
        "outcome": "passed",
        "source": "tool output",
    }
    assert (kept["blob"], kept["snapshot"]) == (None, None)
    words = ["--body=ok", "--name=x", "--exit-code=-1073741819", "--format=json"]
    crashed = ctx("add", "command", *words).json
    assert crashed["node"]["metadata"]["exit_code"] == -1073741819


def test_mistakes(ctx: Ctx, folder: Path, piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (
        ["--name=x"],
        ["--stdin", "--name="],
        ["--stdin", "--name", "x" * 501],
        ["--stdin", "--body=a", "--name=x"],
        ["--stdin"],
        ["--stdin", "--name=x", "--exit-code=one"],
        ["--stdin", "--name=x", "--tag=tier:nonsense"],
    ):
        piped(b"a\n")
        ran = ctx("add", "command", *words)
        assert (ran.code, ran.err[:11]) == (2, "error E011:"), words
    monkeypatch.setattr("ctx.cli.settings.stdin_is_terminal", lambda: True)
    ran = ctx("add", "command", "--stdin", "--name=x")
    assert ran.err.startswith("error E011: No output on stdin: it is a terminal.\n")
    assert ctx("list").out == "No nodes.\n"


def test_a_key_does_not_survive_the_cut() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + f"{n:04d}" for n in range(40)]
    begin, end = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
    text = "\n".join([begin, *lines, end, "done"]).encode()
    printed = output.read([text], 20)
    assert not [line for line in printed.text.splitlines() if line.startswith("MII")]
    assert printed.tail[-2:] == (end, "done")


def endless() -> Iterator[bytes]:
    for _ in range(200):
        yield b"\xff\x00" * 32_768


def test_ten_megabytes_without_a_line_end() -> None:
    printed = output.read(endless(), 500)
    assert printed.lines == 1
    assert len(printed.text) < 3_000


def test_progress_bars_and_colours() -> None:
    printed = output.read([b"10 %\r50 %\r100 %\r\n\x1b]0;title\x07\x1b[2Kdone\n"], 10)
    assert printed.head == ("100 %", "done")


@settings(deadline=None, max_examples=effort.times(60))
@given(st.binary(max_size=400), st.lists(st.integers(1, 9), max_size=40), st.integers(0, 12))
def test_it_does_not_matter_in_which_parts_it_comes(
    data: bytes, sizes: list[int], most: int
) -> None:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    parts.append(data[at:])
    whole = output.read([data], most)
    assert output.read(parts, most) == whole
    assert len(whole.head) + len(whole.tail) <= most
    whole.text.encode()
