"""Completion: what is offered, and what real shells make of it."""

import argparse
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named, completed
from ctx.cli.completion import SHELLS, TypedLine, insertion, script, split
from ctx.cli.help_texts import TOPICS
from ctx.config.schema import SETTINGS
from ctx.memory import user_store
from ctx.memory.model import EDGE_TYPES, NODE_TYPES, TIERS
from tests import effort, installed
from tests.cli.test_startup import THIRD_PARTY, loaded_by
from tests.conftest import Ctx

BREAKS = " \t\n\"'@><=;|&(:"
"""Bash's COMP_WORDBREAKS, unless somebody changed it."""

WHEN = "2026-01-20T10:00:00Z"


class Store:
    """A user store whose rows are put in directly: no command would take some of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        user_store.open_for_writing(str(path)).close()

    def execute(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    def node(self, node_id: str, content: str, *tags: str, node_type: str = "fact") -> str:
        whole = node_id.ljust(26, "0")
        self.execute(
            "INSERT INTO nodes (id, type, content, token_estimate, created_at, updated_at)"
            " VALUES (?, ?, ?, 1, ?, ?)",
            *(whole, node_type, content, WHEN, WHEN),
        )
        for tag in tags:
            self.execute("INSERT INTO tags VALUES (?, ?, ?)", whole, tag, WHEN)
        return whole

    def view(self, name: str, query: str) -> None:
        self.execute("INSERT INTO views VALUES (?, ?, NULL, ?, ?, NULL)", name, query, WHEN, WHEN)


@pytest.fixture
def memory(surroundings: Path, folder: Path) -> Store:
    return Store(surroundings / ".ctx" / "store.db")


Offered = Callable[..., list[str]]


@pytest.fixture
def offered(ctx: Ctx) -> Offered:
    """What is offered for the last of these words: each word, a tab, and what it is."""

    def ask(*words: str) -> list[str]:
        ran = ctx("__complete", "fish", "ctx", *words)
        assert (ran.code, ran.err) == (0, "")
        return ran.out.splitlines()

    return ask


def words_of(lines: list[str]) -> list[str]:
    return [line.partition("\t")[0] for line in lines[1:]]


def test_commands(offered: Offered, folder: Path) -> None:
    assert offered("comp") == [
        "words",
        f"compose\t{COMMANDS['compose']}",
        f"completion\t{COMMANDS['completion']}",
    ]
    assert words_of(offered("")) == list(COMMANDS)
    assert words_of(offered("--format", "json", "")) == list(COMMANDS)
    assert set(words_of(offered("help", ""))) == {*COMMANDS, *TOPICS}
    assert words_of(offered("help", "tie")) == ["tiers"]
    assert words_of(offered("help", "-")) == ["--all", "--man"]
    assert words_of(offered("help", "--man", "lis")) == ["list"]
    assert words_of(offered("nonsense", "")) == []
    assert words_of(offered("--nonsense", "")) == []


def test_subcommands_and_options_are_those_of_the_parsers(offered: Offered) -> None:
    for name in sorted(set(COMMANDS) - {"help"}):
        parser = command_named(name)[1]
        inner = options.subcommands_of(parser)
        if inner:
            assert set(words_of(offered(name, ""))) == set(inner)
            assert set(words_of(offered("help", name, ""))) == set(inner)
        parsers = [([word], each) for word, each in inner.items()]
        # Where a first word may be left out, the options are those of that word.
        if completed(command_named(name)[0], []) == []:
            parsers.append(([], parser))
        for words, each in parsers:
            known = {
                text
                for text, action in each._option_string_actions.items()
                if text.startswith("--") and action.help != argparse.SUPPRESS
            }
            assert set(words_of(offered(name, *words, "--"))) == known, (name, words)


def test_options_and_their_values(offered: Offered, folder: Path) -> None:
    assert offered("--f") == ["words", "--format\tthe output format (default: text)"]
    assert offered("completion", "-q") == ["words", "-q\tprint only errors and results"]
    every = words_of(offered("config", "list", "-"))
    assert every[:2] == ["--changed", "--help"]
    assert "-C" in every
    assert offered("install", "--host", "codex,g") == ["words", "codex,gemini", "codex,goose"]
    # One that was given is not offered again, unless it may be given several times.
    given = words_of(offered("config", "list", "--changed", "--set", "gc.keep_days=1", "--"))
    assert given == [word for word in every if word not in ("--changed", "-C")]
    assert words_of(offered("config", "get", "--", "--f")) == []
    assert offered("--format", "") == ["words", "text", "json", "markdown"]
    assert offered("list", "--format=j") == ["words", "--format=json"]
    assert offered("completion", "") == ["words", *SHELLS]
    assert offered("list", "--type", "") == ["words", *NODE_TYPES]
    assert offered("add", "--type", "De") == ["words", "decision"]
    assert offered("edges", "--type", "") == ["words", *EDGE_TYPES]
    assert offered("edges", "--type", "der") == ["words", "DERIVED_FROM"]
    assert offered("edges", "--direction", "") == ["words", "in", "out", "both"]
    assert words_of(offered("config", "get", "")) == list(SETTINGS)
    assert offered("config", "explain", "gc.k") == [
        "words",
        "gc.keep_days\tDays to keep unreferenced objects.",
    ]
    assert offered("-C", "") == ["folders"]
    assert offered("--db", "") == ["files"]
    assert offered("--db=") == ["files"]
    assert offered("add", "file", "") == offered("add", "file", "a", "b") == ["files"]
    for words in (["relate"], ["relate", "a.py", "mentions"], ["timeline"], ["code", "callers"]):
        assert offered(*words, "") == ["files"]
    assert offered("sync", "add", "home", "") == ["folders"]
    # Only ids, tags, tasks and views are read from stores.
    for words in (["undo"], ["restore"], ["why"], ["sessions", "show"], ["commit", "--session"]):
        assert offered(*words, "") == ["words"]
    assert offered("list", "--quiet=") == offered("list", "--nonsense=") == ["words"]


def test_ids_are_the_newest_first(offered: Offered, memory: Store) -> None:
    for number in range(60):
        memory.node(f"01M7ESYZ{number:02}AB", f"Number {number}\nand more")
    lines = offered("show", "")
    assert len(lines) == 51
    assert lines[1] == "01M7ESYZ59AB\tfact: Number 59 and more"
    assert lines[50] == "01M7ESYZ10AB\tfact: Number 10 and more"
    assert offered("show", "01m7esyz07") == ["words", "01M7ESYZ07AB\tfact: Number 7 and more"]
    whole = f"{'01M7ESYZ07AB':0<26}"
    assert words_of(offered("show", "01M7ESYZ07AB00")) == [whole]
    assert offered("show", "Z") == ["words"]
    # Those that begin alike are longer.
    memory.node("01N7ESYZ00AB1", "one", node_type="open-question")
    memory.node("01N7ESYZ00AB2", "x" * 100)
    assert offered("show", "01N") == [
        "words",
        f"01N7ESYZ00AB2\tfact: {'x' * 53}…",
        "01N7ESYZ00AB1\topen-question: one",
    ]


def test_tags_views_and_tasks(offered: Offered, memory: Store) -> None:
    memory.node("01A", "a", "project:shop", "tier:working", "task:old-one")
    memory.node("01B", "b", "project:shop", "task:oauth")
    memory.node("01C", "Implement\nOAuth", "task:oauth", "project:shop", node_type="task")
    memory.view("week", "created:>1w")
    # The most used first.
    assert offered("list", "--tag", "")[1:4] == [
        *("project:shop\t3 nodes", "task:oauth\t2 nodes", "task:old-one\t1 node")
    ]
    assert set(words_of(offered("list", "--tag", ""))) > set(TIERS)
    assert offered("list", "--tag=pro") == ["words", "--tag=project:shop\t3 nodes"]
    assert offered("tag", "01A", "pro") == ["words", "project:shop\t3 nodes"]
    assert offered("view", "render", "w") == ["words", "week\tcreated:>1w"]
    assert words_of(offered("view", "render", "")) == ["default", "week"]
    assert offered("task", "start", "") == ["words", "oauth\tImplement OAuth", "old-one"]
    assert offered("task", "end", "ol") == ["words", "old-one"]


def test_the_store_that_is_named_on_the_line(offered: Offered, memory: Store, folder: Path) -> None:
    memory.node("01M7ESYZ00AB", "here")
    (folder / "sub").mkdir()
    other = Store(folder / "sub" / "other.db")
    other.node("01M7ESYZ99AB", "there")
    there = ["words", "01M7ESYZ99AB\tfact: there"]
    assert offered("show", "") == ["words", "01M7ESYZ00AB\tfact: here"]
    assert offered("edges", "--db", "sub/other.db", "") == there
    assert offered("--db=sub/other.db", "show", "") == there
    assert offered("-C", "sub", "--db", "other.db", "show", "") == there
    assert offered("-C", "~/.ctx", "--db", "store.db", "show", "") == offered("show", "")
    assert offered("--db", "postgresql://host/x", "show", "") == ["words"]
    assert offered("-C", "nowhere", "show", "") == ["words"]
    assert offered("--", "show", "") == offered("show", "")
    with closing(sqlite3.connect(memory.path, isolation_level=None)) as locked:
        locked.execute("PRAGMA locking_mode = EXCLUSIVE")
        locked.execute("BEGIN EXCLUSIVE")
        locked.execute("UPDATE nodes SET content = 'x'")
        assert offered("show", "")[0] == "words"


def test_a_store_that_cannot_be_read(offered: Offered, surroundings: Path, folder: Path) -> None:
    path = surroundings / ".ctx" / "store.db"
    for state in ("missing", "empty", "damaged", "foreign", "older", "folder"):
        if state != "missing":
            path.unlink(missing_ok=True)
            Store(path).node("01M7ESYZ00AB", "here")
            for journal in path.parent.glob("store.db-*"):
                journal.unlink()
        match state:
            case "empty":
                path.write_bytes(b"")
            case "damaged":
                path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)
            case "foreign" | "older":
                with closing(sqlite3.connect(path)) as connection:
                    connection.execute("PRAGMA application_id = 7")
                    connection.execute("DELETE FROM schema_version")
                    if state == "older":
                        connection.execute(f"PRAGMA application_id = {user_store.APPLICATION_ID}")
                    connection.commit()
            case "folder":
                path.unlink()
                path.mkdir()
        before = path.read_bytes() if path.is_file() else None
        assert offered("show", "") == ["words"], state
        assert (path.read_bytes() if path.is_file() else None) == before
        # What SQLite itself leaves beside a store of ours is no harm.
        beside = [other.name for other in path.parent.glob("store.db?*")]
        assert not beside or state == "older"
        for journal in path.parent.glob("store.db-*"):
            journal.unlink()


@pytest.fixture
def project(ctx: Ctx, memory: Store, folder: Path) -> Path:
    """A project with staged nodes and documents, beside a user store."""
    memory.node("01A", "own", "tier:working", "own:one")
    assert ctx("init").code == 0
    return folder


def test_the_memory_of_a_project_comes_first(ctx: Ctx, offered: Offered, project: Path) -> None:
    told = ctx("add", "--type=fact", "--tag=area:net", "shared", "--format=json").json
    node_id = told["node"]["id"]
    both = ["words", f"{node_id[:12]}\tfact: shared", "01A000000000\tfact: own"]
    assert offered("show", "") == both
    tags = {f"{tag}\t1 node" for tag in ("area:net", "own:one", "tier:working")}
    assert tags < set(offered("list", "--tag", ""))
    assert offered("review", "--accept", node_id[:12]) == both[:2]
    assert not THIRD_PARTY & loaded_by("__complete", "fish", "ctx", "show", "")
    assert not THIRD_PARTY & loaded_by("__complete", "fish", "ctx", "list", "--tag", "")


def test_tasks_and_decisions_by_number(ctx: Ctx, offered: Offered, project: Path) -> None:
    assert ctx("add", "task", "Retry").code == 0
    assert ctx("add", "decision", "Use SQLite").code == 0
    for words in (["show"], ["task", "start"]):
        assert [line.partition(" ")[0] for line in offered(*words, "Task_")] == [
            "words",
            "task_0001\ttask:",
        ]
    assert words_of(offered("show", "d")) == ["decision_0001"]
    # Two of one number.
    tasks = project / ".ctx" / "narrative" / "tasks"
    for name in ("one", "two"):
        (tasks / f"task_0007-{name}.md").write_text(f"# {name}\n")
    assert ctx("list").code == 0
    assert sorted(words_of(offered("show", "task_0007"))) == ["task_0007-one", "task_0007-two"]
    assert ctx("show", "task_0007-one").code == 0


def test_completing_makes_no_index(ctx: Ctx, offered: Offered, project: Path) -> None:
    indexes = project / ".ctx" / "local" / "index"
    assert ctx("add", "--type=fact", "shared").code == 0
    (used,) = indexes.iterdir()
    # Other heads are checked out than when it was made.
    used.rename(indexes / ("0" * 32))
    assert len(offered("show", "")) == 3
    assert [path.name for path in indexes.iterdir()] == ["0" * 32]
    for content in (b"", b"rubbish", b"SQLite format 3\0" + bytes(100)):
        (indexes / ("0" * 32) / "store.db").write_bytes(content)
        assert words_of(offered("show", "")) == ["01A000000000"]
    shutil.rmtree(indexes)
    assert words_of(offered("show", "")) == ["01A000000000"]
    assert not indexes.exists()


def test_only_the_standard_library_is_loaded(memory: Store) -> None:
    for words in ([""], ["config", "get", ""]):
        assert not THIRD_PARTY & loaded_by("__complete", "fish", "ctx", *words)


def test_words_that_are_no_text(ctx: Ctx, memory: Store) -> None:
    memory.node("01A", "a", "tier:pinned")
    for words in (
        ["show", "\udcff"],
        ["list", "--tag", "\ud800"],
        ["\udcff"],
        ["-C", "\0", "gc", ""],
    ):
        ran = ctx("__complete", "zsh", "ctx", *words)
        assert (ran.code, ran.out, ran.err) == (0, "words\n", "")
    for wrong in ([], ["bash"], ["bash", "x"], ["fish"], ["fish", "ctx"]):
        assert ctx("__complete", *wrong) == (0, "", "")


# A stranger's text must reach no shell as anything but text. What has a control character in
# it is not offered at all.
HOSTILE = [
    "evil1-$(touch pwned)`touch pwned`; touch pwned # 'quoted' \"twice\"",
    "evil2-${HOME}*?[a-z]{a,b}~!x < > | & ( ) \\",
    "evil3-%F{red}%(!.a.b)\\n設計 ü",
]
UNSPEAKABLE = ["evil9-\n-x", "evil9-\x1b[2J", "evil9-\ttab", "evil9-\u202e"]


@pytest.fixture
def hostile(memory: Store) -> Store:
    memory.node("01M7ESYZ00AB", "$(touch pwned)\n`touch pwned` \x1b[2J %F{red}", *HOSTILE)
    for number, tag in enumerate(UNSPEAKABLE):
        memory.node(f"01M7ESYZ0{number}CD", "x", tag)
    memory.node("01M7ESYZ09CD", "x", "--help")
    return memory


def test_what_cannot_be_shown_is_not_offered(offered: Offered, hostile: Store) -> None:
    assert set(words_of(offered("list", "--tag", "evil"))) == set(HOSTILE)
    assert "--help" not in words_of(offered("list", "--tag", ""))
    assert offered("show", "01M7ESYZ00A")[1] == (
        "01M7ESYZ00AB\tfact: $(touch pwned) `touch pwned` \\x1b[2J %F{red}"
    )


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `ctx` that shells find."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "ctx").write_text(f'#!/bin/sh\nexec {sys.executable} -m ctx "$@"\n')
    (binaries / "ctx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")


def run_shell(*words: str) -> str:
    done = subprocess.run(
        [installed.program(words[0]), *words[1:]],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


def replies(line: str, comp_type: int = 9) -> list[str]:
    """What bash's function finds for a line whose end the cursor stands at."""
    driver = """
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=$2 COMP_WORDBREAKS=$3
_ctx ctx '' ''
((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
exit 0
"""
    text = script("bash") + driver
    out = run_shell("bash", "--norc", "-c", text, "bash", line, str(comp_type), BREAKS)
    return out.splitlines()


