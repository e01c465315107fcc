"""Say of something that an agent was given that it is wrong, or useless.

What is wrong is given to no agent again, and neither are passages that say the same; the right text
takes its place. What is useless is given only with a prompt that names its subject. A verdict is
one change, so `ctx undo` takes it back. Nothing is fitted from verdicts.
"""

from typing import NamedTuple

from ctx.context import layer_rows
from ctx.context.contexts import COMMANDS
from ctx.context.layer_lines import digest
from ctx.errors import AmbiguousId, NodeNotFound, UsageError
from ctx.ids import NodeId, short
from ctx.markdown import flat
from ctx.memory import model
from ctx.memory.changes import Change
from ctx.memory.graph import USER
from ctx.memory.model import Node
from ctx.operations import add, sessions, visibility, why
from ctx.operations.verdicts import ACTION, TAGS, Word, text_keys
from ctx.operations.why import ReceiptDetails, ReceiptNode
from ctx.workspace import Memory

_SHORTEST_PREFIX = 4
_STATED = ("fact", "decision", "pattern", "hypothesis", "open-question")
"""Types of what people state. The right text for anything else is a fact."""


class JudgeResult(NamedTuple):
    """The answer of `ctx why --wrong` and `ctx why --useless`."""

    receipt: str
    item: str
    """Its label."""
    text: str
    verdict: Word
    change: str | None
    """What `ctx undo` takes to take it back; None if nothing changed."""
    node: NodeId
    """The item, or the node with the text of a passage or a command."""
    instead: NodeId | None
    """The node with the right text."""


def find_item(explained: ReceiptDetails, named: str) -> ReceiptNode:
    """The item of a receipt by its number, its label, or the beginning of its id."""
    wanted = named.strip()
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= len(explained.items):
        item = explained.items[int(wanted) - 1]
    else:
        item = _item_named(explained, wanted)
    if item.content is None:
        raise NodeNotFound(
            f"The text of {item.label} is not here any more.",
            hint="A node of another project can be marked in that project.",
        )
    if item.kind == "changed file":
        raise UsageError("A changed file cannot be marked as wrong or useless.")
    return item


def _item_named(explained: ReceiptDetails, wanted: str) -> ReceiptNode:
    found = {
        each.id or each.label + each.updated_at: each
        for each in explained.items
        if wanted in (each.label, each.label.partition(":")[2])
        or (len(wanted) >= _SHORTEST_PREFIX and each.id.startswith(wanted.upper()))
    }
    if len(found) == 1:
        return found.popitem()[1]
    hint = f"`ctx why {explained.receipt}` shows the numbers of its items."
    if found:
        candidates = "\n".join(f"  {each.label}" for each in found.values())
        raise AmbiguousId(f"Several items begin with {wanted[:40]}.", detail=candidates, hint=hint)
    raise NodeNotFound(f"The receipt has no item {wanted[:40]!r}.", hint=hint)


def judge(
    memory: Memory, explained: ReceiptDetails, item: ReceiptNode, word: Word, instead: str = ""
) -> JudgeResult:
    """Store a verdict on an item of a receipt, with the right text if there is one."""
    if memory.environment.in_agents_shell:
        raise UsageError(
            "Only a person can mark something as wrong or useless.",
            hint="Run it in your own terminal, or use the page: `ctx ui`.",
        )
    known = item.verdict
    done = JudgeResult(
        *(explained.receipt, item.label, item.content or "", word, None),
        *(known.node if known else item.id, known.instead if known else None),
    )
    if known and known.word == word and not instead.strip():
        return done
    if done.instead and instead.strip():
        raise UsageError(
            f"Its right text is {short(done.instead)}.",
            hint=f"`ctx edit {short(done.instead)}` changes it.",
        )
    nodes = list(memory.graph.nodes([done.node] if done.node else []))
    same = _observations_of(memory, item)
    scopes = dict.fromkeys([each.scope for each in (*nodes, *same)] or [USER])
    with memory.transaction(ACTION, *scopes, *(() if item.id else (USER,))) as change:
        for node in (*nodes, *same):
            _mark(memory, change.in_scope(node.scope), node, word)
        if not nodes:
            nodes = [_add_text(memory, change.in_scope(USER), explained, item, word)]
        done = done._replace(change=change.id, node=nodes[0].id)
        if instead.strip():
            done = done._replace(instead=_add_right_text(memory, nodes[0], instead))
    return done


def _mark(memory: Memory, here: Change, node: Node, word: Word) -> None:
    if model.JUDGED not in node.metadata:
        if word == "wrong":
            visibility.hide(memory, [node.id])
        else:
            # A tier would give it to every session, and what was wrong is off-context.
            hidden = (model.OFF_CONTEXT,) if model.WRONG in node.tags else ()
            for tier in (model.PINNED, model.WORKING, model.REFERENCE, *hidden):
                here.untag(node.id, tier)
    for other, tag in TAGS.items():
        if other == word:
            here.tag(node.id, tag)
        else:
            here.untag(node.id, tag)


def _observations_of(memory: Memory, item: ReceiptNode) -> list[Node]:
    """The observations of the same session that say what a passage says."""
    if item.id or item.layer == COMMANDS:
        return []
    words = layer_rows.all_words(item.content or "")
    return [
        node
        for node in sessions.tagged_nodes(memory, _session_of(memory, item))
        if node.type == "observation"
        and node.superseded_by is None
        and layer_rows.say_the_same(words, layer_rows.all_words(node.content))
    ]


def _session_of(memory: Memory, item: ReceiptNode) -> str:
    found = why.excerpts_at(memory, item)
    return next((each.session for each in found if each.text == item.content), "")


def _add_text(
    memory: Memory, here: Change, explained: ReceiptDetails, item: ReceiptNode, word: Word
) -> Node:
    """Add a node for a passage or a command: no other has the verdict on it."""
    text = item.content or ""
    digests = [digest(text), digest(flat(text))]
    about: dict[str, object] = {model.JUDGED: text_keys(explained.project, item, digests)}
    tags = [TAGS[word], model.OFF_CONTEXT, model.project_tag(explained.project)]
    if item.layer == COMMANDS:
        tags.append(model.REMOVED_COMMAND)
    else:
        about["session"] = _session_of(memory, item)
    node_id = here.add_node("observation", text, metadata=about)
    for tag in filter(None, tags):
        here.tag(node_id, tag)
    here.write()
    return here.graph.node(node_id)


def _add_right_text(memory: Memory, node: Node, text: str) -> NodeId:
    """Add what the user says instead, where the node was given."""
    tiers = [tag for tag in node.tags if tag in model.TIERS and tag != model.OFF_CONTEXT]
    projects = [tag for tag in node.tags if tag.startswith("project:")]
    # A superseded learning would be learned again; a rejected one is not.
    is_learning = visibility.is_learning(node)
    options = add.Options(
        text,
        node.type if node.type in _STATED else "fact",
        [*(tiers or add.tier_for_agents(memory, ())), *projects],
        supersedes=() if is_learning else (node.id,),
        everywhere=is_learning,
    )
    return add.add(memory, options).node.id
