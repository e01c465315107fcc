"""A session as a story: what was asked, what was done, what failed and how it was fixed, what was
decided, and what became memory.

Each line names the steps that show it. A long session has several pages of turns; the rest of the
story is about the whole session. `session_markdown` writes the story down.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx.capture import session_state, step_positions, steps
from ctx.capture.session_state import Session
from ctx.capture.steps import ABOUT_SESSION, Step
from ctx.ids import NodeId, Ulid
from ctx.memory import records
from ctx.memory.model import ANCHOR_TYPES, Node
from ctx.operations import sessions, why
from ctx.operations.session_turns import (
    StoryStep,
    StoryTurn,
    TurnChunk,
    one_line,
    pages_of,
    story_step,
    turn_of,
)
from ctx.operations.sessions import SessionDetails
from ctx.operations.trace import evidence_of
from ctx.operations.why import ReceiptDetails
from ctx.synthesis.decisions import decisions
from ctx.synthesis.failure_edits import fixing_edits
from ctx.synthesis.failures import Failure, failures_in
from ctx.synthesis.timeline import Timeline
from ctx.workspace import Memory

_MOST_HITS = 100
_MOST_STEPS = 4_000
"""Steps of a session that are searched for failures and decisions."""
_MOST_FILE_STEPS = 20
_DECISIONS = ("decision", "rule", "correction")


class StoryOptions(NamedTuple):
    page: int = 0
    """From 1 on; 0 is the page of the step, else the first."""
    step: str = ""
    """The page with this step."""
    text: str = ""
    """Find the steps that contain this."""
    receipt: str = ""
    """Show all of this receipt."""


class StoryFailure(NamedTuple):
    """A check that failed, and what made it pass."""

    command: str
    messages: tuple[str, ...]
    failed: tuple[str, ...]
    """The steps at which it failed."""
    edits: tuple[str, ...]
    """The steps that fixed it."""
    files: tuple[str, ...]
    passed: str | None
    """The step at which it passed; None if it did not."""


class StoryDecision(NamedTuple):
    text: str
    kind: str
    steps: tuple[str, ...]
    node: str
    """The id of its node; empty if there is none yet."""


class StoryFile(NamedTuple):
    """A file that was read or written."""

    path: str
    reads: int
    writes: int
    added: int
    removed: int
    steps: tuple[str, ...]
    """The writes, else the reads."""


class StoryNode(NamedTuple):
    """A node that memory has from the session."""

    id: NodeId
    short_id: str
    kind: str
    title: str
    is_superseded: bool
    steps: tuple[str, ...]


WHOLE = StoryOptions()
"""The first page, and nothing in particular."""


class SessionStory(NamedTuple):
    details: SessionDetails
    turns: tuple[StoryTurn, ...]
    """Those of one page."""
    page: int
    pages: int
    text: str
    hits: tuple[StoryStep, ...]
    """The steps that contain the text, on all pages."""
    hit_count: int
    failures: tuple[StoryFailure, ...]
    decisions: tuple[StoryDecision, ...]
    files: tuple[StoryFile, ...]
    memory: tuple[StoryNode, ...]
    receipt: ReceiptDetails | None


def story(memory: Memory, named: str, options: StoryOptions = WHOLE) -> SessionStory:
    session = session_state.get(memory.local, named)
    kept = steps.of_session(memory.local, session.id)
    pages = pages_of(kept)
    page = _page_of(pages, options)
    hits = [each for each in kept if _contains(each, options.text)] if options.text.strip() else []
    lines = step_positions.lines_of(session.transcript, kept)
    nodes = _nodes(memory, session)
    return SessionStory(
        sessions.show(memory, session.id),
        tuple(turn_of(chunk, lines) for chunk in pages[page - 1]),
        page,
        len(pages),
        options.text.strip(),
        tuple(story_step(each, lines) for each in hits[:_MOST_HITS]),
        len(hits),
        _failures(kept),
        _decisions(session, kept, nodes),
        _files(kept),
        tuple(nodes),
        why.why(memory, options.receipt) if options.receipt else None,
    )


def _page_of(pages: Sequence[Sequence[TurnChunk]], options: StoryOptions) -> int:
    if options.page:
        return min(options.page, len(pages))
    for number, chunks in enumerate(pages, 1):
        if any(step.id == options.step for chunk in chunks for step in chunk.steps):
            return number
    return 1


def _contains(step: Step, text: str) -> bool:
    if step.kind in ABOUT_SESSION:
        return False
    wanted = text.strip().lower()
    texts = [step.text, step.path, step.output, step.excerpt, step.message, step.agent]
    texts += [f"{each.code} {each.message} {each.test}" for each in step.findings]
    texts += [each.name for each in step.changes]
    return any(wanted in each.lower() for each in texts)


# The whole session


def _failures(kept: Sequence[Step]) -> tuple[StoryFailure, ...]:
    """What failed, in order. Failures that came and went together are one."""
    timeline = Timeline(kept[-_MOST_STEPS:])
    together: dict[tuple[int, int | None], list[Failure]] = {}
    for failure in failures_in(timeline.steps):
        together.setdefault((failure.fails[0], failure.gone), []).append(failure)
    found = []
    for (_, gone), alike in sorted(together.items(), key=lambda each: each[0][0]):
        edits = fixing_edits(timeline, alike[0], gone) if gone is not None else ()
        changed = [timeline.steps[index] for index in edits]
        fails = sorted({index for each in alike for index in each.fails})
        messages = dict.fromkeys(each.first_message for each in alike if each.first_message)
        found.append(
            StoryFailure(
                alike[0].check.shown,
                tuple(map(one_line, messages)),
                tuple(timeline.steps[index].id for index in fails),
                tuple(each.id for each in changed),
                tuple(dict.fromkeys(each.path for each in changed if each.path)),
                None if gone is None else timeline.steps[gone].id,
            )
        )
    return tuple(found)


def _decisions(
    session: Session, kept: Sequence[Step], nodes: Sequence[StoryNode]
) -> tuple[StoryDecision, ...]:
    """What memory has, and what synthesis has not processed yet."""
    stored = [
        StoryDecision(each.title, each.kind, each.steps, each.id)
        for each in nodes
        if each.kind in _DECISIONS
    ]
    if kept and session.synthesised < kept[-1].id:
        known = {each.text for each in stored}
        stored += [
            StoryDecision(each.title, each.kind, each.evidence, "")
            for each in decisions(Timeline(kept[-_MOST_STEPS:]))
            if each.title not in known
        ]
    return tuple(sorted(stored, key=lambda each: each.steps[:1]))


def _files(kept: Sequence[Step]) -> tuple[StoryFile, ...]:
    """What was written first, then what was only read."""
    by_path: dict[str, list[Step]] = {}
    for step in kept:
        if step.path and step.kind in ("read", "write"):
            by_path.setdefault(step.path, []).append(step)
    found = []
    for path, touching in by_path.items():
        writes = [each for each in touching if each.kind == "write"]
        found.append(
            StoryFile(
                path,
                len(touching) - len(writes),
                len(writes),
                sum(each.added for each in writes),
                sum(each.removed for each in writes),
                tuple(each.id for each in (writes or touching)[:_MOST_FILE_STEPS]),
            )
        )
    return tuple(sorted(found, key=lambda each: (not each.writes, each.path)))


def _nodes(memory: Memory, session: Session) -> list[StoryNode]:
    """The nodes that were made of the session, and those that were stated in it."""
    tagged = sessions.tagged_nodes(memory, session.id)
    listed = {each.id for each in tagged}
    stated = [
        NodeId(Ulid(each))
        for connection in memory.graph.connections
        for each in records.nodes_put_in(connection, session.id)
        if each not in listed
    ]
    nodes = [
        each
        for each in [*tagged, *memory.graph.nodes(list(dict.fromkeys(stated)))]
        if each.type not in ANCHOR_TYPES
    ]
    short_ids = memory.graph.shown([each.id for each in nodes])
    return [_node(each, short_ids) for each in sorted(nodes, key=_node_order)]


def _node_order(node: Node) -> tuple[bool, str, str]:
    return node.type != "summary", node.created_at, node.id


def _node(node: Node, short_ids: Mapping[NodeId, str]) -> StoryNode:
    known = sessions.session_node(node, short_ids)
    return StoryNode(
        node.id,
        known.short_id,
        known.kind,
        one_line(known.title),
        node.superseded_by is not None,
        tuple(evidence_of(node.metadata)),
    )
