"""Lists staged chains: their sessions, contents and states."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctx import clock, tokens
from ctx.errors import CtxError
from ctx.hook_files import live
from ctx.ids import ObjectId, SessionId
from ctx.memory.records import Record, as_json
from ctx.objects import commits, refs
from ctx.objects.commits import WorkStep
from ctx.objects.object_store import Kind, decode
from ctx.objects.object_types import RecordBatch, StepKind, WorkCommit
from ctx.objects.repository import Repository
from ctx.project import batches, staged_sessions, staging

ACTIVE = "active"
STALE = "stale"
PARKED = "parked"
ABORTED = "aborted"
DAMAGED = "damaged"


class Chain(NamedTuple):
    """A session's staged work."""

    session: str
    """Its name; for an aborted chain, with a part of the id of its last step."""
    state: str
    """active, stale, parked, aborted or damaged."""
    task: str | None = None
    """Its task, if known."""
    steps: int = 0
    records: int = 0
    files: int = 0
    documents: int = 0
    """Narrative documents that were flushed."""
    tokens: int = 0
    """The size of its records in tokens."""
    began: str | None = None
    last: str | None = None
    reason: str | None = None
    """Why it was aborted or is damaged."""
    branch: str | None = None
    """For a parked chain, a branch or another ref that contains what it is built on; if there is
    none, `ctx stage recover` takes it up."""


def survey(repository: Repository, home: str) -> list[Chain]:
    """All chains of this working tree, including hidden ones."""
    heads = repository.tips()
    now_s = clock.wall_s()
    chains = []
    for name in repository.refs.names():
        shown = refs.session_of(name) or refs.aborted_name(name) or refs.damaged_name(name)
        if shown is None:
            continue
        try:
            steps = commits.work_chain(repository.everything, repository.refs.require(name))
            chain = _describe_chain(repository, shown, steps)
        except CtxError as error:
            is_lost = refs.damaged_name(name) is not None
            chains.append(Chain(name if is_lost else shown, DAMAGED, reason=error.message))
            continue
        if refs.aborted_name(name):
            reason = next(_texts(repository, steps[0].work, StepKind.NOTE), None)
            chains.append(chain._replace(state=ABORTED, reason=reason))
        elif not commits.contain(repository.objects, heads, steps[0].work.bases):
            chains.append(chain._replace(state=PARKED))
        else:
            waited = now_s - repository.refs.moved_at(name)
            is_stale = waited > staged_sessions.STALE_S and not live.is_live(home, shown, now_s)
            chains.append(chain._replace(state=STALE if is_stale else ACTIVE))
    return chains


def names(repository: Repository) -> list[str]:
    """The refs of chains."""
    return [
        name for name in repository.refs.names() if refs.session_of(name) or refs.aborted_name(name)
    ]


def has_work(repository: Repository, session: SessionId) -> bool:
    """Whether a session has staged more than its start, in the history that is checked out."""
    steps = commits.work_chain(repository.everything, repository.refs.read(refs.work(session)))
    if all(step.work.step_kind is StepKind.SESSION_START for step in steps):
        return False
    return commits.contain(repository.objects, repository.tips(), steps[0].work.bases)


def records(repository: Repository, steps: Sequence[WorkStep]) -> list[Record]:
    """The records of a chain in order."""
    reader = repository.everything
    return [
        record
        for step in reversed(steps)
        for batch_id in step.work.payload
        if isinstance(decode(reader.read(batch_id)), RecordBatch)
        for record in batches.read(reader, batch_id)
    ]


def _describe_chain(repository: Repository, shown: str, steps: Sequence[WorkStep]) -> Chain:
    all_records = records(repository, steps)
    files = staging.files(repository, steps)
    return Chain(
        shown,
        ACTIVE,
        task(repository, steps, all_records),
        len(steps),
        len(all_records),
        len(files),
        len({ref.path for step in steps for ref in step.work.narrative_refs}),
        sum(tokens.estimate(as_json(record.body)) for record in all_records),
        clock.iso(steps[-1].work.created_at * 1000),
        clock.iso(steps[0].work.created_at * 1000),
    )


def task(
    repository: Repository, steps: Sequence[WorkStep], all_records: Sequence[Record]
) -> str | None:
    """The task that a session was started for, else the last one it mentions."""
    if named := started_for(repository, steps):
        return named
    for record in reversed(all_records):
        if record.kind == "tag.add" and record.key.startswith("task:"):
            return str(record.key).removeprefix("task:")
    return None


def started_for(repository: Repository, steps: Sequence[WorkStep]) -> str | None:
    """The task that `ctx stage start` named."""
    return next(_texts(repository, steps[-1].work, StepKind.SESSION_START), None)


def _texts(repository: Repository, step: WorkCommit, kind: StepKind) -> Iterator[str]:
    """The text of a step of this kind."""
    for object_id in step.payload if step.step_kind is kind else ():
        stored = repository.everything.read(ObjectId(object_id))
        if stored.kind is Kind.BLOB:
            yield stored.payload.decode("utf-8", "replace")
