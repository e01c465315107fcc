"""`ctx ingest`

A file of a project is named by its path inside it: the store travels to other machines. A file from
elsewhere is the person's own, and so is its node.
"""

import argparse
import hashlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from ctx import disk, tokens
from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.errors import ContentRefused, UsageError
from ctx.ids import NodeId
from ctx.memory import model, sources
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import Evidence, Redaction
from ctx.redaction import redact
from ctx.workspace import Memory


class Options(NamedTuple):
    paths: Sequence[str] = ()
    text: str | None = None
    """What came on stdin, instead of a path."""
    name: str = ""
    """What that text is called."""
    tags: Sequence[str] = ()
    summary: str | None = None


class IngestedFile(NamedTuple):
    """A file that is a node now."""

    path: str
    """Inside the project, or from the root of the file system."""
    scope: str
    """Whose store has it: `project` or `user`."""
    state: str
    """`new`, `changed`, or `unchanged`."""
    id: NodeId
    short_id: str
    token_estimate: int
    supersedes: NodeId | None
    """The node of the previous content of the file."""


class RefusedPage(NamedTuple):
    path: str
    reason: str


class IngestResult(NamedTuple):
    """The answer of `ctx ingest`."""

    files: tuple[IngestedFile, ...]
    refused: tuple[RefusedPage, ...]
    redacted: tuple[Redaction, ...]


class _Page(NamedTuple):
    path: str
    text: str
    bytes: int
    scope: str | None
    """The store that it goes to; None: where what is stated goes."""


class _Place(NamedTuple):
    """How a file is called, and whose node it becomes."""

    name: str
    scope: str | None


class _FileIntake:
    """Files on their way into the graph, with what is given to each."""

    def __init__(self, tags: Sequence[str], summary: str | None, evidence: Evidence) -> None:
        self._tags = tags
        self._summary = summary
        self._evidence = evidence
        self.kept: list[IngestedFile] = []
        self.refused: list[RefusedPage] = []
        self.redacted: list[Redaction] = []

    def take(self, change: Change, page: _Page) -> None:
        try:
            content = redact(model.content(page.text))
        except ContentRefused as error:
            reason = error.message[:1].lower() + error.message[1:].rstrip(".")
            self.refused.append(RefusedPage(page.path, reason))
            return
        self.kept.append(self._keep(change, page, content.text))
        self.redacted += [Redaction(page.path, each.rule, each.line) for each in content.findings]

    def _keep(self, change: Change, page: _Page, content: str) -> IngestedFile:
        # Of what is kept: the hash of a text with its secret could be used to guess the secret.
        digest = hashlib.blake2b(content.encode("utf-8"), digest_size=16).hexdigest()
        size = tokens.estimate(content)
        scope = change.graph.scope
        before = change.graph.source_of(page.path)
        if before is not None and before.metadata.get("hash") == digest:
            change.update_node(before.id, summary=self._summary)
            for tag in self._tags:
                change.tag(before.id, tag)
            return IngestedFile(page.path, scope, "unchanged", before.id, "", size, None)
        node_id = change.add_node(
            "source",
            content,
            summary=self._summary or (before.summary if before else None),
            metadata={
                "path": page.path,
                "bytes": page.bytes,
                "hash": digest,
                sources.KEY: sources.REPOSITORY,
            },
        )
        # The tags of the old text apply to the new one.
        given = before.tags if before else ()
        replaced = model.replaced_tiers(given, self._tags)
        for tag in (*(tag for tag in given if tag not in replaced), *self._tags):
            change.tag(node_id, tag)
        if before is None:
            return IngestedFile(page.path, scope, "new", node_id, "", size, None)
        change.link(node_id, before.id, "SUPERSEDES", self._evidence)
        return IngestedFile(page.path, scope, "changed", node_id, "", size, before.id)


