"""A node with a document: create both, and change the text in the file.

A task or a decision of a project is a node and a file that people edit. Its text, and the tags and
mentions meant for readers, are in the file; its state (status, tier, what it belongs to) is in
records. Outside of a project there is only the node.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from sqlite3 import DatabaseError
from typing import NamedTuple

from ctx import clock, disk, git, ids
from ctx.codebase.code_names import UnknownName
from ctx.errors import ContentRefused, CtxError, PathRefused, StagingConflict, UsageError
from ctx.ids import NodeId, Ulid
from ctx.memory import model, records, replay
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT
from ctx.memory.model import Evidence, Node, Redaction
from ctx.narrative import (
    document_format,
    document_names,
    document_roles,
    narrative_files,
    narrative_scan,
    streams,
)
from ctx.operations import relate
from ctx.operations.add import DefaultTier
from ctx.project import anchors
from ctx.project.document_nodes import content_of, digest, owner
from ctx.redaction import redact
from ctx.workspace import Memory

LARGEST = 1_000_000
"""Bytes of a document. It is for people to read."""

_LONGEST_TITLE = 300
# What these tags say is no matter of the text.
_RECORDED = ("tier:", "task:", "project:")


class Options(NamedTuple):
    """What a task or a decision says."""

    title: str
    """One line. What follows it is the beginning of the body."""
    body: str = ""
    tags: Sequence[str] = ()
    mentions: Sequence[str] = ()
    """Paths, names in the code, or ids of nodes."""
    stream: str = document_roles.MAIN_STREAM
    everywhere: bool = False
    """Whether it belongs to no project, whatever the folder."""
    default_tier: DefaultTier = "inherited"


class AddDocumentResult(NamedTuple):
    """The answer of `ctx add note`, `ctx add task` and `ctx add decision`."""

    node: Node
    short_id: str
    number: str | None
    """`task_0043` or `decision_0007`: what people call it; None where there is no such file."""
    path: str | None
    """Its file, from the project's root."""
    given: tuple[str, ...]
    """Tags that were added to the requested ones."""
    redacted: tuple[Redaction, ...]
    unknown: tuple[UnknownName, ...] = ()
    """Mentions that are not in the code: they are stored as written."""
    unclear: tuple[UnknownName, ...] = ()
    """Mentions that are the name of several things, kept likewise."""


class DocumentDraft(NamedTuple):
    """A document before it has a place, without secrets."""

    title: str
    body: str
    tags: tuple[str, ...]
    """Those that are for its readers."""
    recorded: tuple[str, ...]
    """Those that are not."""
    mentions: tuple[str, ...]
    redacted: tuple[Redaction, ...]
    unknown: tuple[UnknownName, ...] = ()
    unclear: tuple[UnknownName, ...] = ()

    @property
    def content(self) -> str:
        return document_format.content(
            document_format.Document(self.title, self.body, None, None, (), ())
        )


def draft(options: Options) -> DocumentDraft:
    """The checked input."""
    first, _, rest = model.content(options.title).partition("\n")
    title = redact(" ".join(first.split()))
    if len(title.text) > _LONGEST_TITLE:
        raise ContentRefused(
            f"The title has {len(title.text):,} characters; the limit is {_LONGEST_TITLE}.",
            hint="Use a shorter one, and put the rest into --body.",
        )
    body = redact(document_format.tidy(f"{rest}\n\n{options.body}".replace("\0", "\ufffd")))
    tags = model.tags(options.tags)
    mentions = tuple(dict.fromkeys(" ".join(word.split()) for word in options.mentions))
    for word in (*tags, *mentions):
        if not word or redact(word).findings:
            problem = "contains a secret" if word else "is empty"
            raise ContentRefused(f"A tag or a mention {problem}.", hint="Nothing was stored.")
    found = [("title", each) for each in title.findings] + [("body", f) for f in body.findings]
    return DocumentDraft(
        title.text,
        body.text,
        tuple(tag for tag in tags if not tag.startswith(_RECORDED)),
        tuple(tag for tag in tags if tag.startswith(_RECORDED)),
        mentions,
        tuple(Redaction(where, each.rule, each.line) for where, each in found),
    )


