"""`ctx review`"""

import argparse
from collections.abc import Iterator
from typing import Any

from ctx import clock
from ctx.cli import arguments, editor, opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, count
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.ids import short
from ctx.memory.conflicts import LIFE
from ctx.operations import review as reviewing
from ctx.operations.review import Review
from ctx.operations.review_queue import OpenField
from ctx.workspace import Memory

EXAMPLES = """
ctx review                                  all that waits for you, as on the page
ctx review accept 01M7ESYZ1SB4              pin a node as the agent asked
ctx review reject --all                     reject every proposal
ctx review --pick 01M7ESYZ1SB4 --version=2  take the other of two versions
ctx review --format json                    for scripts
"""

ALONE = "list"

LIST_EXAMPLES = """
ctx review                                  on a terminal, ask which version to keep
ctx review --limit 0                        all learnings and imports
ctx review --accept 01M7ESYZ1SB4            keep the current version
ctx review --pick 01M7ESYZ1SB4 --version=2  take the other one
"""

ACCEPT_EXAMPLES = """
ctx review accept 01M7ESYZ1SB4              do what the agent proposes; keep a pin that it made
ctx review accept 01M7ESYZ1SB4 01M7ESYZ2AA0
ctx review accept 01M7ESYZ3Q9D              confirm a learning; imported text counts as yours then
ctx review accept 5d1f0a2b77c9              give agents a commit of this branch
ctx review accept --all                     all that agents and this branch propose
ctx undo                                    undo the last decision
"""

REJECT_EXAMPLES = """
ctx review reject 01M7ESYZ1SB4              keep the node as it is; remove a pin that an agent made
ctx review reject 01M7ESYZ3Q9D              a learning is not learned again; hide imported text
ctx review reject --all
"""

_ALL = 2**31
_LONGEST = 200


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    _configure_list(shared.add_subcommand(group, "list", "show open decisions", LIST_EXAMPLES))
    for name, help_text, examples in (
        ("accept", "accept proposals, learnings or imports", ACCEPT_EXAMPLES),
        ("reject", "reject proposals, learnings or imports", REJECT_EXAMPLES),
    ):
        deciding = shared.add_subcommand(group, name, help_text, examples)
        named = deciding.add_argument("ids", nargs="*", metavar="ID", help="ids of what is open")
        shared.complete_with(named, "node")
        shared.flag(deciding, "--all", "all that agents and this branch propose")
        shared.session_option(deciding)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    kept = what.add_argument("--accept", metavar="ID", help="keep the current version of this node")
    picked = what.add_argument("--pick", metavar="ID", help="take another version of this node")
    shared.complete_with(kept, "node")
    shared.complete_with(picked, "node")
    parser.add_argument(
        "--version", type=int, metavar="N", help="the number of the version to take"
    )
    parser.add_argument(
        "--field", metavar="NAME", help="only this field (default: all of the node)"
    )
    arguments.limit(parser)
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand == "list":
        _list(options, settings, output)
        return
    if bool(options.ids) == options.all:
        raise UsageError(
            "Give ids, or --all.",
            hint=f"ctx review {options.subcommand} ID",
        )
    with opening.writing(settings, output) as memory:
        names = None if options.all else options.ids
        done = reviewing.decide(memory, names, accepting=options.subcommand == "accept")
    output.show(done if output.is_on_a_terminal else done.without_foreign_text, render_decided)


