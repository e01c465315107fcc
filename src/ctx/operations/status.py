"""How much there is in memory."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from ctx import clock, layout
from ctx.errors import GitFailure
from ctx.ids import SessionId, short
from ctx.memory import event_log, inverse_changes, pending
from ctx.memory.graph import PROJECT
from ctx.memory.stats import ScopeCount, TierCount, TypeCount, by_scope, memory_stats
from ctx.objects import local_state, untracked_survey
from ctx.objects.git_history import GitHistory
from ctx.objects.untracked_commits import HERE, PARKED
from ctx.objects.untracked_survey import DISCARDED_STATE, DROPPED, STASHED, SurveyedCommit
from ctx.operations import health, review, review_queue
from ctx.operations.health import Health
from ctx.operations.review_queue import ReviewCounts
from ctx.project import parked_sessions
from ctx.sqlite.connection import size_of
from ctx.workspace import Memory

_MOST_STRAY = 5


class MemoryStatus(NamedTuple):
    """The answer of `ctx status`."""

    database: str
    bytes: int
    new: bool
    """Whether this very command has made it."""
    nodes: int
    tokens: int
    types: tuple[TypeCount, ...]
    edges: int
    tags: int
    """How many different ones there are."""
    tiers: tuple[TierCount, ...]
    """A pinned node may have another tier too."""
    no_tier: int
    """Nodes that search finds, and the view `default` does not show. What was made of sessions is
    among them; contexts have layers of their own for that."""
    superseded: int
    views: int
    scopes: tuple[ScopeCount, ...]
    """How they are spread over the stores, the project's first."""
    project: str | None
    project_store: Literal["none", "trusted", "not trusted"]
    """Whether the project has a store, and whether it is included here."""
    task: str | None
    staged: tuple["StagedSession", ...] = ()
    """The sessions of the project that have staged work."""
    untracked: tuple[SurveyedCommit, ...] = ()
    """The commits of the project that no git commit holds yet."""
    removed_worktrees: tuple[str, ...] = ()
    """Removed working trees whose staged work can be brought here."""
    stray_heads: tuple[str, ...] = ()
    """Files in `.ctx/heads/` that are no heads, and are ignored."""
    health: Health | None = None
    """How capture stands; null where a store was named, or is not there."""
    conflicts: int = 0
    """Fields that two branches set to different values: `ctx review`."""
    proposals: int = 0
    """What agents ask for: `ctx review`."""
    withheld: int = 0
    """How many nodes and documents of this branch are not given to agents: `ctx review`."""
    review: ReviewCounts | None = None
    """Everything that `ctx review` and the page list."""
    corrected: "CorrectedNodes | None" = None
    """What was stored as the user's words, and is not any more: subagents or programs wrote it."""
    hooks: tuple[str, ...] | None = None
    """The agents that run our hooks; null where a store was named."""
    next_step: str | None = None
    """What to do next, if there is anything."""


class CorrectedNodes(NamedTuple):
    at: str
    nodes: int
    change: str
    """`ctx undo` with this id reverts it."""


class StagedSession(NamedTuple):
    session: SessionId
    state: str
    """active, stale or parked; `ctx stage status` says more."""
    records: int
    tokens: int
    branch: str | None = None
    """For a parked session, a branch or another ref that contains what it is built on; if there is
    none, `ctx stage recover` takes it up."""
    texts: tuple[str, ...] = ()
    """For a parked session, the texts of its nodes."""


def status(memory: Memory, *, new: bool) -> MemoryStatus:
    path = memory.environment.graph_file
    open_here = review_queue.counts(memory)
    size = size_of(path) + size_of(f"{path}-wal")
    if memory.environment.is_on_server:
        path, size = layout.server_text(path), 0
    found = MemoryStatus(
        database=path,
        bytes=size,
        new=new,
        project=memory.project,
        project_store="not trusted"
        if memory.withheld
        else "trusted"
        if memory.project_memory
        else "none",
        task=pending.current_task(memory.user, memory.place.task_key),
        staged=_staged_sessions(memory),
        scopes=by_scope(memory.graph),
        health=None if memory.environment.is_single_store or new else health.health(memory),
        conflicts=open_here.conflicts,
        proposals=open_here.proposals,
        withheld=review.count_withheld(memory),
        review=open_here,
        corrected=_corrected_nodes(memory),
        **memory_stats(memory.graph)._asdict(),
    )
    if memory.project_memory is None:
        return found
    repository = memory.project_memory.repository
    removed = local_state.removed_worktrees(repository.project)
    untracked: list[SurveyedCommit] = []
    staged = found.staged
    with suppress(GitFailure), GitHistory(repository) as history:
        untracked = untracked_survey.survey(repository, history)
        if any(each.state == "parked" for each in staged):
            parked = {e.session: e for e in parked_sessions.survey(repository, history)}
            staged = tuple(
                each._replace(branch=known.branch, texts=known.texts)
                if (known := parked.get(each.session))
                else each
                for each in staged
            )
    return found._replace(
        staged=staged,
        untracked=tuple(untracked),
        removed_worktrees=tuple(os.path.basename(folder) for folder in removed),
        stray_heads=tuple(repository.heads.stray()),
    )


def _corrected_nodes(memory: Memory) -> CorrectedNodes | None:
    found = event_log.since(memory.local, "", event_log.AUTHORS, 1)
    if not found or inverse_changes.is_undone(memory.user, str(found[0].data["change"])):
        return None
    return CorrectedNodes(found[0].at, int(found[0].data["nodes"]), str(found[0].data["change"]))


