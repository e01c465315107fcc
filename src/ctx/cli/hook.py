"""`ctx hook`"""

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ctx import interrupts
from ctx.agents.known_hosts import NAMES, hooks_of
from ctx.agents.runtime import hook
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, ReaderGone, VerbatimText, count
from ctx.cli.settings import Settings, variables
from ctx.errors import CtxError
from ctx.hook_files import hook_log
from ctx.hosts.host_registry import FIRST
from ctx.operations import apply, worker_round
from ctx.operations.apply import ApplyResult
from ctx.operations.worker_round import WorkerRounds
from ctx.workspace import Memory

EXAMPLES = """
ctx hook session-start < event.json          the context of a new session
ctx hook stop --response '<ctx:status/>'     run the commands of an answer
ctx hook session-start --host gemini         for an agent other than Claude Code
ctx hook apply                               process what hooks have left
"""


_EVENT_EXAMPLE = "ctx hook {word} < event.json"
_DOES = {
    "session-start": "print the context for an agent",
    "prompt-submit": "print pending results: recall, status, expanded nodes",
    "stop": "run the commands in the last answer",
    "post-tool-use": "record a tool call",
    "post-tool-use-failure": "record a failed tool call",
    "pre-compact": "save the state before a compaction",
    "session-end": "record the end of a session",
    "subagent-stop": "record the end of a subagent",
    "pre-edit": "print what memory knows about a file that is read or edited",
}


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    for word, does in _DOES.items():
        example = _EVENT_EXAMPLE.format(word=word)
        event = shared.add_subcommand(group, word, does, example)
        event.add_argument(
            "--host",
            choices=NAMES,
            default=FIRST,
            metavar="HOST",
            help=f"the program that runs the agent: {', '.join(NAMES)}",
        )
        if word == "stop":
            event.add_argument(
                "--response", metavar="TEXT", help="the answer, instead of the transcript's last"
            )
        if word == "session-start":
            event.add_argument(
                "--part", metavar="N", default="1", help="which part of a large context"
            )
    does = "run commands of agents, and process events"
    applying = shared.add_subcommand(group, "apply", does, "ctx hook apply")
    shared.flag(applying, "--quick", "answer as soon as the commands are done")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand == "apply":
        try:
            _apply(settings, output, quick=options.quick)
        except CtxError as error:
            # Nobody reads the output if a hook started this.
            hook_log.add(settings.user_store.home, "apply", str(error))
            raise
        return
    words: list[str] = []
    if getattr(options, "response", None) is not None:
        words = ["--response", options.response]
    elif getattr(options, "part", "1") != "1":
        words = ["--part", options.part]
    hooks = hooks_of(options.host)
    assert hooks is not None, "the parser accepts known hosts only"
    environment = {**variables(), "CTX_DB": settings.database}
    if getattr(options, "in_folder", None):
        environment |= dict.fromkeys(hooks.project_variables[:1], settings.folder)
    running = hook.Hook(options.subcommand, words, environment, hooks)
    output.result(hook.answer(running, lambda: hook.read_stdin(running)).decode())


def _apply(settings: Settings, output: Output, *, quick: bool) -> None:
    home = settings.user_store.home
    with opening.adding(settings, output) as memory:
        with apply.hold_spool(home) as held:
            if not held:
                output.show(
                    apply.NOTHING._replace(waiting=len(apply.pending_events(memory, home))), render
                )
                return
            done, more = _apply_spool(memory, home, output, quick=quick)
            interrupts.next_part()
        stops, refused = (*done.stops, *more.stops), (*done.refused, *more.refused)
        applied = more._replace(stops=stops, refused=refused)
        problems = worker_round.problems(applied)
        tending = WorkerRounds(home, _Guard(problems), catch_up=_catch_up)
        tending.remember(memory)
        tending.upkeep(memory)
    for each in problems:
        output.warn(each)
        hook_log.add(home, "apply", each)
    if not quick:
        output.show(applied, render)


def _apply_spool(
    memory: Memory, home: str, output: Output, *, quick: bool
) -> tuple[ApplyResult, ApplyResult]:
    """Run the commands of agents, then process the rest of the spool."""
    timeout_s = worker_round.transcript_timeout_s(memory)
    done = apply.commands(memory, home, timeout_s)
    if quick:
        # A hook waits only for this; it may have ended meanwhile.
        with suppress(ReaderGone):
            output.show(done, render)
            output.flush()
    interrupts.next_part()
    return done, apply.events(memory, home, timeout_s)


def _catch_up(memory: Memory) -> int:
    from ctx.operations import unreported_sessions

    return unreported_sessions.catch_up(memory)


class _Guard:
    """Report a problem in one part, and continue with the others."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (CtxError, OSError, sqlite3.Error) as error:
            self._problems.append(f"{doing}: {error}")


def render(applied: ApplyResult) -> list[Block]:
    blocks: list[Block] = [
        Line(
            f"{stop.session}: {count(stop.done, 'command')} done, {stop.failed:,} failed"
            + (f", {stop.repeated:,} done before" if stop.repeated else "")
        )
        for stop in applied.stops
    ]
    taken = f"{count(applied.events, 'event')} and {count(applied.receipts, 'receipt')} processed"
    blocks.append(Line(taken))
    if applied.waiting:
        what = count(applied.waiting, "event")
        blocks.append(VerbatimText(f"{what} left: another process is working on them.\n"))
    return blocks
