"""Write docs/reference/ and docs/man/ from the program. With `--check`, only compare."""

import argparse
import inspect
import os
import sys
import types
import typing
from collections import Counter
from pathlib import Path
from typing import Any

import store_format

from ctx import errors
from ctx.agents.claude_code import doctor, payloads
from ctx.cli import (
    add_cargo,
    add_code,
    add_document,
    completion,
    config,
    debug,
    edges,
    export,
    gc,
    help_texts,
    index_answers,
    ingest,
    install_answers,
    llm,
    log,
    man_pages,
    options,
    serve,
    tags,
    worker,
)
from ctx.cli import add_code as add_code_command
from ctx.cli import add_command as add_command_command
from ctx.cli import add_file as add_file_command
from ctx.cli import task as task_commands
from ctx.cli.commands import COMMANDS, module_of
from ctx.codebase import indexing
from ctx.config import edit_file, resolve, schema, setting
from ctx.hook_files import spool
from ctx.memory import walk
from ctx.objects import verify
from ctx.operations import (
    add,
    add_command,
    add_file,
    apply,
    backfill,
    code_changed,
    code_cycles,
    code_history,
    code_queries,
    commit,
    compose,
    context,
    cost,
    debug_graph,
    debug_object,
    delete,
    diff,
    document,
    import_,
    init,
    judge,
    learnings,
    link,
    move,
    passages,
    pause,
    query,
    rebuild,
    recall,
    recover,
    relate,
    remember,
    review,
    scrub,
    session_rebuild,
    session_synthesis,
    sessions,
    show,
    stage,
    status,
    store,
    store_backups,
    store_copy,
    summarize,
    sync,
    tag,
    task,
    timeline,
    trace,
    trust,
    undo,
    update,
    view,
    why,
)
from ctx.operations.list import NodeList
from ctx.packs import prompt_pack

FOLDER = Path(__file__).parent

# Types that a module imports only for type checkers.
LOADED_LATER = {"Layer": resolve.Layer, "Passage": passages.Passage}

