"""Store the answer of a model, and what it mentions, as one step of the session.

In a project the answer is an object, and a node summarises it; elsewhere the node has all of it.
Existing files and items of the code that it names are linked to it. The answer is treated like any
foreign text: quoted, never pinned, and never executed.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

from ctx import clock
from ctx.codebase.code_names import CodeNames
from ctx.errors import AmbiguousId, ContentRefused
from ctx.ids import NodeId, ObjectId
from ctx.llm import answer_parts
from ctx.llm.answer_parts import AnswerMention, CodeBlock
from ctx.llm.protocol import Stop, Usage
from ctx.memory import lookups, model, sources
from ctx.memory.changes import Change
from ctx.memory.model import Evidence, Node, Redaction
from ctx.narrative import document_names, document_roles, log_files, streams
from ctx.objects import object_store
from ctx.objects.object_types import StepKind
from ctx.operations import document
from ctx.operations.add_document import of_task_and_project
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.redaction import redact
from ctx.workspace import Memory

TAG = "answer"
TITLE = "Answer of "
"""How what is kept of an answer begins, also in the log."""

MOST_MENTIONS = 200
LONGEST_TEXT = 500_000
"""Characters of an answer that are kept."""

_SAID_BY = "model"
_TOOL = "llm"
_CONFIDENCE = 700
"""In per mille: it exists, but only the model says that it is related."""
_MOST_LOOKED_UP = 100
"""Names that are looked up in the code: in a large project each takes some milliseconds."""
_LONGEST_TASK = 300
_LONGEST_KEPT_TASK = 2_000
_MOST_LISTED_DECISIONS = 5
_MOST_LISTED_BLOCKS = 50
_NOT_OURS = (".git", ".ctx")


class ModelResponse(NamedTuple):
    """An answer, and what is known about how it came to be."""

    text: str
    task: str = ""
    model: str = ""
    backend: str = ""
    usage: Usage | None = None
    stop: Stop = "end"
    receipt: str | None = None
    """Of the pack that was asked about."""
    files: Sequence[str] = ()
    """Those in the pack: an answer may name them by the end of their path."""


class CodeMention(NamedTuple):
    """Something in the code that an answer mentions."""

    type: str
    """`file` or `item`."""
    name: str
    line: int
    """Of the answer."""


class KeptAnswer(NamedTuple):
    """What became of an answer."""

    node: Node
    short_id: str
    new: bool
    """Whether the same answer to the same task was not there already."""
    blob: ObjectId | None
    """The object that holds all of it, in a project."""
    mentions: tuple[CodeMention, ...]
    code_blocks: tuple[CodeBlock, ...]
    decisions: tuple[str, ...]
    cut: int
    """Characters at its end that were not kept."""
    given: tuple[str, ...]
    """Tags that it has beside its own."""
    redacted: tuple[Redaction, ...]


def keep_answer(memory: Memory, response: ModelResponse) -> KeptAnswer:
    """Keep an answer. The same answer to the same task is kept once."""
    response = response._replace(
        task=_storable_text(response.task), model=_storable_text(response.model)
    )
    whole = _storable_text(response.text).strip()
    if not whole:
        raise ContentRefused("The answer is empty.")
    # A secret is known by all of it, so more is looked through than is kept.
    clean = redact(whole[: 2 * LONGEST_TEXT])
    text = clean.text[:LONGEST_TEXT]
    task = redact(" ".join(response.task.split())).text
    parts = answer_parts.parse_answer(text)
    # Before anybody is kept waiting: names are looked up in the code.
    spoken_of = list(_mentioned_anchors(memory, parts.mentions, response.files))
    found = tuple(Redaction("answer", each.rule, each.line) for each in clean.findings)
    is_whole = len(whole) <= 2 * LONGEST_TEXT and len(clean.text) <= LONGEST_TEXT
    cut = 0 if is_whole else max(0, len(whole) - LONGEST_TEXT)
    with memory.transaction("llm") as change:
        key = sha256(f"{task}\0{text}".encode()).hexdigest()[:32]
        node_id = lookups.source_of_answer(change.graph.connection, key)
        is_new = node_id is None
        given: list[str] = []
        if node_id is None:
            metadata = _metadata(response, task, parts) | {"answer": key}
            blob = _blob(change, text) if memory.project_memory else None
            if blob:
                metadata["blob"] = blob
            content = _content(response, task, parts if blob else None, text)
            node_id = change.add_node("source", content, metadata=metadata)
            given = of_task_and_project(memory, [TAG])
            for tag in (TAG, *given):
                change.tag(node_id, tag)
            _link(change, node_id, spoken_of, blob or "")
    graph = memory.graph
    node = graph.node(node_id)
    return KeptAnswer(
        node,
        graph.shown([node_id])[node_id],
        is_new,
        node.metadata.get("blob"),
        tuple(CodeMention(anchor.type, anchor.name, line) for anchor, line in spoken_of),
        parts.code_blocks,
        parts.decisions,
        cut,
        tuple(given),
        (*found, *(each for each in change.redacted if each not in found)),
    )


def write_to_log(memory: Memory, kept: KeptAnswer) -> str | None:
    """Write an answer to the log, for people, and return its path; None without a project store.

    The log has no node: the answer has one, which names the model.
    """
    if memory.project_memory is None:
        return None
    at = clock.now_ms()
    path = document_names.log_path(
        at, within=streams.folder_of(document_roles.MAIN_STREAM, memory.session)
    )
    said = log_files.note(kept.node.content, at, memory.author, memory.session, [TAG])
    with document.new_files(memory) as create:
        create(path, document.require_fitting(redact(said).text))
    return document.shown_path(path)


def _storable_text(text: str) -> str:
    """A text that can be kept: what no file and no store takes is marked as lost."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _blob(change: Change, text: str) -> ObjectId:
    """Put the answer beside the records of a change."""
    kept = object_store.blob(f"{text}\n".encode())
    change.objects.append(kept)
    change.kind = change.kind or StepKind.NOTE
    return kept.id