@pytest.mark.usefixtures("program")
def test_bash_calls_the_program(memory: Store) -> None:
    memory.node("01M7ESYZ00AB", "one", "tier:pinned")
    memory.node("01M7ESYZ01AB", "two", node_type="decision")
    assert replies('ctx list --tag "tier:pi') == ["tier:pinned"]
    assert replies("ctx list --tag tier\\:pi") == ["tier:pinned"]
    # When bash only lists, it lists descriptions too.
    assert replies("ctx show ", 63) == [
        "01M7ESYZ01AB  (decision: two)",
        "01M7ESYZ00AB  (fact: one)",
    ]
    assert replies("ctx show 01M7ESYZ00", 63) == ["01M7ESYZ00AB"]
    assert replies("ctx list > fi") == replies("ctx nonsense ") == []


SETUP = {
    "bash": """
PS1='READY> '
show() { printf '%s' "$READLINE_LINE" > typed.tmp; mv typed.tmp typed; READLINE_LINE=; }
bind -x '"\\C-xp": show'
bind 'set enable-bracketed-paste off'
""",
    "zsh": """
PS1='READY> '
autoload -Uz compinit; compinit -u -D
show() { print -rn -- "$BUFFER" > typed.tmp; command mv typed.tmp typed; BUFFER=; }
zle -N show; bindkey '^Xp' show
""",
}


