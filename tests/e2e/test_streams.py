"""Every command with a full or closed stdout."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named
from tests import effort
from tests.conftest import Ctx, git
from tests.e2e.interrupted_commands import Done, Interrupter

# One run of each command; {A} and {B} are nodes. A new command is a new line.
RUNS = {
    "add node": "add --type=fact Words",
    "add file": "add file main.py",
    "add note": "add note Seen",
    "add task": "add task Mend",
    "add decision": "add decision Keep",
    "add command": "add command true --user",
    "add cargo": "add cargo",
    "add code": "add code",
    "add rust": "add rust",
    "show": "show {A}",
    "list": "list",
    "update": "update {A} --content=Other",
    "edit": "edit {A}",
    "restore": "restore --backup",
    "pin": "pin {A}",
    "unpin": "unpin {A}",
    "tag": "tag {A} x:y",
    "untag": "untag {A} a:b",
    "tags": "tags",
    "link": "link {A} {B} --type=RELATES_TO",
    "unlink": "unlink {A} {B}",
    "relate": "relate {A} MENTIONS main.py",
    "edges": "edges {A}",
    "task start": "task start something",
    "task end": "task end",
    "task current": "task current",
    "task list": "task list",
    "search": "search one",
    "pack": "pack one",
    "query": "query type:fact",
    "recall": "recall one",
    "trace": "trace {A}",
    "related": "related {A}",
    "timeline": "timeline {A}",
    "remember": "remember Three",
    "why": "why",
    "compose": "compose",
    "context": "context",
    "view create": "view create mine --query=type:fact",
    "view list": "view list",
    "view render": "view render default",
    "view update": "view update default --query=type:fact",
    "view delete": "view delete default",
    "summarize": "summarize {A} {B} --content=Short",
    "init": "init",
    "commit": "commit -m All",
    "stage start": "stage start something",
    "stage flush": "stage flush",
    "stage compact": "stage compact -m All",
    "stage status": "stage status",
    "stage recover": "stage recover",
    "log": "log",
    "diff": "diff",
    "review list": "review",
    "review accept": "review accept --all",
    "review reject": "review reject --all",
    "rebuild": "rebuild",
    "trust": "trust",
    "gc": "gc",
    "debug cat": "debug cat 0",
    "debug refs": "debug refs",
    "debug history": "debug history",
    "debug verify": "debug verify",
    "debug index": "debug index",
    "debug graph": "debug graph",
    "code outline": "code outline main.py",
    "code callers": "code callers main",
    "code callees": "code callees main",
    "code imports": "code imports main.py",
    "code cycles": "code cycles",
    "code packages": "code packages",
    "code changed": "code changed",
    "code history": "code history main.py",
    "code status": "code status",
    "code index": "code index",
    "sessions list": "sessions list",
    "sessions show": "sessions show x",
    "sessions replay": "sessions replay x",
    "sessions synthesise": "sessions synthesise x",
    "sessions delete": "sessions delete x --yes",
    "sessions rebuild": "sessions rebuild x --dry-run",
    "pause": "pause",
    "resume": "resume",
    "learnings list": "learnings list",
    "learnings add": "learnings add Words",
    "learnings confirm": "learnings confirm {A}",
    "learnings reject": "learnings reject {A}",
    "worker start": "worker start --set worker.idle_seconds=0",
    "worker stop": "worker stop",
    "worker status": "worker status",
    "worker logs": "worker logs",
    "worker run": "worker run --set worker.idle_seconds=0",
    "export": "export",
    "import": "import main.py",
    "ingest": "ingest main.py",
    "store check": "store check",
    "store rebuild": "store rebuild",
    "store backup": "store backup",
    "store restore": "store restore nowhere --yes",
    "store recover": "store recover --dry-run",
    "store copy": "store copy --to copy.db",
    "store path": "store path",
    "store status": "store",
    "sync add": "sync add home shared --plain",
    "sync run": "sync",
    "sync status": "sync status",
    "sync remove": "sync remove home",
    "llm": "llm --query why",
    "cost": "cost",
    "install": "install --dry-run",
    "uninstall": "uninstall --dry-run",
    "doctor": "doctor",
    "hook session-start": "hook session-start",
    "hook prompt-submit": "hook prompt-submit",
    "hook stop": "hook stop",
    "hook post-tool-use": "hook post-tool-use",
    "hook post-tool-use-failure": "hook post-tool-use-failure",
    "hook pre-compact": "hook pre-compact",
    "hook session-end": "hook session-end",
    "hook subagent-stop": "hook subagent-stop",
    "hook pre-edit": "hook pre-edit",
    "hook apply": "hook apply",
    "mcp": "mcp",
    "serve": "serve",
    "ui": "ui --no-open --db=other.db",
    "status": "status",
    "config get": "config get gc.keep_days",
    "config set": "config set gc.keep_days 3",
    "config unset": "config unset gc.keep_days",
    "config list": "config list",
    "config explain": "config explain gc.keep_days",
    "completion": "completion bash",
    "help": "help list",
    "--version": "--version",
    "no command": "",
    "a mistake": "frobnicate",
    "delete": "delete {A} --yes",
    "forget": "forget id:{A} --yes",
    "move": "move {A} --user",
    "undo": "undo",
    "scrub": "scrub nowhere --yes",
    "stage abort": "stage abort --yes",
    "what a shell asks": "__complete zsh ctx li",
}


def leaves(words: list[str]) -> Iterator[str]:
    """Every command below some words."""
    parser = command_named(words[0])[1]
    for word in words[1:]:
        parser = options.subcommands_of(parser)[word]
    below = options.subcommands_of(parser)
    if not below:
        yield " ".join(words)
    for word in below:
        yield from leaves([*words, word])


def test_every_command_has_a_run() -> None:
    known = {leaf for name in COMMANDS if name != "help" for leaf in leaves([name])}
    assert known <= RUNS.keys()


@pytest.fixture
def commands(repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The commands in a project with two nodes and a task."""
    (repo / "main.py").write_text("def main():\n    pass\n")
    git("add", "main.py")
    git("commit", "-qm", "Base")
    assert ctx("init").code == 0
    assert ctx("task", "start", "The cart").code == 0
    monkeypatch.setenv("EDITOR", "true")
    found = {
        name: ctx("add", "--type=fact", f"{name} one.", "--tag=a:b").out.split()[1]
        for name in ("A", "B")
    }
    return {name: line.format(**found).split() for name, line in RUNS.items()}


