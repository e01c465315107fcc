"""`ctx stage`"""

import argparse
from collections.abc import Sequence

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli import commit as commit_command
from ctx.cli import options as shared
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, Table, age_text, count
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.objects.refs import damaged_name
from ctx.operations import stage
from ctx.operations.recover import StageRecoverResult, recover, recover_given_up
from ctx.operations.stage import (
    StageAbortCommitResult,
    StageAbortResult,
    StageFlushResult,
    StageStartResult,
    StageStatus,
    give_up_commit,
)
from ctx.operations.status import where_parked
from ctx.project.parked_sessions import ParkedSession
from ctx.project.recover_commits import RecoveredCommit
from ctx.project.staging_chains import ABORTED, ACTIVE, DAMAGED, PARKED, STALE, Chain

EXAMPLES = """
ctx stage start "Fix timeout handling"       a session of its own for a task
ctx stage                                    what is staged, by session
ctx stage compact -m "Timeouts are fixed"    commit it, and end the session
"""

ALONE = "status"

START_EXAMPLES = """
ctx stage start "Fix timeout handling"       commands use it until it is compacted
ctx stage start --session s-42 "Timeouts"    with a name, or continue it
"""

ABORT_EXAMPLES = """
ctx stage abort --reason "Changed approach"   hide what the session has staged
ctx stage abort --session s-42 --dry-run      what that would be
ctx stage abort --commit 3f9a1c               drop a commit that git removed
"""

COMPACT_EXAMPLES = """
ctx stage compact                         with a generated message
ctx stage compact -m "Timeouts are fixed"
ctx stage compact --session s-42          what another session has staged
"""

RECOVER_EXAMPLES = """
ctx stage recover                         check every session, and repair damaged ones
ctx stage recover --dry-run               only look
ctx stage recover timeouts-0f3a9c         restore an aborted session
ctx stage recover --commit 3f9a1c         a commit that was aborted
"""

_MOST_TEXTS = 20
_NEXT = {
    STALE: "`ctx stage compact --session {0}` commits it",
    ABORTED: "`ctx stage recover {0}` restores it",
    DAMAGED: "`ctx stage recover {0}` saves the undamaged part",
}


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    begin = shared.add_subcommand(group, "start", "start a session for a task", START_EXAMPLES)
    task = begin.add_argument("task", nargs="+", metavar="TASK", help="its name, its tag or its id")
    shared.complete_with(task, "task")
    begin.add_argument(
        "--session", metavar="ID", help="its name (default: made from that of the task)"
    )
    flush = shared.add_subcommand(
        group,
        "flush",
        "stage changed narrative documents",
        "ctx stage flush    protects them from `git clean`",
    )
    shared.session_option(flush)
    compact = shared.add_subcommand(
        group, "compact", "turn a session's staging into a commit", COMPACT_EXAMPLES
    )
    compact.add_argument(
        "-m", "--message", help="what the commit is about (default: what is in it)"
    )
    shared.session_option(compact)
    abort = shared.add_subcommand(group, "abort", "hide what a session has staged", ABORT_EXAMPLES)
    abort.add_argument("--reason", metavar="TEXT", help="the reason")
    abort.add_argument(
        "--commit", metavar="ID", help="a commit that git removed, or that is parked"
    )
    arguments.dry_run(abort)
    shared.session_option(abort)
    shared.add_subcommand(group, "status", "show what is staged, by session", "ctx stage status")
    mend = shared.add_subcommand(
        group, "recover", "repair damaged sessions, or restore an aborted one", RECOVER_EXAMPLES
    )
    mend.add_argument(
        "name", nargs="?", metavar="SESSION", help="only this session, even if it was aborted"
    )
    mend.add_argument("--commit", metavar="ID", help="a commit that was aborted")
    shared.flag(mend, "--documents", "also restore flushed documents that are missing")
    arguments.dry_run(mend)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    match options.subcommand:
        case "start":
            _start(options, settings, output)
        case "flush":
            flushed = stage.flush(open_workspace(settings, output))
            output.show(flushed, render_flushed)
            for secret in flushed.secrets:
                where = f"{secret.where}, line {secret.line}"
                output.warn(f"{where}: secret removed ({secret.rule}).")
            for path, reason in flushed.skipped:
                output.warn(f"narrative/{path} not staged: {reason}.")
        case "compact":
            made = stage.compact(open_workspace(settings, output), options.message)
            output.show(made, commit_command.render)
            commit_command.print_details(made, output)
        case "abort" if options.commit:
            workspace = opening.open_for_repair(settings, output)
            output.show(
                give_up_commit(workspace, options.commit, dry_run=options.dry_run), render_given_up
            )
        case "abort":
            with opening.open_for_staging(settings, output) as memory:
                aborted = stage.abort(memory, options.reason, dry_run=options.dry_run)
                output.show(aborted, render_aborted)
        case "status":
            workspace = open_workspace(settings, output)
            output.show(stage.status(workspace, settings.user_store.home), render_status)
        case _:
            workspace = opening.open_for_repair(settings, output)
            if options.commit:
                result = recover_given_up(workspace, options.commit, dry_run=options.dry_run)
            else:
                result = recover(
                    workspace, options.name, documents=options.documents, dry_run=options.dry_run
                )
            output.show(result, render_recovered)