def resolve_mentions(memory: Memory, options: Options) -> DocumentDraft:
    """The input, with mentions resolved to names in the code."""
    drafted = draft(options)
    if options.everywhere:
        return drafted
    meant = relate.resolve_mentions(memory, drafted.mentions, drafted.content)
    return drafted._replace(**meant._asdict())


def require_fitting(text: str) -> str:
    """The text of a document, if it is not too large for one."""
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > LARGEST:
        raise ContentRefused(
            f"The document would have {size:,} bytes; the limit is {LARGEST:,}.",
            hint="Keep it as a file of its own, and write what matters about it.",
        )
    return text


def mention(memory: Memory, change: Change, node_id: NodeId, words: Sequence[str]) -> None:
    """Link a node to what it mentions, if it has no file."""
    for word in words:
        try:
            target = change.graph.find(word)
        except CtxError:
            anchor = anchors.mentioned_anchor(word)._replace(tag=memory.project_tag or "")
            anchors.put(change, anchor)
            target = anchor.id
        change.link(node_id, target, "MENTIONS", Evidence(memory.author))


class PlacedDocument(NamedTuple):
    """A document and its path."""

    path: str
    """Below `narrative/`."""
    text: str
    content: str
    """What its node says."""
    node_id: NodeId
    created: str
    """When: the same in the file and in the node."""


def place_document(
    memory: Memory, kind: document_names.Kind, drafted: DocumentDraft, stream: str
) -> PlacedDocument:
    """A new document with the next number. To be asked under the project's lock.

    It names its node: so it is the same one also where the file comes before the records.
    """
    assert memory.project_memory is not None
    folder = memory.project_memory.project.narrative
    number = document_names.next_number(folder, kind)
    if streams.stream_named(stream) == streams.WORK_STREAM:
        raise UsageError(
            f"The stream `work` is for notes of one session, and a {kind} is for everybody.",
            hint="Leave out --stream, or name a feature.",
        )
    within = streams.folder_of(stream, memory.session)
    path_of = document_names.task_path if kind == "task" else document_names.decision_path
    text = document_format.render(
        drafted.title,
        drafted.body,
        created=(created := clock.iso(clock.now_ms())),
        tags=drafted.tags,
        mentions=drafted.mentions,
        more=[("node", node_id := ids.new_node_id())],
    )
    # What is harmless in two places may be a secret where they meet.
    clean = redact(require_fitting(text)).text
    content = document_format.content(document_format.parse(clean))
    path = path_of(number, drafted.title, within)
    return PlacedDocument(path, clean, content, node_id, created)


@contextmanager
def new_files(memory: Memory) -> Iterator[Callable[[str, str], None]]:
    """Creates documents as part of a change: if the change fails, they are removed."""
    project = memory.project_memory
    assert project is not None
    folder = project.project.narrative
    made: list[str] = []

    def create(path: str, text: str) -> None:
        # Also one that has its name already when the folder cannot be synced goes again.
        made.append(path)
        try:
            narrative_files.create(folder, path, text)
        except PathRefused:
            # It exists, and somebody else wrote it.
            made.remove(path)
            raise
        project.note_written(path, text)

    try:
        yield create
    except (CtxError, OSError, DatabaseError):
        for path in made:
            if not _is_recorded(memory, path):
                disk.discard(narrative_scan.located(folder, path))
        raise


def _is_recorded(memory: Memory, path: str) -> bool:
    """Whether a node has the document. A step may be there although its writing failed at last."""
    assert memory.project_memory is not None
    memory.project_memory.close()
    try:
        return owner(memory.project_memory.graph.connection, path) is not None
    except (CtxError, OSError, DatabaseError):
        # Unknown: then the text of the user stays.
        return True


def shown_path(path: str) -> str:
    """A document's path from the project's root."""
    return f".ctx/narrative/{path}"


def document_name(path: str) -> str | None:
    """What people call a document: `task_0043`, `decision_0007`."""
    number = document_names.number_of(path)
    return f"decision_{number}" if number and number.isdigit() else number


