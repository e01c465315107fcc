"""The commands and their modules. A module is imported when its command is named."""

import argparse
from functools import cache
from importlib import import_module
from types import ModuleType

from ctx.cli import options
from ctx.errors import UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

# What `ctx help --all` shows, under these headings.
GROUPS = {
    "nodes": {
        "add": "add a node, a note, a task, a decision, a command's output, or files",
        "remember": "add a node as an agent, or link nodes",
        "show": "show a node, its edges and its history",
        "list": "list nodes, newest first",
        "update": "change a node's content, type, summary or metadata",
        "edit": "change a node's content in your editor",
        "delete": "delete nodes",
        "forget": "search for nodes and delete them",
        "restore": "restore deleted nodes, or the store from a backup",
        "undo": "undo a change",
        "pin": "show nodes in every context",
        "unpin": "remove the pin of nodes",
        "tag": "add tags to a node",
        "untag": "remove tags from a node",
        "tags": "list tags",
        "link": "add an edge between two nodes",
        "unlink": "remove edges between two nodes",
        "relate": "add an edge between files, code, tasks or nodes, by name",
        "edges": "list a node's edges",
        "move": "move nodes between your store and the project's",
        "task": "start, end or show the current task",
    },
    "ask": {
        "search": "search nodes by words",
        "pack": "find what to read for a task, within a token budget",
        "query": "build a pack for a task, or list the nodes that match filters",
        "recall": "search memory, commits and files for a question",
        "trace": "show what a node was derived from",
        "related": "show the neighbours of a node",
        "timeline": "show what happened around a node, in a session or to a file",
        "why": "show what an agent was given, why, and how many tokens it took",
    },
    "compose": {
        "compose": "compose a context from nodes, within a token budget",
        "context": "show the context that a new session would get here",
        "view": "named queries: create, list, render, update, delete",
        "summarize": "add a summary of several nodes",
    },
    "project": {
        "init": "create a project store in this folder",
        "commit": "commit staged memory",
        "stage": "manage staged work: start, flush, compact, abort, status, recover",
        "log": "show commits and what each changed, newest first",
        "diff": "compare the memory of two commits",
        "review": "decide on proposals, conflicting changes, learnings, imports",
        "rebuild": "rebuild the index of the project",
        "trust": "trust a project store, so that agents are shown its memory",
        "scrub": "remove a word or a secret from everything stored",
        "gc": "delete objects that nothing refers to",
        "debug": "inspect the store: cat, refs, history, verify, index, graph",
    },
    "code": {
        "code": "query the code: outline, callers, callees, imports, cycles, changed",
    },
    "sessions": {
        "sessions": "inspect past sessions: list, show, replay, delete",
        "pause": "pause capture",
        "resume": "resume capture",
        "learnings": "manage learnings of sessions: list, add, confirm, reject",
        "worker": "manage the background process: start, stop, status, logs",
    },
    "exchange": {
        "export": "write nodes, edges and views as JSON",
        "import": "import memory from ctx or another program",
        "ingest": "add files as source nodes",
        "store": "maintain the store file: check, backup, restore, recover",
        "sync": "share your memory with your other machines: add, status, remove",
    },
    "models": {
        "llm": "ask a model about a pack, and keep the answer",
        "cost": "show requests to models and their cost",
    },
    "setting up": {
        "install": "register ctx with Claude Code and other agents",
        "uninstall": "remove ctx from Claude Code and other agents",
        "doctor": "check the installation, and suggest fixes",
        "ui": "open a page in the browser to look at memory",
        "serve": "serve that page in this terminal",
        "mcp": "serve memory to an agent over the Model Context Protocol",
        "hook": "run a hook of Claude Code: session-start, stop, …, apply",
        "status": "show the size and state of memory",
        "config": "read and change settings: get, set, unset, list, explain",
        "completion": "print the completion script for a shell",
        "help": "show help for a command or a topic",
    },
}
# What `ctx` alone shows: what most people need, grouped by what they do. It fits 24 lines.
EVERYDAY = {
    "everyday": {
        "add": 'add a fact; `add decision "…"`, `add task "…"` for others',
        "list": "list nodes, newest first",
        "show": "show a node, its edges and its history",
        "recall": "search memory, commits and files for a question",
        "pack": "find what to read for a task, within a token budget",
        "task": "start, end or list tasks",
        "undo": "undo a change",
    },
    "start": {
        "install": "register ctx with your agents; --git for a git hook",
        "init": "create a project store in this folder",
        "status": "show the state of memory, and what to do next",
        "doctor": "check the installation, and suggest fixes",
    },
    "team": {
        "commit": "commit staged memory",
        "review": "decide on proposals, conflicting changes, learnings, imports",
        "trust": "trust the memory that came with a clone",
    },
    "code": {"code": "query the code: outline, callers, imports, changed"},
    "sessions": {
        "sessions": "show what agents worked on",
        "context": "show what a session that starts here would get",
        "why": "show what an agent was given, and why",
    },
    "data": {"export": "write memory as JSON; `ctx import` reads it"},
}
# What other programs call these commands.
_ELSEWHERE = {
    "ask": "`ctx llm` or `ctx recall`",
    "backup": "`ctx store backup`",
    "blame": "`ctx show`, which shows the history of a node",
    "cat": "`ctx show`",
    "check": "`ctx doctor` or `ctx store check`",
    "decision": "`ctx add decision`",
    "fact": "`ctx add fact`",
    "find": "`ctx search`",
    "get": "`ctx show`",
    "grep": "`ctx search`",
    "history": "`ctx log`, `ctx undo --list` or `ctx show ID`",
    "ls": "`ctx list`",
    "mv": "`ctx move`",
    "new": "`ctx add`",
    "note": "`ctx add note`",
    "question": "`ctx add question`",
    "redo": "`ctx undo CHANGE`, which also redoes an undone change",
    "remove": "`ctx delete`",
    "rm": "`ctx delete`",
    "save": "`ctx add` or `ctx commit`",
    "settings": "`ctx config`",
    "setup": "`ctx install`",
    "start": "`ctx task start` or `ctx install`",
    "stop": "`ctx pause` or `ctx task end`",
    "supersede": "`ctx link NEW-ID OLD-ID --type=SUPERSEDES`",
    "version": "`ctx --version`",
}
_IN_GIT = ("branch", "checkout", "clone", "fetch", "merge", "pull", "push", "rebase", "switch")
"""What git does, also with the memory of a project."""

