"""Store what an agent saw and did, as one step of its session.

The caller collects the observations, and they are stored together: one change, one work commit. An
observation that cannot be stored is reported and does not affect the others. The settings limit how
many files and how many bytes of files and output a step has.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ctx.code import file_selection
from ctx.errors import AmbiguousId, ContentRefused, NodeNotFound, PathRefused, UsageError
from ctx.ids import NodeId, ObjectId, SessionId
from ctx.memory import model
from ctx.memory.changes import Change
from ctx.memory.model import Redaction
from ctx.objects.object_store import blob
from ctx.objects.object_types import StepKind
from ctx.operations import add_command, add_document, compact, keep_answer, relate
from ctx.operations.add_file import KnownFiles, rules_of, secret_in, version_of
from ctx.operations.compact import CompactResult
from ctx.operations.keep_answer import ModelResponse
from ctx.operations.relate import Relation
from ctx.workspace import Memory, Workspace

if TYPE_CHECKING:
    from ctx.config.resolve import Config
    from ctx.project.project_memory import ProjectMemory

_LONGEST_LABEL = 80
_INVALID_INPUT_ERRORS = (UsageError, ContentRefused, NodeNotFound, AmbiguousId, PathRefused)
"""What is the matter with one observation, rather than with the store."""


class ObservedFile(NamedTuple):
    """A file, with what was in it when it was read or written."""

    path: str
    """From the project's root."""
    content: bytes
    written: bool


class ObservedCommand(NamedTuple):
    """A command, its output, and how it ended."""

    name: str
    output: bytes
    exit_code: int | None


class ObservedNote(NamedTuple):
    """Something that an agent wants to keep in mind."""

    text: str


Observation: TypeAlias = ObservedFile | ObservedCommand | ObservedNote | Relation | ModelResponse


class RejectedObservation(NamedTuple):
    """What could not be kept, and why."""

    what: str
    reason: str


class ObserveResult(NamedTuple):
    """What became of what was observed."""

    session: SessionId
    step: ObjectId | None
    """The work commit; None where nothing was new, or there is no project store."""
    files: tuple[str, ...]
    """Those whose content was not known."""
    nodes: tuple[NodeId, ...]
    """What was noted, the commands, and the answers of models."""
    edges: int
    """Relations that were not there before, also those of answers to what they mention."""
    not_kept: tuple[RejectedObservation, ...]
    redacted: tuple[Redaction, ...]
    """Secrets that were taken out of what is kept."""
    compacted: tuple[CompactResult, ...]
    """Sessions that have become too large or too old, and were compacted."""


def observe_file(
    workspace: Workspace, folder: str, path: str
) -> ObservedFile | RejectedObservation:
    """A file as it is now."""
    rules = rules_of(workspace.config)
    found = file_selection.choose_one(workspace.project, folder, path, rules)
    if isinstance(found, file_selection.RefusedFile):
        return _rejected(found)
    content = file_selection.read(workspace.project, found, rules)
    if isinstance(content, file_selection.RefusedFile):
        return _rejected(content)
    return _unless_secret(found, content)


def take(
    workspace: Workspace, folder: str, path: str, content: bytes
) -> ObservedFile | RejectedObservation:
    """A file as the caller says it was written."""
    rules = rules_of(workspace.config)
    found = file_selection.choose_one(workspace.project, folder, path, rules)
    if isinstance(found, file_selection.RefusedFile):
        return _rejected(found)
    if refused := file_selection.unfit(found, content, rules):
        return _rejected(refused)
    seen = _unless_secret(found, content)
    return seen._replace(written=True) if isinstance(seen, ObservedFile) else seen


def _unless_secret(
    candidate: file_selection.SelectedFile, content: bytes
) -> ObservedFile | RejectedObservation:
    refused = secret_in(candidate, content)
    return _rejected(refused) if refused else ObservedFile(candidate.path, content, written=False)


def _rejected(refused: file_selection.RefusedFile) -> RejectedObservation:
    # Advice for the command line does not apply here.
    return RejectedObservation(refused.path, refused.reason.partition(" (--")[0])


