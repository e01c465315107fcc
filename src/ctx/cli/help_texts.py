"""What `ctx`, `ctx --help`, `ctx help` and `ctx help TOPIC` show, and the parsers behind them.

A topic is one screen of at most 80 columns. The lines after its `examples:` are commands that run
as they are, in a project with a store. `01M7ESYZ1SB4` stands for the id of a node.
`docs/reference/topics.md` has the same texts.
"""

import argparse
from collections.abc import Mapping

from ctx.cli import commands
from ctx.cli.options import Help, Parser, flag, global_options, nearest, subcommands_of
from ctx.errors import UsageError

_ABOUT = "Durable, inspectable memory for coding agents."

TOPICS = {
    "tiers": (
        "which nodes agents are shown, and when",
        """
A tier is a tag that decides when agents are given a node.

  tier:pinned        in every context, before everything else; whole and outside
                     the budget at the start, up to 2,000 tokens for all of them
  tier:reference     in contexts, as far as half of the budget allows
  tier:working       likewise, while its task is the current one
  tier:off-context   only found by search
  (no tier)          with a prompt or an edit that they are about; what was
                     captured from sessions also at the start, while it is new

Text that you type with `ctx add` (as an argument, in the editor, on a terminal)
gets tier:working during a task, else tier:reference; with --no-tier it gets
none. A task gets its tier when it is started. Text from a pipe, an agent or an
import gets no tier by itself. A node has one tier, and may be pinned as well.
Agents cannot pin: they propose it, and you decide with `ctx review`.

examples:
  ctx add "Deploys run on Mondays"
  ctx add "The old server was called zeus" --no-tier
  ctx pin 01M7ESYZ1SB4
  ctx unpin 01M7ESYZ1SB4
  ctx tag 01M7ESYZ1SB4 tier:working
  ctx list --tag=tier:pinned
  ctx compose --budget=2000
""",
    ),
    "scopes": (
        "the user store, project stores, and which one a command uses",
        """
Memory is stored in two places, and commands read both together.

  user store      ~/.ctx, for you on this machine. It works without a project
                  store: nodes then have a tag such as project:shop.
  project store   .ctx in the repository, created by `ctx init`. It is in git:
                  clones contain it, and each branch has its own version.

Inside a project, lists and searches show its nodes and those of no project, and
outside the whole store. `project:NAME` in a query or --tag names another,
--all-projects shows all, --project only the one you are in. --user is your own
store. `export`, `status`, `tags` and `sync` cover everything.

In a project with a store, `ctx add` writes to the project store. Captured
sessions stay in the user store, except after `ctx stage start` or with
`share.sessions`. `ctx update`, `tag` and `delete` change a node where it is. An
edge may point from a node in your store to one in the project, not back.

examples:
  ctx add --type=fact "The API speaks OAuth 2.0"
  ctx add --type=fact --user "I prefer small commits"
  ctx list --user
  ctx list --project
  ctx move 01M7ESYZ1SB4 --user
  ctx status
""",
    ),
    "sessions": (
        "what ctx records while agents work, and how to control it",
        """
A session is one conversation with a coding agent. Hooks record what happens,
and a background process, the worker, turns it into memory:

  events        what the hooks report: prompts, tool calls, answers
  steps         the events that matter, such as an edit or a failed test
  observations  results of the session: decisions, fixes, discoveries
  summary       the request, what was done, what is left
  learnings     what several sessions show

No model is needed. Secrets are removed before anything is stored, and text
between <private> and </private> is not stored. Sessions stay on this machine,
unless you set `share.sessions` or run `ctx stage start`.

examples:
  ctx sessions list --all
  ctx learnings list
  ctx context --explain
  ctx pause --for 2h
  ctx resume
  ctx worker status
""",
    ),
    "packs": (
        "what to read for a task, within a token budget",
        """
`ctx pack "TASK"` builds a pack: the parts of files, the decisions and the past
failures that are relevant to a task, within a token budget. `ctx query` with
words does the same.

ctx ranks files by the words in them, their paths and names, and by past
commits. It follows calls and imports to related code. It then selects the parts
with the most value per token. No model is used.

The output is an overview on a terminal, and JSON in a pipe. ctx stores a
receipt for every pack: `ctx why cli` shows why each part of your last one is
in it. If the confidence is low, name a file or a function in the task.

examples:
  ctx pack "Fix the timeout in Client.connect"
  ctx pack "Fix the timeout in Client.connect" --budget 4000 --explain
  ctx pack "timeout path:src" --format markdown
  ctx why cli
  ctx config get retrieval.default_budget
""",
    ),
    "filters": (
        "the query language: filters, operators and words",
        """
`ctx query`, `recall`, `forget`, `compose`, `export` and views take filters:

  type:fact            the type of a node
  tag:project:shop     a tag; tag:task:* for all tags that begin with task:
  created:>24h         in the last 24 hours; created:<1w before that
  updated:>2026-01-20  since a date
  tokens:<1000         the estimated size
  has:summary          also edges, tags, metadata, superseded
  from:ID  to:ID       nodes with an edge from that node, or to it
  session:ID           created or changed in a session
  project:shop         short for tag:project:shop
  path:src/net.py      about a file or a folder
  id:01M7              by the beginning of the id

Combine them with AND, OR, NOT and ( ). Filters side by side mean AND. With
words, `ctx query` builds a pack; with --as nodes it ranks nodes.

examples:
  ctx query "type:decision AND created:>30d"
  ctx query "(type:decision OR type:pattern) AND NOT has:summary"
  ctx query "type:decision refresh token" --as nodes
  ctx recall "tag:tier:pinned"
""",
    ),
    "trust": (
        "why ctx ignores the memory of a clone until you trust it",
        """
A project store comes with a clone, so somebody else may have written it. Until
you trust it, agents are told only that it exists, commands show nothing from
it, and its settings have no effect.

`ctx trust` shows how many nodes the store contains and who wrote them, and asks
for your decision. Trust belongs to this repository at this path. If the first
commits, the remote or the owner of the files change, the store is no longer
trusted. A store that you create with `ctx init` is trusted.

In a trusted project, agents get what was written here, what the branches of its
remote contain, and what was there when you trusted it. What else you check out,
such as a pull request of a fork, waits in `ctx review`.

Agents get text from files, tools and the web as quoted data. They cannot pin
nodes or write for all projects: they propose it, and you decide with
`ctx review`.

examples:
  ctx trust --yes
  ctx trust --list
  ctx trust --revoke
  ctx review
  ctx doctor
""",
    ),
}


