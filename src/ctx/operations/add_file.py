"""Snapshot files into the staging of a session."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, redaction
from ctx.code import file_selection
from ctx.codebase.extraction_result import ExtractionResult
from ctx.ids import ObjectId, SessionId
from ctx.objects import trees
from ctx.objects.commits import Head, WorkStep
from ctx.objects.object_store import Object, blob, derived_id, typed
from ctx.objects.object_types import FileVersion, StepKind
from ctx.objects.repository import Repository
from ctx.project import staging
from ctx.workspace import Workspace

if TYPE_CHECKING:
    from ctx.code.lookup import Code
    from ctx.codebase.extraction import Extraction
    from ctx.config.resolve import Config

# A large tree is written in parts, so that it need not fit into memory.
_MOST_PENDING = 32 * 1024 * 1024


class Options(NamedTuple):
    paths: Sequence[str]
    folder: str
    """What the paths are relative to."""
    force: bool = False
    """Also files that are ignored."""
    allow_secrets: bool = False
    extract_semantics: bool = False
    """Also read out of them what they define, import and call."""
    written: bool = False
    """Whether the session has written them."""


class AddedFile(NamedTuple):
    path: str
    state: str
    """`new` or `changed`."""
    blob_id: ObjectId
    bytes: int


class AddFileResult(NamedTuple):
    session: SessionId
    work_commit: ObjectId | None
    """None where every file was unchanged, or refused."""
    added: tuple[AddedFile, ...]
    unchanged: tuple[str, ...]
    restored: tuple[str, ...]
    """Unchanged, but the object that holds them was missing or damaged and is whole again."""
    refused: tuple[file_selection.RefusedFile, ...]
    parked: SessionId | None = None
    """Where this session's work of another branch was set aside."""
    semantics: ExtractionResult | None = None
    """Their definitions, imports and calls, if requested."""

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.added)


def add_file(
    workspace: Workspace, options: Options, tick: clock.Tick = clock.no_tick
) -> AddFileResult:
    """Stage what differs from what is committed or staged already."""
    rules = rules_of(workspace.config)._replace(include_ignored=options.force)
    project, repository = workspace.project, workspace.repository
    chosen, refused = file_selection.choose(project, options.folder, options.paths, rules)
    paths = [candidate.path for candidate in chosen] if options.extract_semantics else ()
    # The code is looked at before anybody has to wait for the lock.
    with _code(workspace, paths) as code, repository.locked("ctx add file"):
        heads = repository.current()
        ids = [head.id for head in heads]
        steps, parked = staging.open_steps(repository, workspace.session, ids)
        known = KnownFiles(repository, heads, steps)
        taking = _FileStager(workspace, known, options)
        if options.extract_semantics:
            from ctx.codebase.extraction import Extraction

            taking.extraction = Extraction(workspace, code, known.committed, steps)
        for number, candidate in enumerate(chosen):
            tick(number, len(chosen))
            content = file_selection.read(project, candidate, rules)
            if isinstance(content, file_selection.RefusedFile):
                refused.append(content)
            elif refusal := taking.take(candidate, content):
                refused.append(refusal)
        step, semantics = taking.done()
    return AddFileResult(
        workspace.session,
        step,
        tuple(taking.added),
        tuple(taking.unchanged),
        tuple(taking.restored),
        tuple(sorted(refused)),
        parked,
        semantics,
    )


def rules_of(config: "Config") -> file_selection.SelectionRules:
    """Which files are kept, as the settings say."""
    return file_selection.SelectionRules(
        ignore_globs=config.texts("ingestion.ignore_globs"),
        max_file_bytes=config.integer("ingestion.max_file_bytes"),
    )


@contextmanager
def _code(workspace: Workspace, paths: Sequence[str]) -> "Iterator[Code | None]":
    """The index of the code with some files in it, if there are any and it can be had."""
    if not paths:
        yield None
        return
    from ctx.codebase import extraction

    code = extraction.open_with(workspace, paths)
    with code or nullcontext():
        yield code