def _list(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if (options.version is None) != (options.pick is None):
        raise UsageError(
            "--pick and --version go together.",
            hint="ctx review --pick ID --version=2",
        )
    if options.field and not (options.accept or options.pick):
        raise UsageError("--field needs --accept or --pick.", hint="ctx review --help")
    if not (options.accept or options.pick):
        with opening.reading(settings, output) as memory:
            review = reviewing.review(memory, most=options.limit or _ALL)
        if not output.is_on_a_terminal:
            review = review.without_foreign_text
        if not (review.open and output.is_interactive and output.is_for_people):
            output.show(review, render)
            return
        output.preview(_undisputed(review))
        _ask(review, settings, output)
        return
    with opening.writing(settings, output) as memory:
        node_id = reviewing.find(memory, options.accept or options.pick)
        if options.accept:
            done = reviewing.accept(memory, node_id, options.field)
        else:
            done = reviewing.pick(memory, node_id, options.field, options.version)
    _show(done, output)


def _show(done: Review, output: Output) -> None:
    output.show(done, render_settled)
    warn_of_redaction(done.redacted, output)


def _ask(review: Review, settings: Settings, output: Output) -> None:
    """Go through the open decisions one by one, until the user stops."""
    for each in review.open:
        output.preview(list(_dispute(each)))
        answer = _answer(each, output)
        if answer in ("q", ""):
            return
        if answer == "s":
            continue
        # The editor may be open for hours: nothing is locked meanwhile.
        text = _edit_value(each, settings, output) if answer == "e" else None
        with opening.writing(settings, output) as memory:
            _show(_settle_field(memory, each, answer, text), output)


def _answer(each: OpenField, output: Output) -> str:
    others = "/".join(str(version.number) for version in each.versions)
    edit = "" if each.field == LIFE else "[e]dit, "
    known = {str(version.number) for version in each.versions} | {"s", "q", ""}
    known |= set() if each.field == LIFE else {"e"}
    while True:
        answer = output.ask(f"Which version: {others}, {edit}[s]kip, [q]uit?").lower()[:1]
        if answer in known:
            return answer


def _settle_field(memory: Memory, each: OpenField, answer: str, text: str | None) -> Review:
    if text is not None:
        return reviewing.replace(memory, each.id, each.field, text)
    return reviewing.pick(memory, each.id, each.field, int(answer))


def _edit_value(each: OpenField, settings: Settings, output: Output) -> str:
    value = each.versions[0].value
    before = value if isinstance(value, str) else "" if value is None else str(value)
    file = editor.edit_text(before, each.id, editor.program(settings, output))
    try:
        return editor.read_back(file).strip()
    finally:
        editor.discard(file)


def render(review: Review) -> list[Block]:
    if not review.total:
        return [Line("Nothing to review.")]
    blocks = _undisputed(review)
    if not review.open:
        return blocks
    for each in review.open:
        blocks += [*_dispute(each), Line("")]
    fields = count(len(review.open), "field")
    of_sync = {each.versions[0].machine is not None for each in review.open}
    where = {False: "both branches", True: "two machines"}
    places = " or ".join(where[each] for each in sorted(of_sync))
    return [
        *blocks,
        Line(f"{fields} changed on {places}. Version 1 is in effect:"),
        Line(
            "Keep it with `ctx review --accept ID`, or take another with `--pick ID --version=N`."
        ),
    ]


def _undisputed(review: Review) -> list[Block]:
    """Everything but conflicting changes, below the number of all."""
    return [
        Line(f"{count(review.total, 'open decision')}."),
        Line(""),
        *_untrusted(review),
        *_branch(review),
        *_proposals(review),
        *_learnings(review),
        *_imports(review),
    ]


def render_settled(done: Review) -> list[Block]:
    blocks: list[Block] = []
    for each, value in zip(done.settled, done.current, strict=True):
        blocks.append(Line(f"Settled: {each.short_id} {each.field}: {each.title}"))
        blocks.append(Line(f"  now: {_value(each.field, value)}"))
    return [*blocks, Line(f"{len(done.open):,} still open.")] if done.open else blocks


def render_decided(done: Review) -> list[Block]:
    decided = [("Accepted", each) for each in done.accepted]
    decided += [("Rejected", each) for each in done.rejected]
    blocks: list[Block] = [
        Line(f"{word}: {each.short_id} {', '.join(each.asked)}: {each.title}")
        for word, each in decided
    ]
    of_branch = [("Given to agents", each) for each in done.accepted_branch]
    of_branch += [("Rejected", each) for each in done.rejected_branch]
    blocks += [
        Line(f"{word}: {each.kind} {each.short_id} {each.title}".rstrip())
        for word, each in of_branch
    ]
    nodes = [("Accepted", each) for each in done.accepted_nodes]
    nodes += [("Rejected", each) for each in done.rejected_nodes]
    blocks += [Line(f"{word} {each.kind}: {cut(each.title)}") for word, each in nodes]
    if not blocks:
        return [Line("No proposals.")]
    left = [Line(f"{count(done.total, 'open decision')} left.")]
    return [*blocks, *left] if done.total else blocks


def _branch(review: Review) -> Iterator[Block]:
    if not review.branch:
        return
    now = clock.now_ms()
    yield Line("From this branch, not given to agents:", "heading")
    for each in review.branch:
        about = [each.author, age_text(each.at, now) if each.at else ""]
        named = " ".join(["", each.title] if each.title else [])
        yield Line(f"{each.kind} {each.short_id} ({', '.join(filter(None, about))}){named}")
        yield from (Line(f"    {line}") for line in each.changes)
    if not any(each.title for each in review.branch):
        yield Line("Their text is shown on a terminal only, because agents read pipes.")
    yield Line("Decide with `ctx review accept ID` or `ctx review reject ID`; `--all` for all.")
    yield Line("")


def _proposals(review: Review) -> Iterator[Block]:
    if not review.proposals:
        return
    now = clock.now_ms()
    yield Line("Agents propose:", "heading")
    rows = [
        (
            each.short_id,
            each.type,
            age_text(each.at, now),
            f"{', '.join(each.asked)}{' (done)' if each.is_done else ''}",
            each.title,
        )
        for each in review.proposals
    ]
    yield Table(("id", "type", "age", "asks for", "text"), rows, ("id", "", "age", "", "text"))
    yield Line("Decide with `ctx review accept ID` or `ctx review reject ID`; `--all` for all.")
    if any(each.is_done for each in review.proposals):
        yield Line("(done): already pinned by an agent. Accept keeps the pin, reject removes it.")
    yield Line("")


def _learnings(review: Review) -> Iterator[Block]:
    if not review.learning_count:
        return
    yield Line("Learnings, inferred from sessions:", "heading")
    rows = [
        (each.short_id, each.category, f"{each.confidence:.2f}", each.node.content)
        for each in review.learnings
    ]
    yield Table(("id", "category", "confidence", "text"), rows, ("id", "", "number", "text"))
    yield from beyond_limit(review.learning_count - len(rows))
    yield Line("Confirm with `ctx review accept ID`. A rejected learning is not learned again.")
    yield Line("")


def _imports(review: Review) -> Iterator[Block]:
    if not review.import_count:
        return
    yield Line("Imported text, given to agents as a quotation:", "heading")
    rows = [
        (each.short_id, each.node.type, each.program, each.node.content) for each in review.imports
    ]
    yield Table(("id", "type", "from", "text"), rows, ("id", "", "", "text"))
    yield from beyond_limit(review.import_count - len(rows))
    yield Line("`ctx review accept ID`: it counts as said by you. `ctx review reject ID` hides it.")
    yield Line("")


def _untrusted(review: Review) -> Iterator[Block]:
    if review.untrusted:
        yield Line("The memory of this project is not trusted:", "heading")
        yield Line(f"{review.untrusted.reason}. Agents get nothing of it. Decide with `ctx trust`.")
        yield Line("")


def _dispute(each: OpenField) -> Iterator[Block]:
    now = clock.now_ms()
    yield Line(f"{each.type} {each.short_id} {each.field}: {each.title}", "heading")
    rows = [
        (
            f"{version.number}{' (current)' if version.number == 1 else ''}",
            version.machine or (short(version.commit) if version.commit else "staged"),
            age_text(version.at, now),
            version.author,
            _value(each.field, version.value),
        )
        for version in each.versions
    ]
    place, style = ("machine", "") if each.versions[0].machine else ("commit", "id")
    headings = ("version", place, "age", "author", "value")
    yield Table(headings, rows, ("", style, "age", "dim", "text"))


def _value(field: str, value: Any) -> str:
    if field == LIFE:
        return "edited" if value else "deleted"
    if value is None:
        return "(removed)"
    return cut(str(value), _LONGEST)
