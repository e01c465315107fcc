"""The commands and their modules. A module is imported when its command is named."""

import argparse
from importlib import import_module
from types import ModuleType

from ctx.cli import options
from ctx.errors import UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

# What `ctx --help` shows, under these headings.
GROUPS = {
    "nodes": {
        "add": "add a node, a note, a task, a decision, a command's output, or files",
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
        "query": "find what to read for a task, or list the nodes that match filters",
        "recall": "search memory, commits and files for a question",
        "trace": "show what a node was derived from",
        "related": "show the neighbours of a node",
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
        "review": "decide on proposals of agents and on conflicting changes",
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
    },
    "models": {
        "llm": "ask a model about a pack, and keep the answer",
        "cost": "show requests to models and their cost",
    },
    "setting up": {
        "install": "register hooks and the skill with Claude Code",
        "uninstall": "remove hooks and the skill from Claude Code",
        "doctor": "check the installation, and suggest fixes",
        "hook": "run a hook of Claude Code: session-start, stop, …, apply",
        "status": "show the size and state of memory",
        "config": "read and change settings: get, set, unset, list, explain",
        "completion": "print the completion script for a shell",
        "help": "show help for a command or a topic",
    },
}
# What other programs call these commands.
_ELSEWHERE = {
    "find": "`ctx search`",
    "get": "`ctx show`",
    "ls": "`ctx list`",
    "new": "`ctx add`",
    "redo": "`ctx undo CHANGE`, which also redoes an undone change",
    "remember": "`ctx add`",
    "remove": "`ctx delete`",
    "rm": "`ctx delete`",
    "supersede": "`ctx link NEW-ID OLD-ID --type=SUPERSEDES`",
}

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


def command_named(name: str) -> tuple[ModuleType, argparse.ArgumentParser]:
    if name not in COMMANDS or name == "help":
        refuse_unknown(name)
    module = module_of(name)
    return module, options.command_parser(name, COMMANDS[name], module)


def refuse_unknown(name: str, also: "Iterable[str]" = ()) -> "NoReturn":
    """Raise an error that suggests the nearest command, or one of the other words."""

    meant = _ELSEWHERE.get(name)
    hint = f"Did you mean {meant}?" if meant else options.nearest(name, [*COMMANDS, *also])
    what = "command or topic" if also else "command"
    raise UsageError(f"There is no {what} {name!r}.", hint=hint)


def module_of(name: str) -> ModuleType:
    """The file of a command."""
    # `import` is a keyword in Python.
    return import_module("ctx.cli.import_" if name == "import" else f"ctx.cli.{name}")
