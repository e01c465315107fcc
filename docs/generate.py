"""Write docs/reference/ from the program itself. `--check` only compares."""

import argparse
import inspect
import os
import sys
import types
import typing
from pathlib import Path
from typing import Any

from ctx import errors
from ctx.agents.claude_code import doctor
from ctx.cli import add_cargo as add_cargo_command
from ctx.cli import add_code as add_code_command
from ctx.cli import add_command as add_command_command
from ctx.cli import (
    add_document,
    completion,
    config,
    debug,
    edges,
    gc,
    hook,
    install,
    llm,
    options,
    tags,
    uninstall,
    worker,
)
from ctx.cli import add_file as add_file_command
from ctx.cli.commands import COMMANDS, module_of
from ctx.codebase import code_index
from ctx.config import edit_file, resolve, schema, setting
from ctx.hook_files import spool
from ctx.objects import verify
from ctx.operations import (
    add,
    add_cargo,
    add_code,
    add_command,
    add_file,
    apply,
    backfill,
    backups,
    code_calls,
    code_changed,
    code_cycles,
    code_history,
    code_imports,
    code_outline,
    code_packages,
    commit,
    compose,
    context,
    cost,
    debug_graph,
    debug_index,
    delete,
    diff,
    document,
    export,
    import_,
    ingest,
    init,
    learnings,
    link,
    listing,
    log,
    move,
    passages,
    pause,
    query,
    rebuild,
    recall,
    recover,
    relate,
    review,
    scrub,
    sessions,
    show,
    stage,
    status,
    store,
    summarize,
    synthesise_now,
    tag,
    task,
    trust,
    undo,
    update,
    view,
    walked,
    why,
)
from ctx.packs import prompt_pack

FOLDER = Path(__file__).parent / "reference"

# What some values are made of is loaded only by commands that need it.
LOADED_LATER = {"Layer": resolve.Layer, "Passage": passages.Passage}