def check(ran: Done, name: str) -> None:
    assert ran.code in (0, 1, 2), f"{name}: {ran.code} {ran.err}"
    assert "Traceback" not in ran.err, f"{name}: {ran.err}"
    assert "Exception" not in ran.err, f"{name}: {ran.err}"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such file here")
def test_output_that_cannot_be_written_is_an_error(
    program: Interrupter, commands: dict[str, list[str]], repo: Path
) -> None:
    failed = 0
    tried = effort.share(list(commands.items()), 4)
    for name, words in tried:
        ran = program.run(words, repo, streams=("", "/dev/full", ""))
        check(ran, name)
        if name.startswith("hook ") and name != "hook apply":
            assert ran.code == 0, f"{name}: {ran.err}"
        elif "Cannot print the answer: No space left on device." in ran.err:
            assert (ran.code, "E014" in ran.err) == (1, True), f"{name}: {ran.err}"
            failed += 1
        else:
            assert not program.run(words, repo).out, f"{name}: {ran.err}"
    assert failed > 80 * len(tried) // len(commands)


@pytest.mark.parametrize(
    "streams",
    [("", "pipe", ""), ("closed", "closed", "")],
    ids=["closed pipe", "closed streams"],
)
def test_a_closed_pipe_ends_a_command_quietly(
    program: Interrupter,
    commands: dict[str, list[str]],
    repo: Path,
    streams: tuple[str, str, str],
) -> None:
    done = 0
    tried = effort.share(list(commands.items()), 4, 1 + streams.count("closed"))
    for name, words in tried:
        ran = program.run(words, repo, streams=streams)
        check(ran, name)
        done += ran.code == 0
    assert done > 90 * len(tried) // len(commands)