def _staged_sessions(memory: Memory) -> tuple[StagedSession, ...]:
    if memory.project_memory is None:
        return ()
    from ctx.project import staged_sessions

    home = memory.environment.user_store.home
    stale = {
        each.session
        for each in staged_sessions.stale_sessions(
            memory.project_memory.project, home, clock.wall_s()
        )
    }
    return tuple(
        StagedSession(
            each.session,
            "parked" if each.is_parked else "stale" if each.session in stale else "active",
            each.records,
            each.tokens,
        )
        for each in staged_sessions.sessions(memory.project_memory.graph.connection)
    )


def as_text(found: MemoryStatus) -> str:
    """As a person reads it, and as an agent is given it."""
    size = "new" if found.new else f"{found.bytes / 1_000_000:,.1f} MB"
    if layout.is_server(found.database):
        size = "the server of a team"
    has_both = len(found.scopes) > 1
    lines = [f"Database: {from_home(found.database)} ({size})"]
    if not found.nodes:
        lines.append("Nodes: 0")
    else:
        lines.append(f"Nodes: {found.nodes:,} (estimated {found.tokens:,} tokens)")
        lines += [f"  {each.type}: {each.nodes:,}" for each in found.types]
        lines += [f"Of these: {', '.join(map(_of_scope, found.scopes))}"] if has_both else []
        lines += [f"Edges: {found.edges:,}", f"Tags: {found.tags:,} unique"]
        if found.superseded:
            lines.append(f"Superseded: {found.superseded:,}")
    if found.views > 1:
        lines.append(f"Views: {found.views:,}")
    lines += [f"Project: {found.project}"] if found.project else []
    if found.project_store != "none":
        trust = "trusted" if found.project_store == "trusted" else "not trusted, not included"
        lines.append(f"Project store: {trust}")
    lines += [f"Task: {found.task}"] if found.task else []
    lines += [f"Staged: {', '.join(map(_of_session, found.staged))}"] if found.staged else []
    lines += _untracked_lines(found)
    if found.review and (waiting := review.pending_text(found.review)):
        lines.append(f"To review: {waiting}; `ctx review`")
    if corrected := found.corrected:
        noun = "node" if corrected.nodes == 1 else "nodes"
        lines.append(
            f"Corrected: {corrected.nodes:,} {noun} by subagents or programs, which an older"
            f" version stored as your words; `ctx undo {corrected.change}` reverts it"
        )
    if found.hooks is not None:
        lines.append(f"Hooks: {', '.join(found.hooks) or _NO_HOOKS}")
    lines += health.as_text(found.health) if found.health else []
    if found.nodes:
        lines += ["", "Tier breakdown:"]
        for tier, nodes, tokens in found.tiers:
            name = tier.removeprefix("tier:")
            lines.append(
                f"  {name}: {nodes:,} {'node' if nodes == 1 else 'nodes'} ({tokens:,} tokens)"
            )
        if found.no_tier:
            noun = "node" if found.no_tier == 1 else "nodes"
            lines.append(
                f"  none: {found.no_tier:,} {noun}; found by search, or captured from sessions"
            )
    lines += ["", f"Next: {found.next_step}"] if found.next_step else []
    return "\n".join(lines) + "\n"


def where_parked(branch: str | None) -> str:
    """What to do about a parked session."""
    if branch == "refs/stash":
        return "its commit is in git's stash"
    if branch is None:
        return "no branch has what it is built on; `ctx stage recover` takes it up here"
    return f"check out {branch} to continue"


def _texts(texts: Sequence[str]) -> str:
    return "1 text" if len(texts) == 1 else f"{len(texts):,} texts"


def _untracked_lines(found: MemoryStatus) -> list[str]:
    lines = [
        f"Parked session {each.session}: {where_parked(each.branch)}"
        for each in found.staged
        if each.state == "parked"
    ]
    here = sum(each.state == HERE for each in found.untracked)
    if here:
        noun = "commit" if here == 1 else "commits"
        lines.append(f"Not in git yet: {here} {noun}; `git add .ctx`, then commit")
    others = [each for each in found.untracked if each.state != HERE and each.is_tip]
    for each in others:
        title = each.message.partition("\n")[0]
        made = f" (made on {each.branch})" if each.branch else ""
        step = _NEXT_STEP[each.state].format(short(each.commit))
        lines.append(f'Commit {short(each.commit)} "{title}"{made}: {step}')
    lines += [
        f"Removed working tree {name} left staged work: `ctx stage recover`"
        for name in found.removed_worktrees
    ]
    if found.stray_heads:
        some = ", ".join(map(ascii, found.stray_heads[:_MOST_STRAY]))
        more = f" and {len(found.stray_heads) - _MOST_STRAY:,} more"
        few = len(found.stray_heads) <= _MOST_STRAY
        lines.append(f"Ignored in .ctx/heads: {some}{'' if few else more}")
    return lines


_NO_HOOKS = "not installed; agents get no memory, and nothing is captured"
_NEXT_STEP = {
    PARKED: "parked until its branch is checked out",
    STASHED: "in git's stash",
    DISCARDED_STATE: "git removed its files; `ctx stage recover` restores it",
    DROPPED: "no branch has it; `ctx stage recover --commit {0}` restores it",
}


def _of_scope(found: ScopeCount) -> str:
    staged = f" ({found.staged:,} staged)" if found.staged else ""
    whose = "the project's" if found.scope == PROJECT else "yours"
    return f"{found.nodes:,} {whose}{staged}"


def _of_session(found: StagedSession) -> str:
    if found.texts:
        return f"{found.session} ({_texts(found.texts)}, {found.state})"
    records = "1 record" if found.records == 1 else f"{found.records:,} records"
    state = "" if found.state == "active" else f", {found.state}"
    return f"{found.session} ({records}{state})"


def from_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