class Screen:
    """An interactive shell at a terminal, as a person has it."""

    def __init__(self, shell: str, home: Path, setup: str | None = None) -> None:
        self.shell = shell
        start = home / (".zshrc" if shell == "zsh" else "start")
        start.write_text(setup or SETUP[shell] + script(shell))
        words = {"bash": ["--noprofile", "--rcfile", str(start), "-i"], "zsh": ["-d", "-i"]}
        self._controller, terminal = pty.openpty()
        self._process = subprocess.Popen(
            [installed.program(shell), *words[shell]],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb", "HOME": str(home), "ZDOTDIR": str(home)},
            start_new_session=True,
        )
        os.close(terminal)
        self.shown = b""
        self._wait(lambda: b"READY> " in self.shown)

    def after(self, keys: str) -> str:
        """The command line after these keys were pressed."""
        typed = Path("typed")
        typed.unlink(missing_ok=True)
        os.write(self._controller, keys.encode() + b"\x18p")
        self._wait(typed.exists)
        return typed.read_text()

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not done():
            assert time.monotonic() < deadline, self.shown.decode(errors="replace")
            if select.select([self._controller], [], [], 0.02)[0]:
                self.shown += os.read(self._controller, 65536)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._controller)


@pytest.fixture(params=["bash", "zsh"])
def screen(
    request: pytest.FixtureRequest, tmp_path: Path, folder: Path, program: None
) -> Iterator[Screen]:
    home = tmp_path / "shell"
    home.mkdir()
    opened = Screen(request.param, home)
    yield opened
    opened.close()