def text_for(words: list[str], *, all_commands: bool) -> str:
    """The help of a command, a subcommand or a topic, or of ctx as a whole.

    `sessions` and `trust` are a command and a topic: the topic comes first.
    """
    if all_commands:
        return top_parser(commands.GROUPS).format_help()
    if not words or words == ["help"]:
        return overview(commands.EVERYDAY)
    name, *inner = words
    if not inner and name in TOPICS:
        topic = topic_text(name)
        if name not in commands.COMMANDS:
            return topic
        return f"{topic}\n{commands.command_named(name)[1].format_help()}"
    if name not in commands.COMMANDS:
        commands.refuse_unknown(name, also=TOPICS)
    command, parser = commands.command_named(name)
    words = commands.completed(command, [*inner, "--help"])
    inner = [word for word in words if not word.startswith("-")]
    for word in inner:
        known = subcommands_of(parser)
        if word not in known:
            raise UsageError(
                f"There is no command 'ctx {name} {word}'.",
                hint=nearest(word, known, f"ctx {name}"),
            )
        parser = known[word]
    return parser.format_help()


def topic_text(topic: str) -> str:
    return TOPICS[topic][1].lstrip("\n")


def overview(groups: Mapping[str, Mapping[str, str]]) -> str:
    """What `ctx` alone prints: the commands that most people need."""
    names = [name for group in groups.values() for name in group]
    first, second = max(map(len, groups)), max(map(len, names))
    lines = [_ABOUT, ""]
    for heading, group in groups.items():
        for number, (name, summary) in enumerate(group.items()):
            shown = "" if number else heading
            lines.append(f"{shown:<{first}}  {name:<{second}}  {summary}")
    lines += [
        "",
        "`ctx help COMMAND` shows options and examples, `ctx help --all` all commands.",
        "`ctx help TOPIC` explains tiers, scopes, sessions, packs, filters or trust.",
    ]
    return "\n".join(lines) + "\n"


def short_parser(groups: Mapping[str, Mapping[str, str]]) -> argparse.ArgumentParser:
    """What `ctx --help` describes: the overview, and the options of every command."""
    return _top_parser(overview(groups).rstrip(), None)


def top_parser(groups: Mapping[str, Mapping[str, str]]) -> argparse.ArgumentParser:
    """What `ctx help --all` describes: all commands."""
    width = max(len(name) for group in groups.values() for name in group)
    listing = ""
    for heading, group in groups.items():
        listing += f"\n{heading}:\n"
        listing += "".join(f"  {name:<{width}}  {summary}\n" for name, summary in group.items())
    epilog = (
        "examples:\n"
        '  ctx add "Deploys run on Mondays"\n'
        "  ctx search deploy              find it again\n"
        "  ctx compose                    a context for an agent\n"
        "  ctx init                       a project store, in git\n\n"
        "`ctx help COMMAND` shows the options and examples of a command.\n"
        "`ctx help TOPIC` explains tiers, scopes, sessions, packs, filters or trust.\n"
        "`ctx help --man COMMAND` prints a manual page."
    )
    return _top_parser(f"{_ABOUT}\n{listing.rstrip()}", epilog)


def _top_parser(description: str, epilog: str | None) -> argparse.ArgumentParser:
    parser = Parser(
        prog="ctx",
        usage="ctx [options] COMMAND ...",
        description=description,
        epilog=epilog,
        formatter_class=Help,
        parents=[global_options()],
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    return parser


def help_parser() -> argparse.ArgumentParser:
    """The parser of `ctx help`: the words of a command, with options between them."""
    parser = Parser(prog="ctx help", parents=[global_options()], add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*", metavar="COMMAND|TOPIC", help="what to explain")
    flag(parser, "--all", "all commands")
    flag(parser, "--man", "a manual page, for `man -l`")
    return parser