# What each command prints with `--format json`.
ANSWERS: dict[str, type] = {
    "ctx add node": add.AddResult,
    "ctx add file": add_file.AddFileResult,
    "ctx add file --commit": add_file_command.AddFileCommitResult,
    "ctx add cargo": add_cargo.AddCargoResult,
    "ctx add cargo --commit": add_cargo.AddCargoCommitResult,
    **{f"ctx add {word}": add_code.AddCodeResult for word in ("code", "rust")},
    "ctx add code --commit": add_code_command.AddCodeCommitResult,
    **{f"ctx add {word}": document.AddDocumentResult for word in ("note", "task", "decision")},
    "ctx add note --commit": add_document.AddDocumentCommitResult,
    "ctx add command": add_command.AddCommandResult,
    "ctx add command --commit": add_command_command.AddCommandCommitResult,
    "ctx remember": remember.RememberResult,
    "ctx show": show.ShowResult,
    "ctx list": NodeList,
    "ctx update": update.UpdateResult,
    "ctx edit": update.UpdateResult,
    "ctx delete": delete.DeleteResult,
    "ctx forget": delete.DeleteResult,
    "ctx restore": delete.RestoreResult,
    "ctx restore --backup": store_backups.BackupList,
    "ctx restore --backup NAME": store_backups.RestoreBackupResult,
    "ctx undo": undo.UndoResult,
    "ctx undo --list": undo.ChangeList,
    "ctx pin": tag.TagResults,
    "ctx unpin": tag.TagResults,
    "ctx tag": tag.TagResult,
    "ctx untag": tag.TagResult,
    "ctx tags": tags.TagList,
    "ctx sessions list": sessions.SessionList,
    "ctx sessions show": sessions.SessionDetails,
    "ctx sessions replay": sessions.SessionReplay,
    "ctx sessions delete": sessions.DeleteSessionResult,
    "ctx sessions rebuild": session_rebuild.RebuildSessionsResult,
    "ctx sessions synthesise": session_synthesis.SynthesisResult,
    **{f"ctx learnings {word}": learnings.LearningList for word in ("list", "add")},
    **{f"ctx learnings {word}": learnings.LearningList for word in ("confirm", "reject")},
    **{f"ctx worker {word}": worker.WorkerStatus for word in ("start", "stop", "status", "run")},
    "ctx worker logs": worker.WorkerLog,
    **{f"ctx {word}": serve.PageAddress for word in ("serve", "ui")},
    "ctx link": link.LinkResult,
    "ctx unlink": link.UnlinkResult,
    "ctx relate": relate.RelateResult,
    "ctx edges": edges.NodeEdges,
    "ctx move": move.MoveResult,
    "ctx task start": task.StartTaskResult,
    "ctx task end": task.EndTaskResult,
    "ctx task current": task.CurrentTask,
    "ctx task list": task_commands.TaskList,
    "ctx search": query.QueryResult,
    "ctx pack": prompt_pack.PromptPack,
    "ctx query": prompt_pack.PromptPack,
    "ctx query --as nodes": query.QueryResult,
    "ctx recall": recall.RecallResult,
    "ctx timeline": timeline.TimelineResult,
    "ctx why": why.ReceiptDetails,
    "ctx why --list": why.ReceiptList,
    "ctx why --wrong": judge.JudgeResult,
    "ctx trace": trace.TraceResult,
    "ctx related": walk.GraphWalk,
    "ctx compose": compose.ComposedContext,
    "ctx context": context.ContextResult,
    "ctx view create": view.ViewResult,
    "ctx view list": view.ViewList,
    "ctx view render": compose.ComposedContext,
    "ctx view update": view.ViewResult,
    "ctx view delete": view.ViewResult,
    "ctx summarize": summarize.SummarizeResult,
    "ctx init": init.InitResult,
    "ctx commit": commit.CommitResult,
    "ctx log": log.Log,
    "ctx log --day": log.LogDay,
    "ctx diff": diff.Diff,
    "ctx review list": review.Review,
    "ctx review accept": review.Review,
    "ctx review reject": review.Review,
    "ctx rebuild": rebuild.RebuildResult,
    "ctx pause": pause.PauseResult,
    "ctx resume": pause.ResumeResult,
    "ctx scrub": scrub.ScrubResult,
    "ctx stage start": stage.StageStartResult,
    "ctx stage flush": stage.StageFlushResult,
    "ctx stage compact": commit.CommitResult,
    "ctx stage abort": stage.StageAbortResult,
    "ctx stage status": stage.StageStatus,
    "ctx stage recover": recover.StageRecoverResult,
    "ctx trust": trust.TrustResult,
    "ctx trust --list": trust.TrustedProjects,
    "ctx gc": gc.GcResult,
    "ctx debug cat": debug_object.ObjectDetails,
    "ctx debug refs": debug.PointerList,
    "ctx debug history": debug.ObjectHistory,
    "ctx debug verify": verify.Report,
    "ctx debug index": index_answers.IndexLookup,
    "ctx debug graph": debug_graph.GraphPicture,
    "ctx code outline": code_queries.FileOutline,
    "ctx code callers": code_queries.CodeCalls,
    "ctx code callees": code_queries.CodeCalls,
    "ctx code imports": code_queries.CodeImports,
    "ctx code cycles": code_cycles.Cycles,
    "ctx code packages": code_queries.PackageList,
    "ctx code changed": code_changed.CodeChanges,
    "ctx code history": code_history.FileHistory,
    "ctx code status": indexing.IndexStatus,
    "ctx code index": indexing.IndexReport,
    "ctx llm": llm.LlmResult,
    "ctx cost": cost.CostReport,
    "ctx cost --calibrate": cost.Calibration,
    "ctx export": export.ExportResult,
    "ctx import": import_.ImportResult,
    "ctx import --transcripts": backfill.BackfillResult,
    "ctx ingest": ingest.IngestResult,
    "ctx sync run": sync.SyncResult,
    "ctx sync add": sync.SyncAddResult,
    "ctx sync status": sync.SyncStatus,
    "ctx sync remove": sync.SyncRemoveResult,
    "ctx store path": store.StorePath,
    "ctx store status": store.StoreStatus,
    "ctx store check": store.StoreCheck,
    "ctx store rebuild": store.StoreRebuildResult,
    "ctx store backup": store.StoreBackupResult,
    "ctx store restore": store.StoreRestoreResult,
    "ctx store recover": store.StoreRecovery,
    "ctx store copy": store_copy.StoreCopyResult,
    "ctx status": status.MemoryStatus,
    "ctx install": install_answers.InstallResult,
    "ctx install --host": install_answers.HostsResult,
    "ctx uninstall": install_answers.UninstallResult,
    "ctx uninstall --host": install_answers.HostsResult,
    "ctx doctor": doctor.Diagnosis,
    **{f"ctx hook {word}": payloads.ClaudeAnswer for word in spool.EVENTS},
    "ctx hook apply": apply.ApplyResult,
    "ctx config get": config.ConfigValue,
    "ctx config set": edit_file.SettingChange,
    "ctx config unset": edit_file.SettingChange,
    "ctx config list": config.ConfigList,
    "ctx config explain": config.ConfigExplanation,
    "ctx completion": completion.CompletionScript,
}


def commands() -> str:
    parts = [
        "# Commands",
        "",
        "Generated by `make docs` from the help of the program. [JSON](json.md) describes what",
        "each command prints with `--format json`; [Help topics](topics.md) explains the terms.",
        "",
        "## Options of every command",
        "",
        "```",
        *_shared_options(options.global_options().format_help()),
        "```",
        "",
        f"Before {_listed(sorted(options.READ_ONLY))}, not after: `-C`, `--set` and `--db`.",
        "",
    ]
    for name, summary in COMMANDS.items():
        if name == "help":
            continue
        parser = options.command_parser(name, summary, module_of(name))
        subparsers = options.subcommands_of(parser)
        parts += [f"## ctx {name}", "", "```", _help(parser), "```", ""]
        parts += _answers(f"ctx {name}", f"ctx {name} --list", f"ctx {name} --as nodes")
        for word, inner in subparsers.items():
            parts += [f"### ctx {name} {word}", "", "```", _help(inner), "```", ""]
            parts += _answers(f"ctx {name} {word}", f"ctx {name} {word} --commit")
    return "\n".join(parts).rstrip() + "\n"


