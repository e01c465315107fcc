"""What a session would be given that starts here now, and how that comes about."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ctx import clock, layout
from ctx.capture import session_state
from ctx.context import (
    compaction_state,
    contexts,
    default_view,
    excerpt_search,
    layers,
    project_store_context,
)
from ctx.context.context_page import MadeContext
from ctx.context.contexts import (
    COMMANDS,
    MEMORY,
    NO_STORE,
    RULES,
    SAID,
    SESSIONS,
    STANDING,
    WORDS,
    ProjectStoreState,
)
from ctx.context.layers import ContextRequest
from ctx.hook_files import live, start_receipts
from ctx.memory import pending
from ctx.operations import context_items
from ctx.operations.context_items import GivenItem, OmittedItem
from ctx.workspace import Memory

Source = Literal["startup", "resume", "compact"]
"""Why a session starts, as far as that makes a difference."""

_FROM = {
    MEMORY: "nodes of the view `default`",
    SAID: "excerpts of what was said",
    STANDING: "the last session",
    WORDS: "what the user said",
    RULES: "observations tagged `kind:rule`, `kind:correction` or `kind:decision`",
    SESSIONS: "sessions and their summaries",
    COMMANDS: "session_commands",
}


class Options(NamedTuple):
    session: str = ""
    """The session that continues; empty: a new one."""
    budget: int | None = None
    """None: what is set."""
    source: Source = "startup"


class ContextLayer(NamedTuple):
    """One layer of a context."""

    name: str
    tokens: int
    shown: int
    left_out: int
    more_left_out: bool
    """Whether there are more, which are not counted."""
    made_of: str
    """Where it comes from."""
    problem: str
    """Why it is missing, if it could not be read."""


class ContextResult(NamedTuple):
    """The answer of `ctx context`."""

    text: str
    """All parts, one below the other, as a session gets them."""
    tokens: int
    budget: int
    parts: int
    """How many answers it takes to give it."""
    source: str
    project: str | None
    is_ready: bool
    """Whether it lies ready. It is composed otherwise, and the text is the same."""
    layers: tuple[ContextLayer, ...]
    build_ms: int
    items: tuple[GivenItem, ...] = ()
    omitted: tuple[OmittedItem, ...] = ()
    """What there was no room for, as far as it is known."""


USUAL = Options()


def context(memory: Memory, options: Options = USUAL) -> ContextResult:
    """Exactly what a hook would give. The memory is that of a place, as an agent sees it."""
    home, environment = memory.environment.user_store.home, memory.environment.variables
    config = memory.environment.user_config
    budget = options.budget or config.integer("context.budget")
    goes_on = options.source != "startup"
    own, stores = own_store(memory), memory.graph.connections
    key = contexts.key_of(memory.place, home, environment, 1, own)
    wanted = _request(memory, options, budget, contexts.notice(key, own))
    began = clock.monotonic()
    made = _make_contexts(memory, wanted, options)
    took_ms = round((clock.monotonic() - began) * 1000)
    is_usual = (
        options.budget is None
        and not memory.environment.overrides
        and not goes_on
        and default_view.is_timeless(stores)
    )
    shares = _layers(made)
    items = context_items.of_context(memory, made)
    return ContextResult(
        "".join(each.context.text for each in made),
        sum(each.context.tokens for each in made),
        budget,
        len(made),
        options.source,
        memory.project,
        is_usual and contexts.valid_context(memory.local, key) is not None,
        shares,
        took_ms,
        *items,
    )


def _request(memory: Memory, options: Options, budget: int, notice: str) -> ContextRequest:
    return ContextRequest(
        memory.project,
        pending.current_task(memory.user, memory.place.task_key),
        budget,
        notice=notice,
        session=options.session if options.source != "startup" else "",
    )


def prompt_context(memory: Memory, prompt: str) -> ContextResult:
    """Exactly what a hook would give with the first prompt of a session that starts now."""
    config = memory.environment.user_config
    budget = config.integer("context.prompt_budget")
    began = clock.monotonic()
    wanted = _request(memory, USUAL, config.integer("context.budget"), "")
    parts = _make_contexts(memory, wanted, USUAL)
    items = [item for made in parts for item in made.context.items]
    given = {*(item.digest for item in items), *(item.id for item in items if item.id)}
    stores = memory.graph.connections
    choice = excerpt_search.choose(
        stores, memory.project, prompt, budget, given=given, given_text=parts[0].context.text
    )
    hits = choice.hits
    found = excerpt_search.context_from_hits(hits)
    took_ms = round((clock.monotonic() - began) * 1000)
    layer = ContextLayer(SAID, found.tokens, len(hits), len(choice.next), False, _FROM[SAID], "")
    return ContextResult(
        *(found.text, found.tokens, budget, 1, "prompt", memory.project, False, (layer,), took_ms),
        context_items.of_hits(memory, found.items, hits, prompt),
        context_items.of_next_hits(memory, choice.next),
    )


def find_session(memory: Memory, text: str) -> str:
    """The id of the session that a person means by its beginning.

    One that has only just begun is known by its live file alone.
    """
    if text in live.sessions(memory.environment.user_store.home):
        return text
    return session_state.get(memory.local, text).id


def own_store(there: Memory) -> ProjectStoreState:
    """What a context takes from the store of the project where an agent works, and says of it."""
    if there.project_memory is not None:
        return project_store_context.current(there.project_memory.project)
    home = there.environment.user_store.home
    project = None if there.environment.is_single_store else layout.find_project(there.folder, home)
    if project is None:
        return NO_STORE
    own = project_store_context.read(home, project)
    if own.connection is not None:
        own.connection.close()
    return own._replace(connection=None)


def _make_contexts(memory: Memory, wanted: ContextRequest, options: Options) -> list[MadeContext]:
    stores = memory.graph.connections
    if options.source == "resume":
        before = start_receipts.of_session(memory.environment.user_store.home, options.session)
        if before is not None:
            return [layers.make_changed_context(stores, wanted, before)]
    where = layers.NO_COMPACTION_STATE
    if options.source == "compact":
        nodes = layers.state(stores, wanted.project, wanted.task, options.session)
        lines = compaction_state.lines(memory.local, options.session)
        where = layers.CompactionState(nodes, lines)
    found = []
    for part in range(1, layers.parts(wanted.budget) + 1):
        made = layers.make_context(stores, wanted._replace(part=part), where)
        if part == 1 or made.context.items:
            found.append(made)
    return found


def _layers(made: Sequence[MadeContext]) -> tuple[ContextLayer, ...]:
    """The layers of all parts together: what the last part leaves out is left out."""
    found: dict[str, ContextLayer] = {}
    for part in made:
        for share in part.shares:
            known = found.get(share.name)
            found[share.name] = ContextLayer(
                share.name,
                share.tokens + (known.tokens if known else 0),
                share.shown + (known.shown if known else 0),
                share.left_out,
                share.or_more,
                _FROM[share.name],
                share.problem,
            )
    return tuple(found.values())
