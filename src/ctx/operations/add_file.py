"""Snapshot files into the staging of a session."""

from collections.abc import Sequence
from typing import NamedTuple

from ctx import clock, redaction
from ctx.code import files
from ctx.ids import ObjectId, SessionId
from ctx.objects import trees
from ctx.objects.model import FileVersion, StepKind
from ctx.objects.repository import Repository
from ctx.objects.store import Object, blob, derived_id, typed
from ctx.sessions import staging
from ctx.workspace import Workspace

# A large tree is written in parts, so that it need not fit into memory.
_MOST_PENDING = 32 * 1024 * 1024


class Options(NamedTuple):
    paths: Sequence[str]
    folder: str
    """What the paths are relative to."""
    force: bool = False
    """Also files that are ignored."""
    allow_secrets: bool = False


class Added(NamedTuple):
    path: str
    state: str
    """`new` or `changed`."""
    blob_id: ObjectId
    bytes: int


class FilesAdded(NamedTuple):
    session: SessionId
    work_commit: ObjectId | None
    """None where every file was unchanged, or refused."""
    added: tuple[Added, ...]
    unchanged: tuple[str, ...]
    restored: tuple[str, ...]
    """Unchanged, but the object that holds them was missing or damaged and is whole again."""
    refused: tuple[files.Refused, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.added)


def add_file(
    workspace: Workspace, options: Options, tick: clock.Tick = clock.no_tick
) -> FilesAdded:
    """Stage what differs from what is committed or staged already."""
    rules = files.Rules(
        ignore_globs=workspace.config.texts("ingestion.ignore_globs"),
        max_file_bytes=workspace.config.integer("ingestion.max_file_bytes"),
        include_ignored=options.force,
    )
    project = workspace.project
    chosen, refused = files.choose(project, options.folder, options.paths, rules)
    repository = workspace.repository
    with repository.locked("ctx add file"):
        known = _Known(repository, workspace.session)
        added: list[Added] = []
        unchanged: list[str] = []
        restored: list[str] = []
        objects: list[Object] = []
        versions: list[ObjectId] = []
        pending = 0
        for number, candidate in enumerate(chosen):
            tick(number, len(chosen))
            content = files.read(project, candidate, rules)
            if isinstance(content, files.Refused):
                refused.append(content)
                continue
            kept = blob(content)
            before = known.blob_at(candidate.path)
            if before == kept.id:
                (restored if known.restore(kept) else unchanged).append(candidate.path)
                continue
            if not options.allow_secrets and (secret := _secret_in(candidate, content)):
                refused.append(secret)
                continue
            state = "changed" if before else "new"
            added.append(Added(candidate.path, state, kept.id, len(content)))
            version = typed(_version(workspace.repo_id, candidate.path, kept))
            versions.append(version.id)
            objects += [kept, version]
            pending += len(content)
            if pending > _MOST_PENDING:
                repository.staged.write(objects)
                objects, pending = [], 0
        step = None
        if added:
            step = staging.append(
                repository, workspace.session, StepKind.FILE_READ, objects, versions
            )
    return FilesAdded(
        workspace.session,
        step,
        tuple(added),
        tuple(unchanged),
        tuple(restored),
        tuple(sorted(refused)),
    )


class _Known:
    """What a path holds already: staged in this session, else committed."""

    def __init__(self, repository: Repository, session: SessionId) -> None:
        self._repository = repository
        self._reader = repository.everything
        heads = repository.current()
        steps = staging.chain(repository, session)
        staging.require_here(repository, session, steps, [head.id for head in heads])
        self._staged = staging.files(repository, steps)
        self._joined = trees.merged(self._reader, heads)
        root = heads[0].commit.root_tree if heads else None
        self._committed = trees.Lookup(self._reader, root)

    def blob_at(self, path: str) -> ObjectId | None:
        if path in self._staged:
            return self._staged[path].blob_id
        if path in self._joined:
            return self._joined[path]
        return self._committed.blob_at(path)

    def restore(self, kept: Object) -> bool:
        """Write an object again if what we have of it is missing or damaged."""
        repository = self._repository
        if repository.objects.is_sound(kept.id) or repository.staged.is_sound(kept.id):
            return False
        repository.objects.write([kept])
        return True


def _version(repo_id: str, path: str, content: Object) -> FileVersion:
    text = content.payload
    return FileVersion(
        path=path,
        file_id=derived_id("file", repo_id, path),
        blob_id=content.id,
        byte_count=len(text),
        line_count=text.count(b"\n") + (not text.endswith(b"\n") and bool(text)),
    )


def _secret_in(candidate: files.Candidate, content: bytes) -> files.Refused | None:
    if redaction.redact(candidate.path).findings:
        return files.Refused(candidate.path, "its name looks like a secret", candidate.named)
    found = redaction.redact(content.decode("utf-8", "surrogateescape")).findings
    if not found:
        return None
    where = f"line {found[0].line}"
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    reason = f"it holds a secret: {found[0].rule} in {where}{more} (--allow-secrets adds it)"
    return files.Refused(candidate.path, reason, candidate.named)
