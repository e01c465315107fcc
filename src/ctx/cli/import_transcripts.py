"""`ctx import --from claude-code --transcripts`, and `ctx import --from` another host"""

import argparse
import os
import tempfile
from contextlib import ExitStack

from ctx.agents.known_hosts import HOSTS
from ctx.cli import opening
from ctx.cli.output import Block, Line, Output, Table, count, listing, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.hosts.host_registry import FIRST
from ctx.memory.graph import USER
from ctx.operations.backfill import BackfillResult, Options, backfill

_PREVIEW_LENGTH = 80


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    settings.refuse_server()
    host = options.program or FIRST
    _refuse_others(options, host)
    host_folder = HOSTS.named(host).folder(settings.environment, settings.expanded("~"))
    paths = [os.path.join(settings.folder, settings.expanded(path)) for path in options.paths]
    with ExitStack() as stack:
        if options.dry_run and not os.path.exists(settings.database):
            # Opening creates a store, and a dry run must not leave one.
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            settings = settings._replace(chosen_database=os.path.join(folder, "store.db"))
        memory = stack.enter_context(opening.writing(settings, output))
        project = memory.place.folder if options.scope else _project(options.project, settings)
        wanted = Options(
            os.path.abspath(settings.expanded(host_folder)),
            tuple(map(os.path.abspath, paths)),
            options.since,
            project,
            options.dry_run,
            host,
        )
        tick = stack.enter_context(output.progress("Sessions"))
        done = backfill(memory, wanted, tick)
    output.show(done, render)
    if done.dry_run:
        output.note("Nothing changed.")
    elif done.sessions:
        output.note("See `ctx sessions list` and `ctx context`.")


def _refuse_others(options: argparse.Namespace, host: str) -> None:
    if host not in HOSTS.names:
        raise UsageError(
            f"{host} has no transcripts.",
            hint="`ctx import --from claude-code --transcripts` reads those of Claude Code.",
        )
    refused = {
        "--merge": options.merge,
        "--user": options.scope == USER,
        "--with-prompts": options.with_prompts,
    }
    for name, is_given in refused.items():
        if is_given:
            mode = "--transcripts" if options.transcripts else f"--from {host}"
            raise UsageError(f"{name} cannot be used with {mode}.")


def _project(text: str | None, settings: Settings) -> str | None:
    """A name as it is, and a folder as an absolute path."""
    if text and ("/" in text or text.startswith(("~", "."))):
        return os.path.abspath(os.path.join(settings.folder, settings.expanded(text)))
    return text


def render(done: BackfillResult) -> list[Block]:
    blocks: list[Block] = []
    if done.sessions:
        verb = "Would import" if done.dry_run else "Imported"
        blocks.append(Line(f"{verb} {count(len(done.sessions), 'session')}:"))
        rows = [
            (each.session[:12], each.project or "", each.began[:10], _shortened(each.what))
            for each in done.sessions
        ]
        newest_first = rows[::-1]
        blocks += listing(
            ("id", "project", "began", "what"), newest_first, ("id", "tags", "age", "text")
        )
    else:
        blocks.append(Line("Nothing new in the transcripts."))
    if not done.dry_run and done.sessions:
        made = {
            "step": done.steps,
            "observation": done.observations,
            "new learning": done.learnings,
        }
        counts = ", ".join(count(number, noun) for noun, number in made.items())
        blocks.append(Line(f"{counts}; {size(done.size)} read in {done.seconds:.1f} s."))
    blocks += [
        Line(f"{count(number, 'session')} {what}.")
        for number, what in (
            (done.unchanged, "already here"),
            (
                done.left_out,
                "left out: by --since, --project or a setting, deleted, switched off, or going on",
            ),
        )
        if number
    ]
    if done.skipped:
        blocks.append(Line(f"Not fully read: {len(done.skipped):,}"))
        blocks.append(Table(("transcript", "reason"), [tuple(each) for each in done.skipped[:20]]))
    return blocks


def _shortened(text: str) -> str:
    return text if len(text) <= _PREVIEW_LENGTH else f"{text[: _PREVIEW_LENGTH - 1]}…"