EXAMPLES = """
ctx ingest README.md --tag=project:shop --tag=type:documentation
ctx ingest docs/api.md docs/errors.md --tag=tier:reference
curl -s https://example.org/api.txt | ctx ingest - --name=api.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a text file (- reads stdin)")
    arguments.tags(parser, "a tag for each; repeat for several")
    parser.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
    parser.add_argument("--name", metavar="NAME", help="the name of text from stdin")
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    text = None
    if "-" in options.files:
        if not options.name:
            raise UsageError("Text from stdin needs a name.", hint="Add --name.")
        text = surroundings.read_stdin()
    elif options.name:
        raise UsageError(
            "--name is only for text from stdin.",
            hint="Leave it out, or use - instead of the file.",
        )
    paths = [path for path in options.files if path != "-"]
    wanted = Options(paths, text, options.name or "", options.tag, options.summary)
    with opening.adding(settings, output) as memory:
        ingested = ingest(memory, wanted)
        is_project = memory.project_memory is not None
    output.show(ingested, render)
    outside = [each for each in ingested.files if each.scope == USER] if is_project else []
    if outside:
        files = count(len(outside), "file is", "files are")
        output.note(f"{files} outside this project: added to your own store.")
    warn_of_redaction(ingested.redacted, output)
    return 1 if ingested.refused else 0


def render(ingested: IngestResult) -> list[Block]:
    blocks: list[Block] = []
    for state, label in (("new", "Ingested"), ("changed", "Ingested again")):
        files = [each for each in ingested.files if each.state == state]
        if files:
            blocks.append(Line(f"{label}:"))
            rows = [(e.short_id, e.path, count(e.token_estimate, "token")) for e in files]
            blocks += listing(("id", "path", "tokens"), rows, ("id", "", "dim"))
    unchanged = [each for each in ingested.files if each.state == "unchanged"]
    if unchanged:
        blocks.append(Line(f"{count(len(unchanged), 'file')} unchanged."))
    if ingested.refused:
        blocks.append(Line(f"Refused {count(len(ingested.refused), 'file')}:"))
        blocks += listing(("path", "reason"), [tuple(each) for each in ingested.refused])
    return blocks


def ingest(memory: Memory, options: Options) -> IngestResult:
    tags = model.tags(options.tags)
    if memory.project_tag and not any(tag.startswith("project:") for tag in tags):
        tags.append(memory.project_tag)
    limit = memory.config.integer("ingestion.max_file_bytes")
    # By whatever name a person calls a file, it is one.
    paths = [os.path.realpath(os.path.join(memory.folder, path)) for path in options.paths]
    found = [_read(path, limit, _place(memory, path)) for path in dict.fromkeys(paths)]
    if options.text is not None:
        found.append(_Page(options.name, options.text, len(options.text.encode("utf-8")), None))
    refused = [each for each in found if isinstance(each, RefusedPage)]
    pages: dict[str, list[_Page]] = {}
    for page in found:
        if isinstance(page, _Page):
            pages.setdefault(page.scope or memory.home, []).append(page)
    taking = _FileIntake(tags, options.summary, Evidence(memory.author, reason="the file changed"))
    if pages:
        with memory.transaction("ingest", *pages) as change:
            for scope, part in pages.items():
                for page in part:
                    taking.take(change.in_scope(scope), page)
    short = memory.graph.shown(each.id for each in taking.kept)
    files = tuple(each._replace(short_id=short[each.id]) for each in taking.kept)
    return IngestResult(files, (*refused, *taking.refused), tuple(taking.redacted))


def _place(memory: Memory, path: str) -> _Place:
    if memory.project_memory is None:
        return _Place(path, None)
    root = os.path.realpath(memory.project_memory.project.root)
    if path.startswith(os.path.join(root, "")):
        return _Place(os.path.relpath(path, root), PROJECT)
    return _Place(path, USER)


def _read(path: str, limit: int, place: _Place) -> _Page | RefusedPage:
    """The text of a file, or why it has none."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return RefusedPage(place.name, "its name is not UTF-8")
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return RefusedPage(place.name, "it is a folder")
        if not stat.S_ISREG(status.st_mode):
            return RefusedPage(place.name, "it is not a plain file")
        if status.st_size > limit:
            most = f"{limit:,} bytes (ingestion.max_file_bytes)"
            return RefusedPage(
                place.name, f"its {status.st_size:,} bytes are over the limit of {most}"
            )
        data = disk.read_plain(path, limit)
    except OSError as error:
        return RefusedPage(place.name, f"it cannot be read: {error.strerror}")
    if b"\0" in data:
        return RefusedPage(place.name, "it is binary")
    try:
        return _Page(place.name, data.decode("utf-8-sig"), len(data), place.scope)
    except UnicodeDecodeError:
        return RefusedPage(place.name, "it is not UTF-8 text")
