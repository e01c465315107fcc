"""Snapshot files into the staging of a session."""

from collections.abc import Sequence
from typing import NamedTuple

from ctx import clock, redaction
from ctx.code import files
from ctx.ids import ObjectId, SessionId
from ctx.objects import trees
from ctx.objects.commits import Head
from ctx.objects.model import FileVersion, StepKind
from ctx.objects.repository import Repository
from ctx.objects.store import Object, blob, derived_id, typed
from ctx.objects.work import Step
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
    parked: SessionId | None = None
    """Where this session's work of another branch was set aside."""

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
        heads = repository.current()
        ids = [head.id for head in heads]
        steps, parked = staging.open_steps(repository, workspace.session, ids)
        known = _Known(repository, heads, steps)
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
                (restored if known.restore(candidate.path, kept) else unchanged).append(
                    candidate.path
                )
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
        parked,
    )


class _Known:
    """What a path holds already: staged in this session, else committed."""

    def __init__(
        self, repository: Repository, heads: Sequence[Head], steps: Sequence[Step]
    ) -> None:
        self._repository = repository
        self._staged = staging.files(repository, steps)
        self._committed = trees.Present(repository.objects, heads)

    def blob_at(self, path: str) -> ObjectId | None:
        if path in self._staged:
            return self._staged[path].blob_id
        return self._committed.blob_at(path)

    def restore(self, path: str, kept: Object) -> bool:
        """Write an object again if the store that must have it has lost or damaged it."""
        repository = self._repository
        store = repository.staged if path in self._staged else repository.objects
        if store.is_sound(kept.id):
            return False
        store.write([kept])
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