def _shared_options(text: str) -> list[str]:
    """The lines of a help text about the options of every command."""
    lines = text.splitlines()
    start = lines.index(f"{options.EVERYWHERE}:")
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return lines[start + 1 : end]


def _help(parser: argparse.ArgumentParser) -> str:
    """The help of a command, without the options of every command: the page has them once."""
    before, _, after = parser.format_help().partition(f"\n{options.EVERYWHERE}:\n")
    return f"{before}\n{after.partition(chr(10) * 2)[2]}".rstrip()


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _answers(*forms: str) -> list[str]:
    """What a command prints as JSON, by the name of the shape."""
    lines = [
        f"`{command} --format json` prints {_link(_shape_name(ANSWERS[command]))}."
        for command in forms
        if command in ANSWERS
    ]
    return [*lines, ""] if lines else []


def json_page() -> str:
    parts = [
        "# JSON",
        "",
        "Generated by `make docs`. With `--format json` every command prints one object. The",
        "[commands](commands.md) name its shape; this page has each shape once.",
        "",
        "In a project whose store is not trusted (`ctx trust`), the object also has",
        "`withheld: true`: it holds nothing of that store.",
        "",
        "`text` is a string, `[text, …]` a list, `text | null` either. Identifiers (`NodeId`,",
        "`ObjectId`, `SessionId`) are strings.",
        "",
    ]
    for name, shape in sorted(_SHAPES.items(), key=lambda each: each[0].lower()):
        parts += [f"## {name}", ""]
        if used := [command for command, answer in ANSWERS.items() if answer is shape]:
            parts += [f"Printed by {', '.join(f'`{command}`' for command in used)}.", ""]
        fields = typing.get_type_hints(shape, localns=LOADED_LATER).items()
        parts += ["```", *(f"{field}: {_type(hint)}" for field, hint in fields), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def topics() -> str:
    parts = ["# Help topics", "", "Generated by `make docs`. `ctx help TOPIC` prints the same.", ""]
    for name, (summary, _) in help_texts.TOPICS.items():
        parts += [f"## {name}", "", f"{summary[:1].upper()}{summary[1:]}.", ""]
        parts += ["```", help_texts.topic_text(name).rstrip(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def _link(name: str) -> str:
    return f"[{name}](json.md#{name.lower().replace('.', '')})"


def _shapes() -> dict[str, type]:
    """Every value that an answer holds, by its name. Two of one name get that of their module."""
    waiting, known = list(ANSWERS.values()), dict.fromkeys(ANSWERS.values())
    while waiting:
        for hint in typing.get_type_hints(waiting.pop(0), localns=LOADED_LATER).values():
            for inner in _values_in(hint):
                if inner not in known:
                    known[inner] = None
                    waiting.append(inner)
    names = Counter(value.__name__ for value in known)
    return {
        value.__name__
        if names[value.__name__] == 1
        else f"{value.__module__.rpartition('.')[2]}.{value.__name__}": value
        for value in known
    }


def _shape_name(shape: type) -> str:
    return next(name for name, value in _SHAPES.items() if value is shape)


def _values_in(hint: Any) -> list[type]:
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return [hint]
    return [value for inner in typing.get_args(hint) for value in _values_in(inner)]


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
    if hint in _SHAPES.values():
        return _shape_name(hint)
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
            "a clone is a stranger."
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
    without_effect = ", ".join(f"`{name}`" for name in schema.WITHOUT_EFFECT)
    lines += ["", f"Accepted in files and variables, without effect: {without_effect}."]
    return "\n".join(lines) + "\n"


_SHAPES = _shapes()

PAGES = {
    "commands.md": commands,
    "topics.md": topics,
    "json.md": json_page,
    "errors.md": errors_page,
    "configuration.md": configuration,
    "store.md": store_format.page,
}


def files() -> dict[Path, str]:
    """Everything that is generated, by its path."""
    pages = {FOLDER / "reference" / name: make() for name, make in PAGES.items()}
    manual = {FOLDER / "man" / man_pages.file_name(None): man_pages.page([])}
    manual |= {
        FOLDER / "man" / man_pages.file_name(each): man_pages.page([each]) for each in COMMANDS
    }
    return pages | manual


def main() -> int:
    os.environ["COLUMNS"] = "80"  # The width of the help must not depend on a terminal.
    is_checked = "--check" in sys.argv
    made = files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    stale += [path for path in (FOLDER / "man").glob("*") if path not in made]
    if not is_checked:
        for path in stale:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made[path]) if path in made else path.unlink()
    if stale:
        verb = "out of date, run `make docs`" if is_checked else "written"
        sys.stdout.write(f"{', '.join(path.name for path in stale)}: {verb}\n")
    return 1 if stale and is_checked else 0


if __name__ == "__main__":
    sys.exit(main())