# What each command answers with `--format json`.
ANSWERS: dict[str, type] = {
    "ctx add node": add.Added,
    "ctx add file": add_file.FilesAdded,
    "ctx add file --commit": add_file_command.AddedAndCommitted,
    "ctx add cargo": add_cargo.CargoAdded,
    "ctx add cargo --commit": add_cargo_command.CargoAddedAndCommitted,
    **{f"ctx add {word}": add_code.CodeAdded for word in ("code", "rust")},
    "ctx add code --commit": add_code_command.CodeAddedAndCommitted,
    **{f"ctx add {word}": document.Written for word in ("note", "task", "decision")},
    "ctx add note --commit": add_document.WrittenAndCommitted,
    "ctx add command": add_command.Kept,
    "ctx add command --commit": add_command_command.KeptAndCommitted,
    "ctx show": show.Shown,
    "ctx list": listing.Listing,
    "ctx update": update.Updated,
    "ctx edit": update.Updated,
    "ctx delete": delete.Deleted,
    "ctx forget": delete.Deleted,
    "ctx restore": delete.Restored,
    "ctx restore --backup": backups.Backups,
    "ctx restore --backup NAME": backups.RestoredBackup,
    "ctx undo": undo.Undone,
    "ctx undo --list": undo.Changes,
    "ctx pin": tag.Tagging,
    "ctx unpin": tag.Tagging,
    "ctx tag": tag.Tagged,
    "ctx untag": tag.Tagged,
    "ctx tags": tags.Tags,
    "ctx sessions list": sessions.Sessions,
    "ctx sessions show": sessions.Told,
    "ctx sessions replay": sessions.Replayed,
    "ctx sessions delete": sessions.Deleted,
    "ctx sessions synthesise": synthesise_now.Synthesised,
    **{f"ctx learnings {word}": learnings.Learnings for word in ("list", "add")},
    **{f"ctx learnings {word}": learnings.Learnings for word in ("confirm", "reject")},
    **{f"ctx worker {word}": worker.Status for word in ("start", "stop", "status", "run")},
    "ctx worker logs": worker.Logged,
    "ctx link": link.Linked,
    "ctx unlink": link.Unlinked,
    "ctx relate": relate.Related,
    "ctx edges": edges.Edges,
    "ctx move": move.Moved,
    "ctx task start": task.Started,
    "ctx task end": task.Ended,
    "ctx task current": task.Current,
    "ctx search": query.Found,
    "ctx query": prompt_pack.PromptPack,
    "ctx query --as nodes": query.Found,
    "ctx recall": recall.Recalled,
    "ctx why": why.Explained,
    "ctx why --list": why.Receipts,
    "ctx trace": walked.Walked,
    "ctx related": walked.Walked,
    "ctx compose": compose.Context,
    "ctx context": context.Shown,
    "ctx view create": view.Viewed,
    "ctx view list": view.Views,
    "ctx view render": compose.Context,
    "ctx view update": view.Viewed,
    "ctx view delete": view.Viewed,
    "ctx summarize": summarize.Summarized,
    "ctx init": init.Initialised,
    "ctx commit": commit.Committed,
    "ctx log": log.Log,
    "ctx log --day": log.Day,
    "ctx diff": diff.Diff,
    "ctx review list": review.Review,
    "ctx review accept": review.Review,
    "ctx review reject": review.Review,
    "ctx rebuild": rebuild.Rebuilt,
    "ctx pause": pause.Paused,
    "ctx resume": pause.Resumed,
    "ctx scrub": scrub.Scrubbed,
    "ctx stage start": stage.Begun,
    "ctx stage flush": stage.Flushed,
    "ctx stage compact": commit.Committed,
    "ctx stage abort": stage.Aborted,
    "ctx stage status": stage.Staging,
    "ctx stage recover": recover.Recovered,
    "ctx trust": trust.Trust,
    "ctx trust --list": trust.TrustedProjects,
    "ctx gc": gc.Collected,
    "ctx debug cat": debug.Shown,
    "ctx debug refs": debug.Pointers,
    "ctx debug history": debug.History,
    "ctx debug verify": verify.Report,
    "ctx debug index": debug_index.Found,
    "ctx debug graph": debug_graph.Drawn,
    "ctx code outline": code_outline.Outline,
    "ctx code callers": code_calls.Calls,
    "ctx code callees": code_calls.Calls,
    "ctx code imports": code_imports.Imports,
    "ctx code cycles": code_cycles.Cycles,
    "ctx code packages": code_packages.Packages,
    "ctx code changed": code_changed.Changed,
    "ctx code history": code_history.History,
    "ctx code status": code_index.IndexStatus,
    "ctx code index": code_index.IndexReport,
    "ctx llm": llm.Answered,
    "ctx cost": cost.Cost,
    "ctx cost --calibrate": cost.Calibration,
    "ctx export": export.Exported,
    "ctx import": import_.Imported,
    "ctx import --transcripts": backfill.Backfilled,
    "ctx ingest": ingest.Ingested,
    "ctx store path": store.Located,
    "ctx store check": store.Checked,
    "ctx store rebuild": store.Rebuilt,
    "ctx store backup": store.BackedUp,
    "ctx store restore": store.Restored,
    "ctx store recover": store.Recovery,
    "ctx status": status.Status,
    "ctx install": install.Installed,
    "ctx uninstall": uninstall.Uninstalled,
    "ctx doctor": doctor.Diagnosis,
    **{f"ctx hook {word}": hook.Answer for word in spool.EVENTS},
    "ctx hook apply": apply.Applied,
    "ctx config get": config.Answer,
    "ctx config set": edit_file.Change,
    "ctx config unset": edit_file.Change,
    "ctx config list": config.Listing,
    "ctx config explain": config.Explanation,
    "ctx completion": completion.Script,
}


def commands() -> str:
    parts = [
        "# Commands",
        "",
        "Made by `make docs` from the program's own help.",
        "",
        "In a project whose store is not trusted (`ctx trust`), a JSON answer also has",
        "`withheld: true`: nothing of that store is in it.",
        "",
    ]
    for name, summary in COMMANDS.items():
        if name == "help":
            continue
        parser = options.command_parser(name, summary, module_of(name))
        subparsers = options.subcommands_of(parser)
        parts += [f"## ctx {name}", "", "```", _help(parser), "```", ""]
        parts += _answer(f"ctx {name}")
        parts += _answer(f"ctx {name} --list")
        parts += _answer(f"ctx {name} --as nodes")
        for word, inner in subparsers.items():
            parts += [f"### ctx {name} {word}", "", "```", _help(inner), "```", ""]
            parts += _answer(f"ctx {name} {word}")
            parts += _answer(f"ctx {name} {word} --commit")
    return "\n".join(parts).rstrip() + "\n"


def _help(parser: argparse.ArgumentParser) -> str:
    return parser.format_help().rstrip()


def _answer(command: str) -> list[str]:
    answer = ANSWERS.get(command)
    if answer is None:
        return []
    shapes = _shapes(answer)
    return [f"`{command} --format json` answers:", "", "```", *shapes, "```", ""]


def _shapes(answer: type) -> list[str]:
    """A value's fields, and those of the values in it."""
    lines: list[str] = []
    waiting, seen = [answer], {answer}
    while waiting:
        value = waiting.pop(0)
        lines.append(f"{value.__name__}")
        for name, hint in typing.get_type_hints(value, localns=LOADED_LATER).items():
            lines.append(f"  {name}: {_type(hint)}")
            for inner in _values_in(hint):
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
    return lines