def test_tab_in_an_interactive_shell(hostile: Store, screen: Screen) -> None:
    hostile.node("01N7ESYZ00AB", "one", "tier:pinned", "a:b:c")
    Path("file name.txt").touch()
    Path("folder").mkdir()
    for typed, expected in (
        ("ctx list --inc", "ctx list --include-superseded "),
        ("ctx show 01n7", "ctx show 01N7ESYZ00AB "),
        ("ctx list --tag tier:pi", "ctx list --tag tier:pinned "),
        ("ctx list --tag=a:b", "ctx list --tag=a:b:c "),
        ("ctx -C fo", "ctx -C folder/"),
        ("ctx add file file", "ctx add file file\\ name.txt "),
        ("ctx list > file", "ctx list > file\\ name.txt "),
        ("ctx list nothing", "ctx list nothing"),
    ):
        assert screen.after(f"{typed}\t") == expected
    for tag in HOSTILE:
        line = screen.after(f"ctx list --tag {tag[:5]}\t")
        assert line.startswith("ctx list --tag evil")
        words = run_shell(screen.shell, "-c", f"printf '%s\\0' {line.removeprefix('ctx ')}")
        assert words.split("\0") == ["list", "--tag", tag, ""]
    screen.after("ctx show 01M\t\t\t")
    assert b"\x1b[2J" not in screen.shown
    assert not Path("pwned").exists()


