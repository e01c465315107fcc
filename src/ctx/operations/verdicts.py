"""What the user has said about things that agents were given: that they are wrong, or useless.

A verdict on a node is a tag of the node. For a passage of a session or a command, a node with its
text has the tag; its metadata identifies what it is about. `judge.py` writes both.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from ctx.context.contexts import COMMANDS
from ctx.ids import NodeId
from ctx.memory import lookups, model, records
from ctx.memory.graph import Graph
from ctx.memory.lookups import JudgedNode
from ctx.memory.receipts import Receipt, ReceiptItem
from ctx.workspace import Memory

ACTION = "verdict"

Word = Literal["wrong", "useless"]
TAGS: dict[Word, str] = {"wrong": model.WRONG, "useless": model.USELESS}
_WORDS: dict[str, Word] = {tag: word for word, tag in TAGS.items()}


class Verdict(NamedTuple):
    """What the user has said about an item of a receipt."""

    word: Word
    node: NodeId
    """The item, or the node with the text of a passage or a command."""
    instead: NodeId | None
    """The node with the right text."""
    change: str
    """What `ctx undo` takes to take it back."""


class Verdicts:
    """The verdicts in the stores that are open."""

    def __init__(self, memory: Memory) -> None:
        self._by_key: dict[str, tuple[Graph, JudgedNode]] = {}
        for graph in memory.graph.graphs:
            for row in lookups.judged(graph.connection):
                about = model.from_json(row.metadata).get(model.JUDGED)
                for key in about if isinstance(about, list) else [row.id]:
                    self._by_key[str(key)] = graph, row

    def counts(self, receipt: Receipt) -> dict[str, int]:
        """How many items of a receipt have each verdict."""
        found = (self._by_key.get(_key(receipt, item)) for item in receipt.items)
        return dict(Counter(_WORDS[each[1].tag] for each in found if each))

    def of(self, receipt: Receipt, item: ReceiptItem) -> Verdict | None:
        found = self._by_key.get(_key(receipt, item))
        if found is None:
            return None
        graph, row = found
        made = records.about_key(graph.connection, row.id, "tag.", row.tag)[-1]
        if row.superseded_by:
            # The right text may have come later.
            for added in records.records_about(graph.connection, row.superseded_by, "node.")[:1]:
                made = added if added.action == ACTION else made
        return Verdict(_WORDS[row.tag], row.id, row.superseded_by, made.change)


def _key(receipt: Receipt, item: ReceiptItem) -> str:
    return item.id or text_keys(receipt.project, item, [item.digest])[0]


class GivenText(Protocol):
    """A passage or a command in a receipt."""

    @property
    def label(self) -> str: ...
    @property
    def updated_at(self) -> str: ...
    @property
    def layer(self) -> str: ...


def text_keys(project: str | None, item: GivenText, digests: Iterable[str]) -> list[str]:
    """What identifies a passage, in any receipt, or a command of a project."""
    if item.layer == COMMANDS:
        return [f"{project or ''} {item.label}"]
    return [f"{item.updated_at} {each}" for each in dict.fromkeys(digests)]