def _values_in(hint: Any) -> list[type]:
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return [hint]
    return [found for inner in typing.get_args(hint) for found in _values_in(inner)]


def _type(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        return " | ".join(dict.fromkeys(map(_type, inner)))
    if origin is typing.Literal:
        return " | ".join(f'"{word}"' for word in inner)
    if origin is tuple or origin in (list, typing.get_origin(typing.Sequence[int])):
        return f"[{_type(inner[0])}, …]"
    if origin is not None:
        return "object"
    if hint is type(None):
        return "null"
    if hint is Any:
        return "any"
    names = {"str": "text", "int": "number", "float": "number", "bool": "true | false"}
    return names.get(hint.__name__, hint.__name__)


_ABOUT_EXIT_CODES = """\
Once a change is being stored, Ctrl-C waits: the command finishes, and its exit code is the one that
it has anyway. So after Ctrl-C, 0 means that the change is stored, and 130 that it is not.

Some commands store one part after another: `ctx import` of transcripts, `ctx sessions synthesise`,
`ctx hook apply`. They stop between two parts, say that what was done so far is stored, and end
with 130; run them again for the rest. `ctx llm` keeps what a model had answered by then, says so,
and ends with 130.

If whoever reads the output closes the pipe, as `ctx list | head -1` does, the command ends quietly
with 0. If the answer cannot be written, as on a full disk, that is E014; the change itself is
stored then. If stdout is closed (`>&-`), nothing is printed, and the exit code is as otherwise.
Hooks always end with 0."""


def errors_page() -> str:
    lines = ["# Errors", "", "Made by `make docs`. Every error has a code, one sentence, and the "]
    lines[-1] += "next step where there is one."
    lines += ["", "## Exit codes", "", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in errors.EXIT_CODES.items()]
    lines += ["", *_ABOUT_EXIT_CODES.splitlines(), "", "## Codes"]
    lines += [
        "",
        "With `--format json` an error is an object on stderr, and so is a warning:",
        "",
        "```",
        '{"error": {"code": "E012", "message": "No project store in …", "hint": "Run …"}}',
        '{"warning": "…"}',
        "```",
    ]
    lines += [
        "",
        "An error may have a `detail` too: several lines, such as the place in a query. A mistake",
        "of ctx itself is E000; with `CTX_DEBUG=1` it shows where it happened.",
        "",
        "| code | name | exit code | meaning |",
        "|---|---|---|---|",
    ]
    tree = inspect.getdoc(errors) or ""
    meanings = {
        line.split()[1]: line.split(maxsplit=3)[3].removesuffix(" (exit code 2)")
        for line in tree.splitlines()
        if line.startswith(("    ├── ", "    └── "))
    }
    for name, cls in vars(errors).items():
        if name in meanings:
            lines.append(f"| {cls.code} | {name} | {cls.exit_code} | {meanings[name]} |")
    return "\n".join(lines) + "\n"


def configuration() -> str:
    lines = [
        "# Settings",
        "",
        (
            "Made by `make docs`. A value comes from, later ones winning: the default, the user "
            "file (`~/.ctx/config.toml`), the project file (`.ctx/config.toml`), the environment, "
            "`--set`. A project file may set only the keys marked so: it comes with a clone, and "
            "a clone is a stranger. Settings of parts that have not arrived yet are accepted and "
            "have no effect yet."
        ),
        "",
        (
            "The environment variable of `gc.keep_days` is `CTX_GC_KEEP_DAYS`, and so on; "
            "`CTX_DEFAULT_BUDGET` is `view.default_budget`, `CTX_TRANSCRIPT_TIMEOUT` is "
            "`hooks.transcript_timeout_seconds`. `agents.may_pin` has none."
        ),
        "",
        "| key | default | takes | in a project file | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, known in schema.SETTINGS.items():
        project = "yes" if known.section in schema.PROJECT_SECTIONS else ""
        default = setting.as_toml(known.default)
        cells = (f"`{name}`", f"`{default}`", known.takes, project, known.doc)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


PAGES = {"commands.md": commands, "errors.md": errors_page, "configuration.md": configuration}


def main() -> int:
    os.environ["COLUMNS"] = "80"  # The width of the help must not depend on a terminal.
    stale = []
    for name, make in PAGES.items():
        path = FOLDER / name
        text = make()
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                FOLDER.mkdir(exist_ok=True)
                path.write_text(text)
    if stale:
        verb = "out of date, run `make docs`" if "--check" in sys.argv else "written"
        sys.stdout.write(f"{', '.join(stale)}: {verb}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