def keep(memory: Memory, observed: Sequence[Observation]) -> ObserveResult:
    """Take everything in, in the order in which it was observed."""
    seen = {each.path: each for each in observed if isinstance(each, ObservedFile)}
    said: list[NodeId] = []
    not_kept: list[RejectedObservation] = []
    new_files: list[str] = []
    redacted: list[Redaction] = []
    edges = 0
    limits = _StepLimits(memory.config)
    with memory.transaction("observe") as change:
        if memory.project_memory and seen:
            unknown = _unknown_files(memory.project_memory, memory.session, seen.values())
            fitting, too_much = limits.files(unknown)
            new_files = _keep_files(memory.project_memory, memory.session, fitting, change)
            not_kept += too_much
        for each in observed:
            try:
                match each:
                    case ObservedCommand(name, output, exit_code):
                        kept = limits.output(output)
                        ran = add_command.Options(name, [kept], exit_code)
                        said.append(add_command.add_command(memory, ran).node.id)
                        if len(kept) < len(output):
                            not_kept.append(RejectedObservation(_label(each), limits.cut_output))
                    case ObservedNote(text):
                        said.append(_note(memory, text))
                    case Relation():
                        edges += relate.relate(memory, each).new
                    case ModelResponse():
                        answered = keep_answer.keep_answer(memory, each)
                        said.append(answered.node.id)
                        edges += len(answered.mentions) if answered.new else 0
                        redacted += answered.redacted
            except _INVALID_INPUT_ERRORS as error:
                not_kept.append(RejectedObservation(_label(each), error.message))
    return ObserveResult(
        memory.session,
        change.step,
        tuple(new_files),
        tuple(said),
        edges,
        tuple(not_kept),
        (*change.redacted, *(each for each in redacted if each not in change.redacted)),
        tuple(compact.compact_due(memory)),
    )


class _StepLimits:
    """What a step has room for. Notes, relations and answers are small, and have no limit."""

    def __init__(self, config: "Config") -> None:
        self._most_files = config.integer("ingestion.max_files_per_step")
        self._most_bytes = config.integer("ingestion.max_bytes_per_step")
        self._bytes_left = self._most_bytes

    def files(
        self, observed: Iterable[ObservedFile]
    ) -> tuple[list[ObservedFile], list[RejectedObservation]]:
        """The files that fit, the first ones first, and those that do not."""
        fitting: list[ObservedFile] = []
        too_much: list[RejectedObservation] = []
        for each in observed:
            if len(fitting) == self._most_files:
                limit = f"{self._most_files:,} files (ingestion.max_files_per_step)"
            elif len(each.content) > self._bytes_left:
                limit = f"{self._most_bytes:,} bytes (ingestion.max_bytes_per_step)"
            else:
                self._bytes_left -= len(each.content)
                fitting.append(each)
                continue
            too_much.append(RejectedObservation(each.path, f"a step has at most {limit}"))
        return fitting, too_much

    def output(self, printed: bytes) -> bytes:
        """The end of an output, as far as it fits."""
        kept = printed[-self._bytes_left :] if self._bytes_left else b""
        if len(kept) < len(printed):
            # Half a line could be mistaken for a whole one.
            kept = kept.partition(b"\n")[2]
        self._bytes_left -= len(kept)
        return kept

    @property
    def cut_output(self) -> str:
        limit = f"{self._most_bytes:,} bytes (ingestion.max_bytes_per_step)"
        return f"the beginning of its output: a step has at most {limit}"


def _unknown_files(
    beside: "ProjectMemory", session: SessionId, seen: Iterable[ObservedFile]
) -> list[ObservedFile]:
    """Those that differ from what is known."""
    from ctx.project import staging

    repository = beside.repository
    known = KnownFiles(repository, repository.current(), staging.chain(repository, session))
    return [each for each in seen if known.blob_at(each.path) != blob(each.content).id]


def _keep_files(
    beside: "ProjectMemory", session: SessionId, new: Sequence[ObservedFile], change: Change
) -> list[str]:
    """Put files into a change."""
    workspace = Workspace(beside.project, beside.config, beside, session)
    for each in new:
        content = blob(each.content)
        change.versions += [content, version_of(workspace.repo_id, each.path, content)]
        change.kind = StepKind.FILE_WRITE if each.written else change.kind or StepKind.FILE_READ
    return [each.path for each in new]


def _note(memory: Memory, text: str) -> NodeId:
    if not text.strip():
        raise ContentRefused("The note is empty.")
    tags = model.tags([add_document.NOTE])
    given = add_document.of_task_and_project(memory, tags)
    with memory.transaction("observe") as change:
        node_id = change.add_node("observation", text.strip(), metadata=memory.source_metadata)
        for tag in (*tags, *given):
            change.tag(node_id, tag)
    return node_id


def _label(observation: Observation) -> str:
    """What an observation is called when it could not be kept."""
    match observation:
        case ObservedFile(path):
            return path
        case ObservedCommand(name):
            text = name
        case ObservedNote(text) | ModelResponse(text):
            pass
        case Relation(from_, label, to):
            text = f"{from_} {label} {to}"
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"