def _metadata(
    response: ModelResponse, task: str, parts: answer_parts.AnswerParts
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "task": task[:_LONGEST_KEPT_TASK],
        "model": response.model,
        "backend": response.backend,
        "stop": response.stop,
        "receipt": response.receipt,
        "decisions": list(parts.decisions),
        "code_blocks": [each._asdict() for each in parts.code_blocks[:_MOST_LISTED_BLOCKS]],
        "said_by": _SAID_BY,
        sources.KEY: sources.AGENT,
    }
    if response.usage:
        told["input_tokens"] = response.usage.input_tokens
        told["output_tokens"] = response.usage.output_tokens
    return {name: value for name, value in told.items() if value not in ("", None, [])}


def _content(
    response: ModelResponse, task: str, parts: answer_parts.AnswerParts | None, text: str
) -> str:
    """What the node says: of an answer that is kept beside it, the beginning and the decisions."""
    line = task if len(task) <= _LONGEST_TASK else f"{task[: _LONGEST_TASK - 1].rstrip()}…"
    who = " ".join(response.model.split()) or "a model"
    heading = f"{TITLE}{who}" + (f" to: {line}" if line else "")
    if response.stop in ("cut", "interrupted"):
        heading += f" ({response.stop})"
    if parts is None:
        most = model.LARGE_CONTENT - len(heading)
        return f"{heading}\n\n{text if len(text) <= most else f'{text[: most - 1].rstrip()}…'}"
    decided = "\n".join(f"- Decision: {each}" for each in parts.decisions[:_MOST_LISTED_DECISIONS])
    return "\n\n".join(filter(None, (heading, parts.paragraph, decided)))


# Mentions


def _link(
    change: Change, node_id: NodeId, spoken_of: Sequence[tuple[Anchor, int]], blob: str
) -> None:
    for anchor, line in spoken_of:
        anchors.put(change, anchor)
        said = Evidence(_TOOL, _CONFIDENCE, "named in the answer", span=str(line), blob=blob)
        change.link(node_id, anchor.id, "MENTIONS", said)


def _mentioned_anchors(
    memory: Memory, spoken: Sequence[AnswerMention], files: Sequence[str]
) -> Iterator[tuple[Anchor, int]]:
    """What there is of the things that words may name, each once, and in which line."""
    if memory.project is None:
        return
    seen: set[Anchor] = set()
    left = _MOST_LOOKED_UP
    with CodeNames(memory) as names:
        within = _Files(memory, files)
        for word, line in spoken:
            found = within.named(word)
            if found is None and left and "/" not in word:
                left -= 1
                with suppress(AmbiguousId):
                    found = names.anchor(word)
            if found and found not in seen:
                seen.add(found)
                yield found._replace(tag=memory.project_tag or ""), line
                if len(seen) == MOST_MENTIONS:
                    return


class _Files:
    """The files of a project, by what a model may call them."""

    def __init__(self, memory: Memory, packed: Sequence[str]) -> None:
        root = memory.project_memory.project.root if memory.project_memory else memory.place.folder
        self._root = os.path.realpath(root)
        self._bases = dict.fromkeys((os.path.realpath(memory.folder), self._root))
        self._packed = packed

    def named(self, word: str) -> Anchor | None:
        for base in self._bases:
            if (inside := self._project_path(os.path.join(base, word))) is not None:
                return anchors.file(inside)
        ends = [path for path in dict.fromkeys(self._packed) if path.endswith(f"/{word}")]
        if len(ends) == 1 and (inside := self._project_path(os.path.join(self._root, ends[0]))):
            return anchors.file(inside)
        return None

    def _project_path(self, path: str) -> str | None:
        """A path from the root; None for what is no file of the project, also by way of a link."""
        if not os.path.isfile(path):
            return None
        inside = os.path.relpath(os.path.realpath(path), self._root)
        is_outside = inside.startswith("../") or inside.partition("/")[0] in _NOT_OURS
        return None if is_outside else inside