@pytest.mark.usefixtures("program")
def test_as_a_function_of_zsh(memory: Store, tmp_path: Path) -> None:
    """In a folder of fpath, where zsh finds it by itself."""
    home = tmp_path / "shell"
    home.mkdir()
    (home / "_ctx").write_text(script("zsh"))
    screen = Screen("zsh", home, f"fpath=({home} $fpath)\n{SETUP['zsh']}")
    try:
        assert screen.after("ctx complet\t") == "ctx completion "
        assert screen.after("ctx completion z\t") == "ctx completion zsh "
    finally:
        screen.close()


def fish(line: str, *flags: str) -> list[str]:
    """What fish offers for a line."""
    text = f"{script('fish')}\ncomplete {' '.join(flags)} -C $argv[1]"
    return run_shell("fish", "--no-config", "-c", text, line).splitlines()


@pytest.mark.usefixtures("program")
def test_fish(hostile: Store) -> None:
    hostile.node("01N7ESYZ00AB", "one", "tier:pinned")
    hostile.node("01N7ESYZ01AB", "two", node_type="decision")
    Path("file name.txt").touch()
    Path("folder").mkdir()
    assert fish("ctx complet") == [f"completion\t{COMMANDS['completion']}"]
    assert fish("ctx show 01n7") == ["01N7ESYZ01AB\tdecision: two", "01N7ESYZ00AB\tfact: one"]
    assert fish('ctx list --tag "tier:pi') == ["tier:pinned\t1 node"]
    assert fish("ctx list --tag=tier:pi") == ["--tag=tier:pinned\t1 node"]
    assert [line.split("\t")[0] for line in fish("ctx add file f")] == ["file name.txt", "folder/"]
    assert [line.split("\t")[0] for line in fish("ctx -C f")] == ["folder/"]
    assert fish("ctx list nothing") == []
    for tag in HOSTILE:
        (line,) = fish(f"ctx list --tag {tag[:5]}", "--escape")
        inserted = line.partition("\t")[0]
        assert run_shell("fish", "--no-config", "-c", f"printf '%s' {inserted}") == tag
    assert not Path("pwned").exists()


