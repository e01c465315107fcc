"""`ctx review`"""

import argparse
import os
from collections.abc import Iterator

from ctx import clock
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, Table, count, since
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.ids import short
from ctx.memory.disputes import LIFE
from ctx.operations import review as reviewing
from ctx.operations.review import Open, Review, Version
from ctx.workspace import Memory

EXAMPLES = """
ctx review                                  what two branches changed at once; asks on a terminal
ctx review --accept 01M7ESYZ1SB4            keep what holds
ctx review --pick 01M7ESYZ1SB4 --version=2  let the other one hold
ctx review --format json                    for scripts
"""

_LONGEST = 200


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    kept = what.add_argument("--accept", metavar="ID", help="keep what holds, of this node")
    picked = what.add_argument(
        "--pick", metavar="ID", help="let another version hold, of this node"
    )
    shared.completing(kept, "node")
    shared.completing(picked, "node")
    parser.add_argument(
        "--version", type=int, metavar="N", help="the version to pick, as it is numbered"
    )
    parser.add_argument(
        "--field", metavar="NAME", help="only this field (default: all of the node)"
    )
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if (options.version is None) != (options.pick is None):
        raise UsageError(
            "--pick names a node, and --version what to take.",
            hint="ctx review --pick ID --version=2",
        )
    if options.field and not (options.accept or options.pick):
        raise UsageError("--field says what to accept or pick.", hint="ctx review --help")
    if not (options.accept or options.pick):
        with opening.reading(settings, output) as memory:
            found = reviewing.review(memory)
        if not (found.open and output.is_interactive and output.is_for_people):
            output.show(found, render)
            return
        _ask(found, settings, output)
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


def _ask(found: Review, settings: Settings, output: Output) -> None:
    """Go through what is open, one by one, until the person has had enough."""
    for each in found.open:
        output.preview(list(_dispute(each)))
        answer = _answer(each, output)
        if answer in ("q", ""):
            return
        if answer == "s":
            continue
        # The editor may be open for hours: nothing is held meanwhile.
        text = _edited(each, settings, output) if answer == "e" else None
        with opening.writing(settings, output) as memory:
            _show(_settled(memory, each, answer, text), output)


def _answer(each: Open, output: Output) -> str:
    others = "/".join(str(version.number) for version in each.versions)
    edit = "" if each.field == LIFE else "[e]dit, "
    known = {str(version.number) for version in each.versions} | {"s", "q", ""}
    known |= set() if each.field == LIFE else {"e"}
    while True:
        answer = output.ask(f"Which one holds: {others}, {edit}[s]kip, [q]uit?").lower()[:1]
        if answer in known:
            return answer


def _settled(memory: Memory, each: Open, answer: str, text: str | None) -> Review:
    if text is not None:
        return reviewing.replace(memory, each.id, each.field, text)
    return reviewing.pick(memory, each.id, each.field, int(answer))


def _edited(each: Open, settings: Settings, output: Output) -> str:
    import shutil

    from ctx.cli import edit

    value = each.versions[0].value
    before = value if isinstance(value, str) else "" if value is None else str(value)
    file = edit.edited(before, each.id, edit.editor_of(settings, output))
    try:
        return edit.read_back(file).strip()
    finally:
        shutil.rmtree(os.path.dirname(file), ignore_errors=True)


def render(found: Review) -> list[Block]:
    if not found.open:
        return [Line("Nothing to review.")]
    blocks: list[Block] = []
    for each in found.open:
        blocks += [*_dispute(each), Line("")]
    fields = count(len(found.open), "field")
    return [
        *blocks,
        Line(f"{fields} changed on two sides at once. The first version of each holds:"),
        Line("`ctx review --accept ID` keeps it, `--pick ID --version=N` takes another."),
    ]


def render_settled(done: Review) -> list[Block]:
    told: list[Block] = [
        Line(f"Settled: {each.short_id} {each.field}: {each.title}") for each in done.settled
    ]
    return [*told, Line(f"{len(done.open):,} still open.")] if done.open else told


def _dispute(each: Open) -> Iterator[Block]:
    now = clock.now_ms()
    yield Line(f"{each.type} {each.short_id} {each.field}: {each.title}", "heading")
    rows = [
        (
            f"{version.number}{' holds' if version.number == 1 else ''}",
            short(version.commit) if version.commit else "staged",
            since(version.at, now),
            version.author,
            _value(each, version),
        )
        for version in each.versions
    ]
    headings = ("version", "commit", "age", "author", "value")
    yield Table(headings, rows, ("", "id", "age", "dim", "text"))


def _value(each: Open, version: Version) -> str:
    if each.field == LIFE:
        return "edited" if version.value else "deleted"
    if version.value is None:
        return "(taken away)"
    text = " ".join(str(version.value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"
