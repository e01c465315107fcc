"""`ctx sessions`"""

import argparse
from collections.abc import Iterator

from ctx.capture.session_state import STATUSES
from ctx.capture.steps import Step, StepFinding, outcome_text
from ctx.cli import arguments, opening, session_synthesis
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, Table, beyond_limit, count, listing
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.hosts.host_registry import FIRST
from ctx.operations import sessions
from ctx.operations.sessions import DeleteSessionResult, SessionDetails, SessionList, SessionReplay

EXAMPLES = """
ctx sessions list              the sessions of this project
ctx sessions show 5dd6         its summary, files and observations
ctx sessions replay 5dd6       step by step
ctx sessions synthesise 5dd6   summarize it with the configured model
ctx sessions rebuild           renew the memory of past sessions
ctx sessions delete 5dd6       delete it from memory
"""

ALONE = "list"

_LIST = """
ctx sessions list                             this project, newest first
ctx sessions list --all --since 7d            all projects, last week
ctx sessions list --status active             active sessions
ctx sessions list --project-name shop -n 0    all sessions of a project
"""
_SHOW = """
ctx sessions show 5dd6                  by the first four characters of its id, or more
ctx sessions show 5dd6 --format json    everything stored
"""
_REPLAY = """
ctx sessions replay 5dd6           a line or two for each step
ctx sessions replay 5dd6 --full    everything stored of each
"""
_DELETE = """
ctx sessions delete 5dd6 --dry-run    show what would be deleted
ctx sessions delete 5dd6 --yes        without a prompt
"""