_FILES = {
    "edit": "update",
    "forget": "delete",
    "pack": "query",
    "resume": "pause",
    "ui": "serve",
    "unlink": "link",
    "unpin": "pin",
    "untag": "tag",
    # A keyword in Python.
    "import": "import_",
}
"""The commands whose file has another name."""

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


@cache
def command_named(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    if name not in COMMANDS or name == "help":
        refuse_unknown(name)
    module = module_of(name)
    return module, options.command_parser(name, COMMANDS[name], module)


def refuse_unknown(name: str, also: "Iterable[str]" = ()) -> "NoReturn":
    """Raise an error that suggests the nearest command, or one of the other words."""

    if meant := _ELSEWHERE.get(name):
        hint = f"Did you mean {meant}?"
    elif name in _IN_GIT:
        hint = f"The memory of a project is in git: `git {name}`."
    else:
        hint = options.nearest(name, [*COMMANDS, *also], "ctx help --all")
    what = "command or topic" if also else "command"
    raise UsageError(f"There is no {what} {name!r}.", hint=hint)


def module_of(name: str) -> ModuleType:
    """The file of a command."""
    return import_module(f"ctx.cli.{_FILES.get(name, name)}")


def completed(command: ModuleType, words: list[str]) -> list[str]:
    """The words after a command, with the first one that may be left out.

    `ALONE` is what a command alone means: `ctx stage` is `ctx stage status`.
    """
    if hasattr(command, "prepare"):
        prepared: list[str] = command.prepare(words)
        return prepared
    return options.with_subcommand(words, command.ALONE) if hasattr(command, "ALONE") else words
