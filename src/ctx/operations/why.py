"""Receipts: what an agent was given, when, why, and at what cost."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Literal, NamedTuple

from ctx import clock, disk
from ctx.capture import steps
from ctx.capture.session_state import SHORTEST_PREFIX
from ctx.codebase import anchor_check
from ctx.context.contexts import COMMANDS, HINT, MEMORY, RECALLED, SAID, WORDS
from ctx.context.layer_lines import digest
from ctx.errors import AmbiguousId, ContentRefused, ReceiptNotFound
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import receipts
from ctx.memory.code_anchors import AnchorState
from ctx.memory.model import Node
from ctx.memory.receipts import HookReceipt, PackReceipt, Receipt, ReceiptItem
from ctx.operations.context_items import layer_reason, match_reason, terms_of_words
from ctx.operations.verdicts import Verdict, Verdicts
from ctx.synthesis import excerpt_table
from ctx.synthesis.excerpt_table import StoredExcerpt
from ctx.workspace import Memory

Kind = Literal[
    "node",
    "passage of a session",
    "passage of a file",
    "passage of a document",
    "command",
    "changed file",
]

_ALL = 2**31
_KINDS: Mapping[str, Kind] = {
    SAID: "passage of a session",
    WORDS: "passage of a session",
    COMMANDS: "command",
}
"""What an item is that has no id, by its layer."""
_CHUNK_KINDS: Mapping[str, Kind] = {
    "FileContent": "passage of a file",
    "SymbolDefinition": "passage of a file",
    "NarrativeExcerpt": "passage of a document",
}
_PLURALS = {
    "passage of a session": "passages of sessions",
    "passage of a file": "passages of files",
    "passage of a document": "passages of documents",
}


class ReceiptNode(NamedTuple):
    """Something that an agent was given, mostly a node, and its current state."""

    id: NodeId
    """Empty if it is not a node."""
    label: str
    tokens: int
    updated_at: str
    """The version that was given."""
    content: str | None
    """The current content of a node, or the text of a passage, a command or a path; None if it was
    deleted, or if no open store has it."""
    changed: bool | None
    """Whether it has changed since; None if no open store has it, such as a node of another
    project or branch."""
    layer: str = "memory"
    """Its part of the context: `memory`, `standing`, `rules`, `commands`, `past_work`, `code`,
    `sessions`, `learnings`, `before_edit`; with a prompt `said`, `hint` or `recalled`."""
    source: str | None = None
    """Its source; None if no open store has it."""
    anchors: tuple[AnchorState, ...] = ()
    """The code that it is about, and the state of that code."""
    kind: Kind = "node"
    reason: str = ""
    """Why it was given. A pack has the reasons of its chunks."""
    verdict: Verdict | None = None
    """What the user has said about it."""


class ReceiptDetails(NamedTuple):
    """The answer of `ctx why`."""

    receipt: str
    session: str
    event: str
    at: str
    project: str | None
    tokens: int
    """Tokens of the whole text."""
    frame: int
    """Tokens of the text around the nodes or chunks: instructions, headings, and counts of what
    was left out."""
    items: tuple[ReceiptNode, ...]
    packed: PackReceipt | None = None
    """For a pack: why each part is in it, and what was left out."""
    counts: Mapping[str, int] = MappingProxyType({})
    """How many there are of each kind."""
    verdicts: Mapping[str, int] = MappingProxyType({})
    """How many the user called `wrong` and `useless`."""


class ReceiptList(NamedTuple):
    """The answer of `ctx why --list`."""

    receipts: tuple[Receipt, ...]
    more: int = 0
    """How many older receipts there are."""
    verdicts: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    """By receipt, how many items the user called `wrong` and `useless`."""


def why(memory: Memory, named: str | None) -> ReceiptDetails:
    """A receipt by name, or the last one of a session: in this project, else in any.

    A person's own packs are of no session.
    """
    if named is not None:
        return _receipt_details(memory, _find_receipt(memory, named))
    latest = _last_of_agents(memory, memory.project) or _last_of_agents(memory, None)
    if latest is None:
        if last(memory, 1).receipts:
            raise ReceiptNotFound(
                "No session was given anything yet.",
                hint="`ctx why cli` shows your own last pack.",
            )
        raise ReceiptNotFound(
            "No receipts yet.",
            hint="`ctx install` registers the hooks; `ctx doctor` checks them.",
        )
    return _receipt_details(memory, latest)


def counts(receipt: Receipt) -> dict[str, int]:
    """How many things of each kind an agent was given."""
    if receipt.packed is not None:
        return dict(Counter(chunk_kind(chunk.kind) for chunk in receipt.packed.chunks))
    return dict(Counter(map(_kind, receipt.items)))


def counts_text(of_kinds: Mapping[str, int]) -> str:
    """`3 nodes, 1 command and 2 passages of sessions`; empty for nothing."""
    words = [
        f"{number:,} {kind if number == 1 else _PLURALS.get(kind, f'{kind}s')}"
        for kind, number in of_kinds.items()
    ]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def chunk_kind(kind: str) -> Kind:
    """What a chunk of a pack is."""
    return _CHUNK_KINDS.get(kind, "node")


def _kind(item: ReceiptItem) -> Kind:
    if not item.id and item.label.startswith("said:"):
        return "passage of a session"
    return "node" if item.id else _KINDS.get(item.layer, "changed file")


def last(memory: Memory, limit: int) -> ReceiptList:
    """The last receipts of this project, or all of them if the limit is 0.

    Outside of a project, or if the project has none yet, receipts of all projects count.
    """
    most = limit or _ALL
    of_project = _newest(memory, memory.project, most)
    return of_project if of_project.receipts else _newest(memory, None, most)


def _find_receipt(memory: Memory, text: str) -> Receipt:
    """The receipt whose id begins with the text, or the last one of such a session."""
    waiting = _spooled_receipts(memory)
    matches = [each for each in waiting if each.id.startswith(text)]
    matches += receipts.with_prefix(memory.local, text)
    matches = matches or _of_session(memory, waiting, text)
    if not matches:
        raise ReceiptNotFound(f"There is no receipt {text[:80]!r}, and no session of that name.")
    several = {each.id for each in matches if each.id.startswith(text)}
    if len(several) > 1:
        candidates = "\n".join(f"  {each.id}  {each.at}  {each.event}" for each in matches[:5])
        raise AmbiguousId(f"Several receipts begin with {text}.", detail=candidates)
    return matches[0]


def _of_session(memory: Memory, waiting: Sequence[Receipt], text: str) -> list[Receipt]:
    sessions = {each.session for each in waiting} | receipts.sessions(memory.local)
    if text not in sessions and len(text) >= SHORTEST_PREFIX:
        meant = sorted(each for each in sessions if each.startswith(text))
        if len(meant) > 1:
            candidates = "\n".join(f"  {each}" for each in meant[:5])
            raise AmbiguousId(f"Several sessions begin with {text}.", detail=candidates)
        text = next(iter(meant), text)
    pending = [each for each in waiting if each.session == text]
    return pending + receipts.of_session(memory.local, text)


def _last_of_agents(memory: Memory, project: str | None) -> Receipt | None:
    waiting = [each for each in _spooled_receipts(memory) if project in (None, each.project)]
    every = waiting + receipts.newest_of_agents(memory.local, project)
    return max(every, key=lambda each: each.id, default=None)


def _newest(memory: Memory, project: str | None, limit: int) -> ReceiptList:
    waiting = [each for each in _spooled_receipts(memory) if project in (None, each.project)]
    by_id = {each.id: each for each in receipts.newest(memory.local, project, limit)} | {
        each.id: each for each in waiting
    }
    listed = [by_id[receipt_id] for receipt_id in sorted(by_id, reverse=True)[:limit]]
    every = receipts.ids(memory.local, project).union(by_id)
    verdicts = Verdicts(memory)
    counted = {each.id: verdicts.counts(each) for each in listed}
    return ReceiptList(
        tuple(listed),
        len(every) - len(listed),
        {receipt_id: words for receipt_id, words in counted.items() if words},
    )


def _spooled_receipts(memory: Memory) -> list[Receipt]:
    """The receipts that are still in the spool, newest first."""
    home = memory.environment.user_store.home
    names = spool.pending_names(home, spool.mark_of(home, memory.environment.graph_file))
    return list(receipts_in_files(home, reversed(names)))


def receipts_in_files(home: str, names: Iterable[str]) -> Iterator[Receipt]:
    """The receipts among files of the spool."""
    for name in names:
        if spool.kind_of(name) == spool.RECEIPT:
            # Another process may remove it at this moment.
            with suppress(OSError, ValueError, ContentRefused):
                yield read_receipt(name, disk.read(spool.path_of(home, name))).receipt


def read_receipt(name: str, data: bytes) -> HookReceipt:
    """Read a receipt from a file of the spool."""
    try:
        value = json.loads(data)
    except ValueError:
        raise ContentRefused("It is not JSON.") from None
    receipt_id = spool.id_of(name)
    return receipts.read(receipt_id, clock.iso(spool.made_ms(receipt_id)), value)


def _receipt_details(memory: Memory, receipt: Receipt) -> ReceiptDetails:
    ids = [item.id for item in receipt.items if item.id]
    now = {node.id: node for node in memory.graph.nodes(ids)}
    states = anchor_check.check(memory, now.values())
    asked = terms_of_words(_prompt(memory, receipt))
    verdicts = Verdicts(memory)
    given = (
        _given_node(memory, receipt, item, now.get(item.id), asked)._replace(
            anchors=states.get(item.id, ())
        )
        if item.id
        else _given_text(memory, item, asked)
        for item in receipt.items
    )
    items = tuple(
        each._replace(verdict=verdicts.of(receipt, item))
        for each, item in zip(given, receipt.items, strict=True)
    )
    item_tokens = sum(item.tokens for item in items)
    if receipt.packed is not None:
        item_tokens = receipt.packed.narrative + sum(each.tokens for each in receipt.packed.chunks)
    frame = receipt.tokens - item_tokens
    return ReceiptDetails(
        *receipt[:6], frame, items, receipt.packed, counts(receipt), verdicts.counts(receipt)
    )


def _prompt(memory: Memory, receipt: Receipt) -> str:
    """The prompt with which something was given; empty if it is not stored."""
    if not any(item.layer in (SAID, HINT) for item in receipt.items):
        return ""
    prompts = [
        each.text
        for each in steps.of_session(memory.local, receipt.session)
        if each.kind == "prompt" and each.at <= receipt.at
    ]
    return prompts[-1] if prompts else ""


def _given_node(
    memory: Memory,
    receipt: Receipt,
    item: ReceiptItem,
    now: Node | None,
    asked: Mapping[str, frozenset[str]],
) -> ReceiptNode:
    changed: bool | None = None
    if now is not None:
        changed = now.updated_at != item.updated_at
    elif any(graph.was_deleted(item.id) for graph in memory.graph.graphs):
        changed = True
    return ReceiptNode(
        *(item.id, item.label, item.tokens, item.updated_at),
        content=now.content if now else None,
        changed=changed,
        layer=item.layer,
        source=now.source if now else None,
        reason=_reason(receipt, item, now, asked),
    )


def _reason(
    receipt: Receipt, item: ReceiptItem, now: Node | None, asked: Mapping[str, frozenset[str]]
) -> str:
    if receipt.packed is not None:
        return ""
    if item.layer in (SAID, HINT):
        return match_reason(asked, now.content if now else "")
    if receipt.event == spool.EVENTS["prompt-submit"] and item.layer == MEMORY:
        return "it matches the prompt, or the agent asked for it"
    if receipt.event not in spool.EVENTS.values():
        return layer_reason(RECALLED, now)
    return layer_reason(item.layer, now)


def _given_text(
    memory: Memory, item: ReceiptItem, asked: Mapping[str, frozenset[str]]
) -> ReceiptNode:
    """Something that is not a node. Its label begins with what it is."""
    given = ReceiptNode(
        *(item.id, item.label, item.tokens, item.updated_at),
        content=item.label.partition(":")[2],
        changed=False,
        layer=item.layer,
        kind=_kind(item),
        reason=layer_reason(item.layer, None),
    )
    if given.kind != "passage of a session":
        return given
    there = excerpts_at(memory, item)
    same = [each for each in there if item.digest in (digest(each.text), digest(flat(each.text)))]
    if not same and not item.digest and len(there) == 1:
        # Receipts of older versions have no checksum.
        same = there
    if not same:
        return given._replace(content=None, changed=None, reason="said in an earlier session")
    found = same[0]
    is_found = item.layer == SAID
    reason = match_reason(asked, found.text, found.kind) if is_found else given.reason
    return given._replace(content=found.text, source=found.source, reason=reason)


def excerpts_at(memory: Memory, item: ReceiptItem | ReceiptNode) -> list[StoredExcerpt]:
    """The excerpts of the moment of a passage."""
    name = item.label.partition(":")[2]
    session = name.rpartition(".")[0] or name
    return excerpt_table.at_time(memory.local, session, item.updated_at)