class _FileStager:
    """The files of one command."""

    def __init__(self, workspace: Workspace, known: "KnownFiles", options: Options) -> None:
        self.added: list[AddedFile] = []
        self.unchanged: list[str] = []
        self.restored: list[str] = []
        self.extraction: Extraction | None = None
        self._workspace = workspace
        self._known = known
        self._options = options
        self._objects: list[Object] = []
        self._payload: list[ObjectId] = []
        self._pending = 0

    def take(
        self, candidate: file_selection.SelectedFile, content: bytes
    ) -> file_selection.RefusedFile | None:
        """Add a file if it has changed; otherwise return why not."""
        path, kept = candidate.path, blob(content)
        before = self._known.blob_at(path)
        if before == kept.id:
            if self.extraction and self.extraction.is_missing(path, kept.id):
                self.extraction.take(path, content, kept.id)
            is_restored = self._known.restore(path, kept)
            (self.restored if is_restored else self.unchanged).append(path)
            return None
        if not self._options.allow_secrets and (secret := secret_in(candidate, content)):
            return secret
        self.added.append(AddedFile(path, "changed" if before else "new", kept.id, len(content)))
        if self.extraction:
            self.extraction.take(path, content, kept.id)
        version = version_of(self._workspace.repo_id, path, kept)
        self._payload.append(version.id)
        self._objects += [kept, version]
        self._pending += len(content)
        if self._pending > _MOST_PENDING:
            self._workspace.repository.staged.write(self._objects)
            self._objects, self._pending = [], 0
        return None

    def done(self) -> tuple[ObjectId | None, ExtractionResult | None]:
        """The step, if there is anything to stage, and what was read out of the files."""
        semantics = None
        if self.extraction:
            semantics, batch = self.extraction.done()
            if batch is not None:
                self._objects.append(batch)
                self._payload.append(batch.id)
        if not self._payload:
            return None, semantics
        workspace = self._workspace
        step = staging.append(
            workspace.repository,
            workspace.session,
            StepKind.FILE_WRITE if self._options.written else StepKind.FILE_READ,
            self._objects,
            self._payload,
        )
        return step, semantics


class KnownFiles:
    """What a path holds already: staged in this session, else committed."""

    def __init__(
        self, repository: Repository, heads: Sequence[Head], steps: Sequence[WorkStep]
    ) -> None:
        self._repository = repository
        self._staged = staging.files(repository, steps)
        self.committed = trees.CombinedTree(repository.objects, heads)

    def blob_at(self, path: str) -> ObjectId | None:
        if path in self._staged:
            return self._staged[path].blob_id
        return self.committed.blob_at(path)

    def restore(self, path: str, kept: Object) -> bool:
        """Write an object again if the store that must have it has lost or damaged it."""
        repository = self._repository
        store = repository.staged if path in self._staged else repository.objects
        if store.is_sound(kept.id):
            return False
        store.write([kept])
        return True


def version_of(repo_id: str, path: str, content: Object) -> Object:
    """What a file holds, as a step names it."""
    text = content.payload
    return typed(
        FileVersion(
            path=path,
            file_id=derived_id("file", repo_id, path),
            blob_id=content.id,
            byte_count=len(text),
            line_count=text.count(b"\n") + (not text.endswith(b"\n") and bool(text)),
        )
    )


def secret_in(
    candidate: file_selection.SelectedFile, content: bytes
) -> file_selection.RefusedFile | None:
    """Why a file is not kept, where there is a secret in it."""
    if redaction.redact(candidate.path).findings:
        return file_selection.RefusedFile(
            candidate.path, "its name looks like a secret", candidate.named
        )
    found = redaction.redact(content.decode("utf-8", "surrogateescape")).findings
    if not found:
        return None
    where = f"line {found[0].line}"
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    reason = f"it contains a secret: {found[0].rule} in {where}{more} (--allow-secrets adds it)"
    return file_selection.RefusedFile(candidate.path, reason, candidate.named)
