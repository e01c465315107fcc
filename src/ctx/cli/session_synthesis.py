"""`ctx sessions synthesise` and `ctx sessions rebuild`: the memory of past sessions, made anew."""

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from ctx.cli import opening
from ctx.cli.output import Block, Line, Output, Table, count
from ctx.cli.settings import Settings, variables
from ctx.cli.terminal import cut
from ctx.config.resolve import survey
from ctx.errors import ModelFailure, UsageError

if TYPE_CHECKING:
    from ctx.operations.session_rebuild import RebuildSessionsResult
    from ctx.operations.session_synthesis import SynthesisResult

EXAMPLES = """
ctx sessions synthesise 5dd6 --dry-run    show the requests and their largest cost
ctx sessions synthesise 5dd6              send its passages to the model
ctx sessions synthesise 5dd6 --again      send them again
"""

REBUILD_EXAMPLES = """
ctx sessions rebuild --dry-run    show what would change in this project
ctx sessions rebuild              rebuild the sessions of this project
ctx sessions rebuild 5dd6 9a1c    rebuild two sessions
ctx sessions rebuild --all        rebuild the sessions of every project
ctx undo                          revert it
"""

_SHORT = 12
_LONGEST = 60


def synthesise(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.operations import model_questions
    from ctx.operations.session_synthesis import plan_synthesis, synthesise_now

    with opening.adding(settings, output) as memory:
        # Project settings do not apply.
        file = settings.user_store.config_file
        config = survey(file, None, settings.environment, settings.overrides)
        with model_questions.configured_model(config, variables(), settings.user_store) as asking:
            if asking is None:
                raise _no_model(config.choice("llm.backend"))
            voice = asking.voice()
            if options.dry_run:
                result = plan_synthesis(memory, options.named, asking, voice, again=options.again)
            else:
                with output.progress(f"Asking {asking.backend.where}") as tick:
                    result = synthesise_now(
                        memory, options.named, asking, voice, again=options.again, tick=tick
                    )
    output.show(result, render_synthesised)
    if result.problem:
        output.warn(result.problem)


def _no_model(backend: str) -> ModelFailure:
    if backend == "auto":
        return ModelFailure("No model found on this machine.")
    return ModelFailure(
        "No model is configured.",
        hint="To configure one: `ctx config set llm.backend llama_cpp`. See also `ctx doctor`.",
    )


def render_synthesised(result: "SynthesisResult") -> list[Block]:
    if not result.asked:
        # Why nothing was sent is reported separately.
        return [] if result.problem else [Line("Nothing to ask about this session.")]
    questions = count(len(result.asked), "question")
    would = "Would ask" if result.dry_run else "Asked"
    model = result.model if result.model not in ("", "default") else "the model"
    blocks: list[Block] = [Line(f"{would} {model} at {result.where} {questions}:")]
    rows = [
        (
            count(each.passages, "passage") if each.passages else "the whole session",
            f"at most {each.most_tokens:,} tokens"
            if result.dry_run
            else _question_outcome(result, number),
        )
        for number, each in enumerate(result.asked)
    ]
    blocks.append(Table(("about", "what"), rows))
    if result.dry_run:
        mended = f"{result.most_mended:,} if every answer needs a retry"
        blocks.append(Line(f"At most {result.most_tokens:,} tokens; {mended}."))
        blocks.append(Line("Failed requests that are repeated count again.", "dim"))
    else:
        counts = f"{count(result.new, 'node')} new, {result.changed:,} changed"
        blocks.append(Line(f"{counts}, {result.withdrawn:,} withdrawn."))
    left = f"{result.left_today:,} today, {result.left_in_session:,} for this session"
    blocks.append(Line(f"Tokens left: {left}.", "dim"))
    return blocks


def _question_outcome(result: "SynthesisResult", number: int) -> str:
    each = result.asked[number]
    if each.problem:
        return each.problem
    return f"{each.kept:,} kept" if each.kind == "excerpts" else "a summary"


def rebuild_sessions(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.named and options.all:
        raise UsageError("--all cannot be used with session ids.")
    from ctx.operations.session_rebuild import rebuild

    with (
        opening.adding(settings, output) as memory,
        output.progress("Rebuilding sessions") as tick,
    ):
        project = None if options.all else memory.project
        result = rebuild(memory, options.named, project, dry_run=options.dry_run, tick=tick)
    output.show(result, render_rebuilt)
    if result.backup:
        output.note(f"Backup: {result.backup}")
    if result.change:
        output.note(f"To revert it: `ctx undo {result.change}`")


def render_rebuilt(result: "RebuildSessionsResult") -> list[Block]:
    blocks: list[Block] = []
    if result.sessions:
        rows = [
            (
                each.id[:_SHORT],
                *(f"{number:,}" for number in (each.new, each.changed, each.withdrawn)),
                cut(each.what, _LONGEST),
            )
            for each in result.sessions
        ]
        headings = ("id", "new", "changed", "withdrawn", "what")
        blocks.append(Table(headings, rows, ("id", "number", "number", "number", "text")))
        verb = "Would rebuild" if result.dry_run else "Rebuilt"
        sessions = count(len(result.sessions), "session")
        counts = f"{count(result.new, 'node')} new, {result.changed:,} changed"
        blocks.append(Line(f"{verb} {sessions}: {counts}, {result.withdrawn:,} withdrawn."))
    if result.unchanged:
        are = "is" if result.unchanged == 1 else "are"
        blocks.append(Line(f"{count(result.unchanged, 'session')} {are} up to date."))
    for reason, number in Counter(each.reason for each in result.skipped).items():
        blocks.append(Line(f"Skipped {count(number, 'session')}: {reason}.", "dim"))
    return blocks or [Line("No sessions to rebuild.")]