# Everything that a value may hold: text without control characters.
VALUES = st.text(
    st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")), min_size=1
).filter(str.isprintable)


@settings(deadline=None)
@given(VALUES, st.sampled_from(["", "'", '"']), st.integers(0, 5))
def test_a_word_that_is_put_in_is_read_back(value: str, quote: str, length: int) -> None:
    before = "".join(f"\\{c}" for c in value[:length]) if not quote else ""
    typed = split(f"ctx list {quote}{before}", BREAKS)
    assert typed.words == ["ctx", "list"]
    inserted = insertion(value, typed)
    if inserted is None:
        assert quote
        assert {"!", quote} & set(value)
        return
    line = f"ctx list {quote}{inserted}{quote} "
    assert split(line, BREAKS) == TypedLine(["ctx", "list", value], "", "", 0, False)


@settings(max_examples=effort.times(25), deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=30))
def test_bash_reads_the_same_words(values: list[str]) -> None:
    line = "ctx "
    expected = []
    for quote in ("", "'", '"'):
        for value in values:
            inserted = insertion(value, split(f"ctx {quote}", BREAKS))
            if inserted is not None:
                line += f"{quote}{inserted}{quote} "
                expected.append(value)
    assert split(line, BREAKS).words == ["ctx", *expected]
    read = run_shell("bash", "--norc", "-c", f"ctx() {{ printf '%s\\0' \"$@\"; }}\n{line}")
    assert read.split("\0")[:-1] == expected


@settings(deadline=None)
@given(st.text(st.sampled_from("ab:=\\'\" ><")))
def test_any_line_can_be_read(line: str) -> None:
    found = split(line, BREAKS)
    assert 0 <= found.kept <= len(found.current)


def test_lines_as_bash_reads_them() -> None:
    for line, expected in {
        "ctx": TypedLine([], "ctx", "", 0, False),
        "ctx ": TypedLine(["ctx"], "", "", 0, False),
        "ctx a\\ b:c": TypedLine(["ctx"], "a b:c", "", 4, False),
        "ctx --tag='x y": TypedLine(["ctx"], "--tag=x y", "'", 6, False),
        'ctx "a\\"b\\c': TypedLine(["ctx"], 'a"b\\c', '"', 0, False),
        "ctx '' x": TypedLine(["ctx", ""], "x", "", 0, False),
        "ctx list >out.txt --t": TypedLine(["ctx", "list"], "--t", "", 0, False),
        "ctx list >> ou": TypedLine(["ctx", "list"], "ou", "", 0, True),
        "ctx a\\": TypedLine(["ctx"], "a", "", 0, False),
    }.items():
        assert split(line, BREAKS) == expected, line


def test_the_scripts_are_printed_as_they_are(ctx: Ctx, folder: Path) -> None:
    for shell in SHELLS:
        assert ctx("completion", shell) == (0, script(shell), "")
    answer = ctx("completion", "fish", "--format", "json").json
    assert answer == {"shell": "fish", "script": script("fish")}
    assert ctx("completion", "tcsh").code == 2