def _start(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    task = " ".join(options.task)
    # Several agents may work here, each in its own session: they do not affect each other.
    is_given = not options.session and settings.given_session is not None
    if not options.session and not is_given:
        settings = settings._replace(session=stage.new_session(task))
    with opening.open_for_staging(settings, output) as memory:
        begin = stage.start_given if is_given else stage.start
        begun = begin(memory, task)
        output.show(begun, render_begun)
        if begun.compacted:
            opening.note_compaction(begun.compacted, output)
        session = settings.given_session
        if session not in (None, begun.session):
            output.warn(f"Commands here still use session {session}, which the environment sets.")


def render_begun(begun: StageStartResult) -> list[Block]:
    verb = "Resumed" if begun.resumed else "Began"
    blocks: list[Block] = [
        Line(f"{verb} session {begun.session}: {begun.task.name} (task:{begun.task.task})")
    ]
    blocks.append(Line("The work of agents in this folder is staged, too, from now on."))
    if begun.left:
        blocks.append(Line(f"Session {begun.left} keeps what it has staged."))
    return blocks


def render_flushed(flushed: StageFlushResult) -> list[Block]:
    steps = count(flushed.steps, "step")
    if flushed.step is None:
        return [Line(f"Nothing to flush: session {flushed.session} has {steps}, all durable.")]
    kept = count(len(flushed.documents), "narrative document")
    return [
        Line(f"Kept {kept} with session {flushed.session} ({steps}):"),
        Table(("path",), [(path,) for path in flushed.documents]),
    ]


def render_aborted(aborted: StageAbortResult) -> list[Block]:
    parts = [count(aborted.steps, "step"), count(aborted.records, "record")]
    if aborted.files:
        parts.append(count(aborted.files, "file"))
    what = f"session {aborted.session} ({', '.join(parts)})"
    if aborted.aborted is None:
        return [Line(f"Would abort {what}.")]
    blocks: list[Block] = [
        Line(f"Aborted {what}."),
        Line(
            f"It is kept for {count(aborted.keep_days, 'day')}: ctx stage recover {aborted.aborted}"
        ),
    ]
    if aborted.removed:
        named = ", ".join(f"narrative/{path}" for path in aborted.removed)
        blocks.append(Line(f"Files that it created are kept with it: {named}"))
    if aborted.documents:
        named = ", ".join(f"narrative/{path}" for path in aborted.documents)
        blocks.append(Line(f"Files that it created stay: {named}"))
    if aborted.task_left:
        blocks.append(
            Line(
                f"task:{aborted.task_left} started in this session and is no longer"
                " the current task."
            )
        )
    return blocks


def render_given_up(result: StageAbortCommitResult) -> list[Block]:
    if result.dry_run:
        return [Line(f"Would drop commit {short(result.commit)}.")]
    return [
        Line(f"Dropped commit {short(result.commit)}."),
        Line(
            f"It is kept for {count(result.keep_days, 'day')}: "
            f"ctx stage recover --commit {short(result.commit)}"
        ),
    ]


def render_status(status: StageStatus) -> list[Block]:
    blocks: list[Block] = [Line(f"Current session: {status.joined}.")]
    if not status.chains:
        return [*blocks, Line("Nothing staged.")]
    rows = [_row(chain) for chain in status.chains]
    headings = ("session", "state", "steps", "records", "files", "tokens", "last", "task")
    kinds = ("", "", "number", "number", "number", "number", "dim", "text")
    blocks.append(Table(headings, rows, kinds))
    return [*blocks, *_next_steps(status.chains)]


def _row(chain: Chain) -> tuple[str, ...]:
    ago = age_text(chain.last, clock.now_ms()) if chain.last else ""
    numbers = (chain.steps, chain.records, chain.files, chain.tokens)
    return (chain.session, chain.state, *(f"{n:,}" for n in numbers), ago, chain.task or "")


def _next_steps(chains: Sequence[Chain]) -> list[Block]:
    """What to do about chains that need a decision."""
    lines: list[Block] = []
    for chain in chains:
        if chain.state == ACTIVE:
            continue
        why = f" ({chain.reason})" if chain.reason else ""
        if chain.state == PARKED:
            hint = where_parked(chain.branch)
        else:
            hint = _NEXT[chain.state].format(chain.session)
        if damaged_name(chain.session):
            hint = "nothing of it could be saved, and `ctx gc` will remove it"
        lines.append(Line(f"{chain.session} is {chain.state}{why}: {hint}."))
    return lines


def _recovered_commit(commit: RecoveredCommit, would: str) -> list[Block]:
    name = f'{short(commit.commit)} "{commit.message.partition(chr(10))[0]}"'
    if commit.problem:
        return [Line(f"Commit {name} cannot be restored: {commit.problem.rstrip('.')}.")]
    more = f", with {count(commit.commits - 1, 'commit')} before it" if commit.commits > 1 else ""
    blocks: list[Block] = [Line(f"Commit {name} {would} a head again{more}. Then: git add .ctx")]
    if commit.documents:
        named = ", ".join(f"narrative/{path}" for path in commit.documents)
        blocks.append(Line(f"  Documents: {named}"))
    return [*blocks, *_texts(commit.texts)]


def _texts(texts: Sequence[str]) -> list[Block]:
    lines: list[Block] = [Line(f"  + {text.partition(chr(10))[0]}") for text in texts[:_MOST_TEXTS]]
    more = len(texts) - _MOST_TEXTS
    return [*lines, Line(f"  and {more:,} more (--format json)")] if more > 0 else lines


def _parked(session: ParkedSession, would: str) -> list[Block]:
    where = where_parked(session.branch)
    if session.branch is None:
        where = f"it {would} taken up here"
    return [Line(f"Session {session.session} was parked: {where}."), *_texts(session.texts)]


def _dropped(commit: RecoveredCommit) -> list[Block]:
    name = f'{short(commit.commit)} "{commit.message.partition(chr(10))[0]}"'
    step = f"`ctx stage recover --commit {short(commit.commit)}` restores it"
    return [Line(f"No branch has commit {name}: {step}."), *_texts(commit.texts)]


def render_recovered(result: StageRecoverResult) -> list[Block]:
    would = "would be" if result.dry_run else "is"
    blocks: list[Block] = [
        Line(f"Staged work of the removed working tree {name} {would} here.")
        for name in result.worktrees
    ]
    blocks += _texts(result.worktree_texts)
    for commit in result.commits:
        blocks += _recovered_commit(commit, would)
    for session in result.parked:
        blocks += _parked(session, would)
    for commit in result.dropped:
        blocks += _dropped(commit)
    for each in result.mended:
        if each.steps:
            saved = f"{count(each.steps, 'step')} {'would be' if result.dry_run else 'were'} saved"
            blocks.append(Line(f"Session {each.session} was damaged: {saved}."))
        else:
            blocks.append(Line(f"Session {each.session} was damaged: nothing could be saved."))
        blocks += [Line(f"  lost: {lost}") for lost in each.lost]
        if each.set_aside:
            blocks.append(Line(f"  What it pointed to is kept as {each.set_aside}."))
    if result.restored:
        blocks.append(Line(f"The aborted work {would} session {result.restored} again."))
    if result.documents:
        verb = "Would restore" if result.dry_run else "Restored"
        blocks.append(
            Line(f"{verb}: {', '.join(f'narrative/{path}' for path in result.documents)}")
        )
    if result.stage_reset:
        blocks.append(Line(f"The current session has nothing staged: it {would} closed."))
    if result.missing:
        verb = (
            "Restored"
            if result.rewritten
            else "Flushed documents that are missing (--documents restores them)"
        )
        blocks.append(Line(f"{verb}: {', '.join(f'narrative/{path}' for path in result.missing)}"))
    return blocks or [Line(f"Nothing to repair in {count(result.checked, 'session')}.")]