_HEADINGS = {
    "request": "Request",
    "investigated": "Investigated",
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
_SHORT = 12
_FORGOTTEN = "Its first steps have expired; see `ctx config explain capture.keep_days`."


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    listing = shared.add_subcommand(group, "list", "list sessions", _LIST)
    arguments.whose(listing)
    listing.add_argument("--status", choices=STATUSES, help="only sessions with this status")
    listing.add_argument(
        "--since", metavar="TIME", help="only sessions active since: 1h, 7d, 2w, 2026-01-20"
    )
    arguments.limit(listing)
    showing = shared.add_subcommand(group, "show", "show a session", _SHOW)
    _session(showing)
    replaying = shared.add_subcommand(group, "replay", "show the steps of a session", _REPLAY)
    _session(replaying)
    shared.flag(replaying, "--full", "everything stored of each step")
    telling = shared.add_subcommand(
        group,
        "synthesise",
        "summarize a session with a model",
        session_synthesis.EXAMPLES,
    )
    _session(telling)
    arguments.dry_run(telling)
    shared.flag(telling, "--again", "also what it was asked before")
    rebuilding = shared.add_subcommand(
        group, "rebuild", "renew the memory of past sessions", session_synthesis.REBUILD_EXAMPLES
    )
    rebuilding.add_argument(
        "named", metavar="ID", nargs="*", help="the beginning of an id; default: this project's"
    )
    shared.flag(rebuilding, "--all", "the sessions of every project")
    arguments.dry_run(rebuilding)
    deleting = shared.add_subcommand(group, "delete", "delete a session from memory", _DELETE)
    _session(deleting)
    arguments.dry_run(deleting)
    shared.yes_option(deleting)


def _session(parser: argparse.ArgumentParser) -> None:
    # Not `session`: that is the session that a command joins.
    parser.add_argument("named", metavar="ID", help="the beginning of its id")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    settings.refuse_server()
    if options.subcommand == "delete":
        _delete(options, settings, output)
        return
    if options.subcommand == "synthesise":
        session_synthesis.synthesise(options, settings, output)
        return
    if options.subcommand == "rebuild":
        session_synthesis.rebuild_sessions(options, settings, output)
        return
    with opening.reading(settings, output) as memory:
        if options.subcommand == "show":
            output.show(sessions.show(memory, options.named), render_one)
        elif options.subcommand == "replay":
            result = sessions.replay(memory, options.named)
            render = render_full if options.full else render_steps
            output.show(result, render)
        else:
            arguments.check_project(memory, options)
            project = None if options.all else options.project or memory.project
            statuses = (options.status,) if options.status else STATUSES
            listed = sessions.list_sessions(
                memory, project, statuses=statuses, since=options.since, limit=options.limit
            )
            output.show(listed, render_list)


def _delete(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if not options.named.strip():
        raise UsageError("No session given.", hint="`ctx sessions list` shows them.")
    with opening.writing(settings, output) as memory:
        result = sessions.delete(memory, options.named, dry_run=True)
        if not options.dry_run:
            question = f"This deletes session {result.session}: {_amounts(result)} Continue?"
            output.confirm(question, yes=options.yes)
            result = sessions.delete(memory, result.session, dry_run=False)
    output.show(result, render_deleted)
    if result.logs:
        mention = "mentions" if len(result.logs) == 1 else "mention"
        output.warn(f"{', '.join(result.logs)} still {mention} it; `ctx scrub` removes words.")
    if result.change:
        output.note(f"To restore the nodes, and nothing else: `ctx undo {result.change}`")


def render_list(listed: SessionList) -> list[Block]:
    if not listed.sessions:
        where = f" in {listed.project}" if listed.project else ""
        return [
            Line(f"No sessions{where}."),
            Line("To import past sessions: `ctx import --from claude-code --transcripts`", "dim"),
        ]
    # Most people use one host; then the table needs no column for it.
    has_hosts = any(each.host != FIRST for each in listed.sessions)
    rows = [
        (
            each.id[:_SHORT],
            *((each.host,) if has_hosts else ()),
            each.project or "",
            _minute(each.last_at),
            each.status,
            f"{each.steps:,}",
            cut(f"↳ {each.teammate}: {each.what}" if each.lead else each.what),
        )
        for each in listed.sessions
    ]
    host, style = (("host",), ("tags",)) if has_hosts else ((), ())
    headings = ("id", *host, "project", "last active", "status", "steps", "what")
    styles = ("id", *style, "tags", "age", "", "number", "text")
    return [Table(headings, rows, styles), *beyond_limit(listed.more)]


def render_one(details: SessionDetails) -> list[Block]:
    session = details.session
    place = f"{session.project or 'no project'}, {session.folder}"
    branch = f", on {session.branch}" if session.branch else ""
    head = f" at {session.head[:10]}" if session.head else ""
    when = f"{_minute(session.started_at)} – {_minute(session.last_at)} UTC"
    blocks: list[Block] = [
        Line(f"Session {session.id}", "heading"),
        *([Line(details.title)] if details.title else []),
        Line(f"{session.status}, {when}"),
        *([Line(f"in {session.client}")] if session.client != FIRST else []),
        Line(f"{place}{branch}{head}"),
    ]
    if session.goes_on_from:
        blocks.append(Line(f"continues {session.goes_on_from}"))
    if details.lead:
        blocks.append(Line(f"works for {details.lead}"))
    blocks.append(Line(f"{_session_counts(details)}"))
    blocks += _summary(details)
    if details.teammates:
        rows = [(each.session[:_SHORT], each.name, cut(each.result)) for each in details.teammates]
        blocks += [Line(""), Line("Teammates", "heading")]
        blocks.append(Table(("id", "name", "result"), rows, ("id", "", "text")))
    if details.observations:
        rows = [(each.short_id, each.kind, each.title) for each in details.observations]
        blocks += [Line(""), Line("Observations", "heading")]
        blocks.append(Table(("id", "kind", "observation"), rows, ("id", "type", "text")))
    blocks += _files(details)
    if details.given:
        receipts = count(len(details.given), "receipt")
        blocks += [
            Line(""),
            Line(f"Given by ctx: {details.tokens:,} tokens, {receipts}", "heading"),
        ]
        blocks += [
            Line(f"  {each.receipt}  {each.event}, {each.tokens:,} tokens")
            for each in details.given
        ]
    if details.forgotten:
        blocks += [Line(""), Line(_FORGOTTEN, "dim")]
    return blocks


def _session_counts(details: SessionDetails) -> str:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(details.steps.items()))
    counts = [count(details.events["step"], "step") + (f" ({kinds})" if kinds else "")]
    counts += [
        f"{details.events[status]:,} {words}"
        for status, words in (("dropped", "left out"), ("skipped", "skipped"), ("new", "waiting"))
        if details.events[status]
    ]
    return ", ".join(counts)


def _summary(details: SessionDetails) -> Iterator[Block]:
    if not details.summary:
        if details.session.request:
            yield Line("")
            yield Line("Request", "heading")
            yield Line(f"  {details.session.request}")
        return
    for name, heading in _HEADINGS.items():
        section = details.summary.get(name)
        lines = [section] if isinstance(section, str) else section
        if lines and isinstance(lines, list | tuple):
            yield Line("")
            yield Line(heading, "heading")
            yield from (Line(f"  {' '.join(str(each).split())}") for each in lines)


def _files(details: SessionDetails) -> Iterator[Block]:
    rows = [
        (each.path, f"+{each.added:,} -{each.removed:,}" if each.writes else "read")
        for each in details.files
    ]
    if not rows:
        edited, read = (details.summary.get(name) or () for name in ("files_edited", "files_read"))
        rows = [
            *((str(path), "edited") for path in edited),
            *((str(path), "read") for path in read),
        ]
    if rows:
        yield Line("")
        yield Line("Files", "heading")
        yield from listing(("file", "lines"), rows)
    if details.changes:
        changes = [(each.change, each.kind, each.name, each.path) for each in details.changes]
        yield Line("")
        yield Line("Code", "heading")
        yield from listing(("change", "kind", "name", "file"), changes)


def render_steps(replay: SessionReplay) -> list[Block]:
    return _replay_blocks(replay, [line for step in replay.steps for line in in_words(step)])


def render_full(replay: SessionReplay) -> list[Block]:
    return _replay_blocks(replay, [line for step in replay.steps for line in full_lines(step)])


def _replay_blocks(replay: SessionReplay, lines: list[str]) -> list[Block]:
    session = replay.session
    head = f"Session {session.id}, {session.status}, began {_minute(session.started_at)} UTC"
    blocks: list[Block] = [Line(head, "heading")]
    if replay.forgotten:
        blocks.append(Line(_FORGOTTEN, "dim"))
    if not lines:
        blocks.append(Line("No steps are stored."))
    return [*blocks, *map(Line, lines)]


def in_words(step: Step) -> list[str]:
    """What was done, and on a second line how it failed."""
    who = f"[{step.agent}] " if step.agent else ""
    head = f"{step.at[11:19]}  {who}"
    behind = " " * 10
    match step.kind:
        case "prompt":
            return [f"{head}asked: {cut(step.text)}"]
        case "say":
            return [f"{head}said: {cut(step.text)}"]
        case "recap":
            return [f"{head}summed up: {cut(step.text)}"]
        case "title" | "name":
            return [f"{head}titled: {cut(step.text)}"]
        case "read":
            return [f"{head}read {step.path}"]
        case "write":
            lines = [f"{head}wrote {step.path} (+{step.added:,} -{step.removed:,})"]
            changes = ", ".join(f"{each.change} {each.name}" for each in step.changes)
            return [*lines, f"{behind}{cut(changes)}"] if changes else lines
        case "command":
            return [
                f"{head}ran {cut(step.text)}{outcome_text(step)}",
                *_complaints(step, behind)[:1],
            ]
        case "search":
            return [f"{head}looked for {cut(step.text)}"]
        case "plan":
            return [f"{head}planned: {cut(step.text)}"]
        case "agent":
            return [f"{head}ran a subagent: {cut(step.text)}"]
        case "mark":
            return [f"{head}— {cut(step.text)} —"]


def full_lines(step: Step) -> list[str]:
    """Everything stored of a step."""
    first = in_words(step)[0]
    behind = " " * 10
    text = "" if cut(step.text) == step.text else step.text
    more = [f"{behind}{line}" for line in text.splitlines()]
    more += [f"{behind}{each.change} {each.kind} {each.signature}" for each in step.changes]
    more += [f"{behind}{line}" for line in step.excerpt.splitlines()]
    more += _complaints(step, behind)
    if not step.findings:
        more += [f"{behind}{line}" for line in step.output.splitlines()[1:]]
    return [first, *more]


def _complaints(step: Step, behind: str) -> list[str]:
    if step.findings:
        return [
            behind + cut(f"{_finding_location(each)}{_test(each)} {each.code} {each.message}")
            for each in step.findings
        ]
    return [behind + cut(line) for line in step.output.splitlines()[:1] if not step.ok]


def _finding_location(finding: StepFinding) -> str:
    if not finding.path:
        return ""
    return f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: "


def _test(finding: StepFinding) -> str:
    """Its name within its file."""
    return finding.test.removeprefix(finding.path).lstrip(":")


def render_deleted(deleted: DeleteSessionResult) -> list[Block]:
    verb = "Would delete" if deleted.dry_run else "Deleted"
    blocks: list[Block] = [
        Line(f"{verb} the session {deleted.session}: {deleted.what or 'no request'}")
    ]
    blocks.append(Line(_amounts(deleted)))
    rows = [(each.short_id, each.kind, each.title) for each in deleted.nodes]
    blocks.append(Table(("id", "kind", "node"), rows, ("id", "type", "text")))
    if deleted.kept:
        stay = "stays" if deleted.kept == 1 else "stay"
        blocks.append(Line(f"{count(deleted.kept, 'node')} {stay}: other sessions share them."))
    return blocks


def _amounts(deleted: DeleteSessionResult) -> str:
    amounts = {
        "node": len(deleted.nodes),
        "event": deleted.events,
        "code change": deleted.symbol_changes,
        "receipt": deleted.receipts,
    }
    named = [
        count(number, noun, "code changes" if noun == "code change" else None)
        for noun, number in amounts.items()
        if number
    ]
    return f"{', '.join(named) or 'nothing else'}."


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
