"""The patterns of ignore files, compared with git."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ctx.code import patterns
from tests import effort

CASES = [
    ("*.log", "a.log b/c.log .log", "a.txt a.log.txt"),
    ("/top", "top top/", "a/top"),
    ("folder/", "folder/ a/folder/", "folder a/folder"),
    ("a/b", "a/b a/b/", "x/a/b a/bc"),
    ("a/*", "a/b a/b/", "a/ a/b/c"),
    ("a/**", "a/b a/b/c a/b/", "a/ a b/a/c"),
    ("**/a", "a b/a b/c/a a/", "ab b/ab"),
    ("a/**/b", "a/b a/x/b a/x/y/b", "ab a/bx x/a/b"),
    ("**/a/**/b", "a/b x/a/y/b a/a/b", "b a/x"),
    ("a**b", "ab axxb c/ab", "a/b"),
    ("x/a**b", "x/ab x/acb", "x/a/b"),
    ("?", "a b/a é", "ab"),
    ("[a-c]x", "ax cx", "dx a/x"),
    ("[!a-c]x", "dx", "ax /x"),
    ("[]-]x", "]x -x", "ax"),
    ("[[:digit:][:upper:]]", "1 Q", "q"),
    ("[z-a]x", "zx", "ax mx"),
    (r"\#a", "#a", "a"),
    (r"\!a", "!a", "a"),
    ("# a", "", "a"),
    ("a   ", "a", ""),
    ("[a", "", "[a a"),
    ("a\\", "", "a a\\"),
    ("a//", "", "a a/"),
    ("/", "", "a a/"),
    ("", "", "a"),
    ("*a*b*c", "abc xaxbxc aabbc", "acb ab"),
    ("*[", "", "a["),
]


@pytest.mark.parametrize(("pattern", "ignored", "others"), CASES)
def test_a_pattern_matches_its_paths_and_no_others(pattern: str, ignored: str, others: str) -> None:
    rules = patterns.compile_rules([pattern])
    assert [path for path in ignored.split() if not patterns.verdict(rules, path)] == []
    assert [path for path in others.split() if patterns.verdict(rules, path) is not None] == []


def test_the_last_matching_pattern_decides() -> None:
    rules = patterns.read_patterns(b"\xef\xbb\xbf*.log\r\n!keep.log\r\n\r\n# nothing\nkeep.log/\n")
    said = {path: patterns.verdict(rules, path) for path in ("a.log", "keep.log", "keep.log/", "a")}
    assert said == {"a.log": True, "keep.log": False, "keep.log/": True, "a": None}


def test_an_escaped_trailing_space_is_part_of_the_name() -> None:
    rules = patterns.compile_rules(["a\\  ", "b\\\\ "])
    said = [patterns.verdict(rules, path) for path in ("a ", "a", "b\\", "b\\ ")]
    assert said == [True, None, True, None]


def test_hostile_patterns_are_matched_quickly() -> None:
    hostile = patterns.compile_rules(
        ["*a" * 40 + "b", "/".join(["**/*a*"] * 40) + "/b", "[" * 5000, "*" * 5000 + "/x"]
    )
    assert patterns.verdict(hostile, "a" * 250 + "c") is None
    assert patterns.verdict(hostile, "/".join(["aaa"] * 1000)) is None


def test_only_the_beginning_of_a_huge_file_is_read() -> None:
    rules = patterns.read_patterns(b"a\n" + b"# nothing\n" * 20_000 + b"b\n")
    assert [patterns.verdict(rules, path) for path in ("a", "b")] == [True, None]
    assert patterns.read_patterns(b"x" * 300_000) == ()


NAMES = ["a", "b", "ab", "ba", "a.b", "é", "-", "a]", "[b"]
PIECES = ["a", "b", "*", "?", "[ab]", "[!a]", "[a-", ".", "é", "\\a", "\\"]
NAME_PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
# git reads `a**/` against its own documentation, so stars that are not alone come singly.
WORDS = NAME_PATTERNS.filter(lambda word: "**" not in word) | st.just("**")
PATTERNS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(WORDS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", " "]),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


@settings(
    max_examples=effort.times(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(["a/**/b", "!a/b"], {"a/b", "a/a/b"})
@given(st.lists(PATTERNS, min_size=1, max_size=4), st.sets(PATHS, min_size=1, max_size=12))
def test_patterns_match_as_in_git(repo: Path, lines: list[str], paths: set[str]) -> None:
    (repo / ".gitignore").write_text("\n".join(lines))
    # To git, `?` and `[…]` are one byte.
    by_character = {"?", "["} & set("".join(lines))
    plain = [path for path in sorted(paths) if path.isascii() or not by_character]
    assert _ignored_by_us(lines, plain) == _ignored_by_git(repo, plain)


def _ignored_by_us(lines: list[str], paths: list[str]) -> set[str]:
    rules = patterns.compile_rules(lines)

    def ignored(path: str) -> bool:
        names = path.split("/")
        folders = ["/".join(names[:depth]) + "/" for depth in range(1, len(names))]
        return any(patterns.verdict(rules, folder) for folder in folders) or bool(
            patterns.verdict(rules, path)
        )

    return {path for path in paths if ignored(path)}


def _ignored_by_git(repo: Path, paths: list[str]) -> set[str]:
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=repo,
        input="".join(f"./{path}\0" for path in paths).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return {path.removeprefix("./") for path in done.stdout.decode().split("\0") if path}