def file_of(node: Node) -> str | None:
    """The document that a node has, below `narrative/`, whether or not it is still there."""
    path = node.metadata.get("file")
    return path if node.scope == PROJECT and isinstance(path, str) else None


class NodeDocument(NamedTuple):
    """A node's document as it is on disk."""

    folder: str
    path: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def digest(self) -> str:
        return digest(content_of(self.data))


def edited_by_people(memory: Memory, node: Node) -> NodeDocument | None:
    """The document in which a node's words stand, if it is there.

    What is in the log is written once: a note that is changed is changed in memory alone.
    """
    path = file_of(node)
    if path is None or memory.project_memory is None or document_roles.place(path).role == "log":
        return None
    folder = memory.project_memory.project.narrative
    seen = narrative_scan.read(folder, path)
    return None if seen is None else NodeDocument(folder, path, seen)


def is_shared(memory: Memory, found: NodeDocument) -> bool:
    """Whether git has the document, so that it may be on other branches too."""
    checkout = memory.project_memory.project.checkout if memory.project_memory else None
    return checkout is not None and bool(
        git.tracked_files(checkout, f"{found.folder}/{found.path}")
    )


@contextmanager
def rewrite_with_node(document: NodeDocument) -> Iterator[Callable[[str], None]]:
    """Changes a document along with its node: where that fails, it is as it was."""
    written: list[str] = []

    def rewrite(text: str) -> None:
        # Also what is in place already when the folder cannot be synced is taken back.
        written.append(text)
        if not narrative_files.replace(
            document.folder, document.path, require_fitting(text), expected=document.data
        ):
            raise StagingConflict(
                f"The file {document.path} was changed just now.",
                hint="Nothing was stored. Check the file, and run the command again.",
            )

    try:
        yield rewrite
    except (CtxError, OSError, DatabaseError):
        for text in written:
            now = text.encode("utf-8", "surrogateescape")
            narrative_files.replace(document.folder, document.path, document.text, expected=now)
        raise


def with_content(text: str, content: str) -> str:
    """A document with other words: their first line is the title, if it has one."""
    title, body = None, content
    if document_format.parse(text).title:
        title, _, body = content.partition("\n")
    return _with_change_time(text, document_format.rewritten(text, title=title, body=body))


def _with_change_time(before: str, after: str) -> str:
    """With the time of the change, in a document that says such things."""
    present = document_format.parse(after)
    if before == after or not (present.created or present.updated):
        return after
    return document_format.rewritten(after, updated=clock.iso(clock.now_ms()))


def take_back(memory: Memory, change: Change, files: ExitStack) -> list[str]:
    """Write what an undoing says over documents into them; those in git keep their words.

    The documents that do, from the project's root.
    """
    kept: list[str] = []
    said = [each for each in change.records if each.kind == "node.put" and "over" in each.body]
    for record in said:
        for node in change.graph.nodes([NodeId(Ulid(record.subject))]):
            found = edited_by_people(memory, node)
            if found is None or found.digest != record.body["over"]:
                continue
            if is_shared(memory, found):
                kept.append(shown_path(found.path))
            else:
                text = redact(with_content(found.text, record.body["content"])).text
                if document_roles.place(found.path).role == "decision":
                    files.callback(project_decisions, memory)
                files.enter_context(rewrite_with_node(found))(text)
    return kept


def orphaned_documents(memory: Memory, node_ids: Iterable[str]) -> Iterator[str]:
    """The documents, from the project's root, that are there although their nodes are gone."""
    if memory.project_memory is not None:
        for node_id in node_ids:
            about = records.records_about(memory.project_memory.graph.connection, node_id, "node.")
            state = replay.node(about)
            path = state.metadata.get("file") if state else None
            if isinstance(path, str) and narrative_scan.read(
                memory.project_memory.project.narrative, path
            ):
                yield shown_path(path)


def project_decisions(memory: Memory) -> None:
    """Bring the page of all decisions up to date. It is derived: failing at it harms nothing."""
    from ctx.narrative import decisions_page

    if memory.project_memory is not None:
        try:
            decisions_page.write_decisions(memory.project_memory.project.narrative)
        except CtxError:
            pass
