"""The five tools: arguments, descriptions and answers.

An agent reads the descriptions and the schemas of arguments in every session, so they are short:
all of them together take less than 1,500 tokens. An answer has two forms with the same content, a
JSON object and a text, because hosts give a model one or the other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from ctx.errors import UsageError
from ctx.markdown import code, flat, visible
from ctx.mcp.agent_place import AgentPlace, connections
from ctx.mcp.call_thread import RunningCall
from ctx.mcp.results import (
    ForgetResults,
    FoundEntry,
    HistoryEntry,
    PackedChunk,
    PackResults,
    RecallResults,
    RememberResults,
    Results,
    TimelineResults,
)
from ctx.memory.model import KNOWLEDGE_TYPES, Redaction
from ctx.workspace import Memory

PACK_BUDGET = 4_000
SMALLEST_PACK, LARGEST_PACK = 500, 20_000
"""Hosts cut longer answers."""
LONGEST_TEXT = 10_000
"""Characters of a statement. A longer one would fill the contexts of later sessions."""

_Ids = tuple[str, ...]


def _one_of(*values: str) -> dict[str, Any]:
    """An enum in the schema. The operation checks the value, which knows more spellings."""
    return {"enum": list(values)}


class ToolAnswer(NamedTuple):
    data: dict[str, Any]
    text: str


class RecallArguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(description="words or filters: type:decision tag:x path:src")] = ""
    ids: Annotated[_Ids, Meta(description="results to read in full; no query then")] = ()
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    cursor: Annotated[str, Meta(description="nextCursor of the last answer")] = ""


class LinkArgument(Struct, frozen=True, forbid_unknown_fields=True):
    to: str
    type: Annotated[str, Meta(description="such as DEPENDS_ON")] = "RELATES_TO"


class RememberArguments(Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[
        str,
        Meta(description=f"one self-contained statement, at most {LONGEST_TEXT:,} characters"),
    ] = ""
    type: Annotated[
        str,
        Meta(
            extra_json_schema=_one_of(
                *(each for each in KNOWLEDGE_TYPES if each not in ("summary", "source"))
            )
        ),
    ] = ""
    tags: _Ids = ()
    rationale: Annotated[str, Meta(description="why, for a decision")] = ""
    supersedes: Annotated[_Ids, Meta(description="ids that it replaces")] = ()
    links: tuple[LinkArgument, ...] = ()
    id: Annotated[str, Meta(description="link this node instead of adding text")] = ""
    scope: Annotated[
        str,
        Meta(description="user: for all projects", extra_json_schema=_one_of("project", "user")),
    ] = ""


class PackArguments(Struct, frozen=True, forbid_unknown_fields=True):
    task: str
    budget: Annotated[int, Meta(description="tokens", ge=SMALLEST_PACK, le=LARGEST_PACK)] = (
        PACK_BUDGET
    )
    more: Annotated[bool, Meta(description="also unlikely code")] = False


class TimelineArguments(Struct, frozen=True, forbid_unknown_fields=True):
    around: Annotated[str, Meta(description="a node id, a session id or a file path")]
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    cursor: str = ""


class ForgetArguments(Struct, frozen=True, forbid_unknown_fields=True):
    ids: _Ids


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    arguments: type[Struct]
    answer: Callable[[AgentPlace, Any, RunningCall], ToolAnswer]
    results: type[Results]
    is_read_only: bool = True
    is_destructive: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        return _schema(self.arguments)

    @property
    def output_schema(self) -> dict[str, Any]:
        return _schema(self.results)

    def parse(self, arguments: Mapping[str, Any] | None) -> Struct:
        """The arguments. Models also send null for what they leave out, and numbers as text."""
        stated = {name: value for name, value in (arguments or {}).items() if value is not None}
        try:
            return msgspec.convert(stated, self.arguments, strict=False)
        except (msgspec.ValidationError, RecursionError) as error:
            known = ", ".join(self.arguments.__struct_fields__)
            raise UsageError(
                f"Invalid arguments for {self.name}: {error}.", hint=f"It takes {known}."
            ) from None


# Answers


def recall(place: AgentPlace, wanted: RecallArguments, call: RunningCall) -> ToolAnswer:
    from ctx.operations import recall_index
    from ctx.packs import node_vectors

    if bool(wanted.query.strip()) == bool(wanted.ids):
        raise UsageError(
            "Give a query or ids.", hint="A query returns an index; ids return whole texts."
        )
    with place.open(writing=False) as memory:
        call.may_interrupt(*connections(memory))
        if wanted.ids:
            return _texts_answer(memory, recall_index.texts(memory, wanted.ids))
        options = recall_index.Options(wanted.query, wanted.limit, _position(wanted.cursor) or 0)
        nearness = node_vectors.nearness(memory, wanted.query, call.vectors)
        found = recall_index.index(memory, options, nearness)
        notes = _notes(memory)
    if found.partial and found.entries:
        notes.append("No result has all of these words.")
    entries = [
        FoundEntry(each.id, each.kind, each.title, each.tokens, each.source, each.at)
        for each in found.entries
    ]
    lines = [
        f"- {code(each.id)} {each.kind}"
        + (f" {each.at}" if each.at else "")
        + (f" ({each.source}, {each.tokens} tokens)" if each.tokens else "")
        + (f": {flat(each.title)}" if each.title else "")
        for each in found.entries
    ]
    head = f"{len(entries)} results" if len(entries) != 1 else "1 result"
    if any(each.tokens for each in found.entries):
        notes.append("For whole texts, call recall with ids.")
    data = RecallResults(entries, found.total)
    return _answer(data, [head if entries else "Nothing found.", *lines], notes, found.next_start)


def _texts_answer(memory: Memory, found: Any) -> ToolAnswer:
    texts = [
        FoundEntry(each.short_id, each.type, source=each.source, text=each.text)
        for each in found.texts
    ]
    notes = _notes(memory)
    if found.missing:
        notes.append(f"No node here: {', '.join(found.missing)}.")
    if found.left_out:
        notes.append(f"Too long for one answer, ask again for: {', '.join(found.left_out)}.")
    cut = [each.short_id for each in found.texts if each.is_shortened]
    if cut:
        notes.append(f"Shortened: {', '.join(cut)}. `ctx show ID` prints all of it.")
    data = RecallResults(texts, len(texts))
    return _answer(data, [each.text for each in found.texts] or ["Nothing found."], notes)


def remember(place: AgentPlace, wanted: RememberArguments, _call: RunningCall) -> ToolAnswer:
    from ctx.operations import agent_proposals
    from ctx.operations import remember as remembering
    from ctx.operations.recall_index import find_visible

    for text in (wanted.text, wanted.rationale):
        if len(text) > LONGEST_TEXT:
            raise UsageError(
                f"This has {len(text):,} characters; the limit is {LONGEST_TEXT:,}.",
                hint="Keep the rest in a file, and remember what matters about it.",
            )
    if wanted.scope not in ("", *remembering.SCOPES):
        raise UsageError(
            f"{wanted.scope[:40]!r} is not a scope.", hint="Leave it out, or use project or user."
        )
    with place.open(writing=True) as memory:
        options = remembering.Options(
            wanted.text,
            wanted.type or None,
            wanted.tags,
            None,
            wanted.rationale,
            [find_visible(memory, each) for each in wanted.supersedes],
            wanted.scope,
            [
                remembering.LinkTarget(each.type, find_visible(memory, each.to))
                for each in wanted.links
            ],
            find_visible(memory, wanted.id) if wanted.id else None,
        )
        done = remembering.remember(memory, options, may_pin=agent_proposals.may_pin(memory))
        notes = [*_notes(memory), *_redaction_notes(done.redacted)]
    if done.proposed:
        asked = ", ".join(done.proposed)
        notes.append(f"Stored without: {asked}. The user decides with `ctx review`.")
    node = done.node
    data = RememberResults(done.short_id, node.type, list(node.tags), list(done.proposed))
    verb = "Remembered" if done.is_new else "Linked"
    return _answer(data, [f"{verb}: {done.short_id} ({node.type})"], notes)


def pack(place: AgentPlace, wanted: PackArguments, call: RunningCall) -> ToolAnswer:
    from ctx.operations import pack as packing
    from ctx.operations.visible_nodes import visible_to_agent
    from ctx.packs import pack_text

    with place.open(writing=False) as memory:
        call.may_interrupt(*connections(memory))
        visible = visible_to_agent(memory)
        options = packing.Options(wanted.task, wanted.budget, visible=visible, more=wanted.more)
        built = packing.pack(memory, options)
        notes = _notes(memory)
    chunks = [
        PackedChunk(
            each.title,
            each.tokens,
            each.snippet,
            each.path,
            each.first_line,
            each.last_line,
            each.source if each.path is None else "",
        )
        for each in built.retrieved
    ]
    confidence = round(built.confidence, 2)
    data = PackResults(chunks, built.token_budget.used, confidence, built.recent_narrative)
    return _answer(data, [pack_text.as_markdown(built).rstrip()], notes)


def timeline(place: AgentPlace, wanted: TimelineArguments, call: RunningCall) -> ToolAnswer:
    from ctx.operations import timeline as timelines
    from ctx.operations.visible_nodes import visible_to_agent

    with place.open(writing=False) as memory:
        call.may_interrupt(*connections(memory))
        options = timelines.Options(
            wanted.around, wanted.limit, _position(wanted.cursor), visible_to_agent(memory)
        )
        found = timelines.timeline_with_receipt(memory, options)
        notes = _notes(memory)
    entries = [
        HistoryEntry(each.at, each.kind, each.text, each.id, each.session) for each in found.entries
    ]
    lines = [
        f"{'→' if each.is_center else '-'} {each.at[:16].replace('T', ' ')} {each.kind}"
        f"{f' {code(each.id)}' if each.id else ''}: {flat(each.text)}"
        for each in found.entries
    ]
    if found.later:
        notes.append(f"{found.later:,} later entries are not shown.")
    head = f"{found.around.capitalize()} {code(flat(found.title or found.id))}:"
    return _answer(TimelineResults(entries), [head, *lines], notes, found.earlier or None)


def forget(place: AgentPlace, wanted: ForgetArguments, _call: RunningCall) -> ToolAnswer:
    from ctx.operations import agent_proposals
    from ctx.operations.recall_index import find_visible

    if not wanted.ids:
        raise UsageError("Give at least one id.", hint="`recall` shows ids.")
    with place.open(writing=True) as memory:
        node_ids = [find_visible(memory, each) for each in wanted.ids]
        done = agent_proposals.forget(memory, node_ids)
        notes = _notes(memory)
    forgotten = [done.short_ids[node.id] for node in done.forgotten]
    proposed = [done.short_ids[node.id] for node in done.proposed]
    lines: list[str] = []
    if forgotten:
        until = " until the next commit" if done.until_commit else ""
        lines.append(f"Forgotten: {', '.join(forgotten)}. `ctx undo` brings it back{until}.")
    if proposed:
        lines.append(
            f"Proposed: {', '.join(proposed)}. Only the user may delete it, with `ctx review`."
        )
    return _answer(ForgetResults(forgotten, proposed), lines, notes)


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "recall",
            "Search memory",
            "Search the memory of this project for decisions, rules, past failures, sessions,"
            " commits and files. Use it before you decide or ask the user. Returns an index;"
            " call it again with ids for full texts.",
            RecallArguments,
            recall,
            RecallResults,
        ),
        Tool(
            "remember",
            "Add to memory",
            "Keep a decision, rule or insight for later sessions, or link and supersede nodes."
            " No secrets, nothing the code already says. Pins and scope user are proposals to"
            " the user.",
            RememberArguments,
            remember,
            RememberResults,
            is_read_only=False,
        ),
        Tool(
            "pack",
            "What to read for a task",
            "Select the code and memory to read for a task, within a token budget. Use it at"
            " the start of a task instead of many searches.",
            PackArguments,
            pack,
            PackResults,
        ),
        Tool(
            "timeline",
            "What happened",
            "List what happened around a node, in a session or to a file, in order of time:"
            " prompts, edits, commands, commits and what was remembered.",
            TimelineArguments,
            timeline,
            TimelineResults,
        ),
        Tool(
            "forget",
            "Remove from memory",
            "Delete wrong or outdated nodes; the user can undo it. What the user said is only"
            " proposed for deletion.",
            ForgetArguments,
            forget,
            ForgetResults,
            is_read_only=False,
            is_destructive=True,
        ),
    )
}


def _answer(
    data: Results,
    lines: Sequence[str],
    notes: Sequence[str] = (),
    next_position: int | None = None,
) -> ToolAnswer:
    """Both forms, without hidden characters."""
    lines = [*lines, *notes]
    if next_position is not None:
        data.next_cursor = str(next_position)
        lines.append(f'For more: cursor "{next_position}".')
    data.notes = list(notes)
    return ToolAnswer(_shown(msgspec.to_builtins(data)), visible("\n".join(lines)))


def _notes(memory: Memory) -> list[str]:
    """What an agent learns of a store that is not trusted: that it exists."""
    return [memory.withheld.sentence] if memory.withheld else []


def _redaction_notes(redacted: Sequence[Redaction]) -> list[str]:
    if not redacted:
        return []
    rules = ", ".join(dict.fromkeys(each.rule for each in redacted))
    return [f"Memory does not store secrets. Removed: {rules}."]


def _position(cursor: str) -> int | None:
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise UsageError(
            f"{cursor[:40]!r} is not a cursor.", hint="Use nextCursor of the last answer."
        )
    return int(cursor)


def _shown(value: Any) -> Any:
    """The value with hidden characters as escapes."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def _schema(struct: type[Struct]) -> dict[str, Any]:
    every = msgspec.json.schema(struct)["$defs"]
    own: dict[str, Any] = _plain(every[struct.__name__], every)
    return own


def _plain(schema: Any, every: Mapping[str, Any]) -> Any:
    """A schema without references, titles and empty defaults, which only take tokens."""
    if isinstance(schema, dict):
        if name := str(schema.get("$ref", "")).rpartition("/")[2]:
            return _plain(every[name], every)
        return {
            key: _plain(value, every)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
            and not (key == "default" and not value)
        }
    return [_plain(each, every) for each in schema] if isinstance(schema, list) else schema
