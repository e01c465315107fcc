"""Which commands there are, and where each is: one file, imported when the command is named."""

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
        "show": "show a node, with its edges and its history",
        "list": "list nodes, the newest first",
        "update": "change a node's content, type, summary or metadata",
        "edit": "change a node's content in your editor",
        "delete": "delete nodes",
        "forget": "find nodes by words or filters, and delete them",
        "restore": "bring deleted nodes back, or the whole store from a backup",
        "undo": "take back a change",
        "pin": "make nodes part of every context",
        "unpin": "take nodes' pins away",
        "tag": "give a node tags",
        "untag": "take tags from a node",
        "tags": "list tags",
        "link": "relate two nodes by an edge",
        "unlink": "remove edges between two nodes",
        "relate": "relate files, code, tasks and nodes by what they are called",
        "edges": "list a node's edges",
        "move": "bring nodes to the project's store, or to your own",
        "task": "start, end or show the current task",
    },
    "ask": {
        "search": "find nodes by words",
        "query": "what to read for a task, within a budget; or the nodes that filters match",
        "recall": "what memory, history and files have to say to a question, in short",
        "trace": "show what a node was made from",
        "related": "show what is near a node",
        "why": "show what an agent was given, at what cost, and why",
    },
    "compose": {
        "compose": "put the right nodes together, within a budget",
        "context": "show what a session that starts here would be given",
        "view": "named queries: create, list, render, update, delete",
        "summarize": "make one node out of several",
    },
    "project": {
        "init": "make a project store in this folder",
        "commit": "turn what is staged into a commit",
        "stage": "sessions and what is staged: start, flush, compact, abort, status, recover",
        "log": "show the commits and what each changed, newest first",
        "diff": "show how the memory of two commits differs",
        "review": "decide what agents propose, and what two branches changed at once",
        "rebuild": "make the index of the project anew",
        "trust": "trust a project store, so that agents are given what it holds",
        "scrub": "take a word or a secret out of everything that was stored",
        "gc": "delete objects that nothing refers to",
        "debug": "look inside: cat, refs, history, verify, index, graph",
    },
    "code": {
        "code": "what the code is made of: outline, callers, callees, imports, cycles, changed",
    },
    "sessions": {
        "sessions": "what agents have worked on: list, show, replay, delete",
        "pause": "take in nothing of what agents do, for a while",
        "resume": "take in what agents do again",
        "learnings": "what several sessions have shown: list, add, confirm, reject",
        "worker": "the process that makes memory of sessions: start, stop, status, logs",
    },
    "exchange": {
        "export": "write nodes, edges and views as JSON",
        "import": "read what ctx or another program has written",
        "ingest": "keep files as source nodes",
        "store": "look after the store's file: check, backup, restore, recover",
    },
    "models": {
        "llm": "ask a model about a pack, and keep what it answers",
        "cost": "what models were asked, and what that cost",
    },
    "setting up": {
        "install": "register hooks and the skill with Claude Code",
        "uninstall": "take hooks and skill out of Claude Code again",
        "doctor": "check that everything works, and say what to do",
        "hook": "what Claude Code calls: session-start, stop, …, and apply",
        "status": "how much there is in memory",
        "config": "read and change settings: get, set, unset, list, explain",
        "completion": "print the completion script for a shell",
        "help": "show help for a command or a topic",
    },
}
# What other programs call a command of ours.
_ELSEWHERE = {
    "find": "`ctx search`",
    "get": "`ctx show`",
    "ls": "`ctx list`",
    "new": "`ctx add`",
    "redo": "`ctx undo CHANGE`, which also takes back an undoing",
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
    # Python keeps the word `import` for itself.
    return import_module("ctx.cli.import_" if name == "import" else f"ctx.cli.{name}")
