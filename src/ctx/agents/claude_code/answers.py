"""The answers of the hooks that have one.

`hook` loads this module where it is needed. A context that is ready is given as it is; one that is
not is composed by `retrieval.layers`, which loads nothing that a hook cannot afford. The store is
written to only to take what was waiting for a session.
"""

import json
import os
import sqlite3
from contextlib import closing, contextmanager
from sqlite3 import Connection

from ctx import clock, layout
from ctx.agents.claude_code import applying, given, lineage
from ctx.agents.claude_code.hook import NOTHING, WORK_S, Hook
from ctx.agents.claude_code.store import for_reading, path_of
from ctx.layout import Place
from ctx.retrieval import contexts
from ctx.retrieval.contexts import NO_STORE, Beside, Context, Item
from ctx.sessions import live, spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

# Of the time that a hook has, what is left for its answer once other work is done.
_ANSWERING_S = 0.4
_DEFAULT_BUDGET = 2_000
_AT_ONCE_MS = 1_000
_MOMENT_MS = 10_000


def session_start(hook: Hook, said: bytes) -> bytes:
    """The context of this place; for a resumed session only what changed."""
    event = _event(hook, said)
    if event is None:
        return NOTHING
    session, part = event["session_id"], hook.part
    with _unharmed(hook):
        if not _is_first(hook, session, said, part):
            return b""
        if part == 1:
            spool.put(hook.home, spool.new_id(hook.now_ms()), hook.word, said)
            _go_live(hook, event)
    if part == 1 and any(map(spool.has_commands, spool.waiting(hook.home))):
        applying.apply(hook, hook.left - _ANSWERING_S)
    if not os.path.exists(path_of(hook.environment, hook.home)):
        hook.log("there is no store yet; it is made now")
        applying.start(hook)
        return NOTHING
    place = _place(hook, event)
    try:
        with closing(for_reading(hook)) as connection, _beside(hook, event) as own:
            text, tokens, items = _context(hook, connection, own, place, event, part)
            if part == 1 and _expands(connection):
                from ctx.agents.claude_code import waiting

                stores = _stores(own, connection)
                more, nodes = waiting.take_expanded(hook, stores, session, text)
                text, items = text + more, (*items, *nodes)
                tokens += sum(each.tokens for each in nodes)
    except sqlite3.OperationalError:
        # It may be a store of an older ctx, which is brought up to date for the next time.
        applying.start(hook)
        raise
    if not text or (part > 1 and not items):
        return NOTHING
    with _unharmed(hook):
        given.receipt(hook, event, place, items, tokens)
    return _additional("SessionStart", text, _message(text, items, tokens) if part == 1 else "")


def _is_first(hook: Hook, session: str, said: bytes, part: int) -> bool:
    """Whether nobody answers already.

    Where hooks are registered in two places, the client runs both at once.
    """
    from zlib import crc32

    process = hook.environment.get("CLAUDE_PID", "").encode()
    name = f"{session}.start-{crc32(said + process):08x}-{part}"
    return live.claim(hook.home, name, hook.now_ms(), _AT_ONCE_MS)


def _message(text: str, items: "Sequence[Item]", tokens: int) -> str:
    """What the user is told."""
    if items:
        nodes = "1 node" if len(items) == 1 else f"{len(items):,} nodes"
        return f"ctx: {nodes}, {tokens:,} tokens; `ctx why` lists them"
    return "ctx: memory is empty here" if contexts.NOTHING_YET in text else ""


def prompt_submit(hook: Hook, said: bytes) -> bytes:
    """What was waiting for this session, once. What a Stop left is done before."""
    event = _event(hook, said)
    if event is None:
        return NOTHING
    with _unharmed(hook):
        spool.put(hook.home, spool.new_id(hook.now_ms()), hook.word, said)
    failed = ""
    if any(map(spool.has_commands, spool.waiting(hook.home))):
        hook.limit = WORK_S
        done = applying.apply(hook, WORK_S - _ANSWERING_S)
        failed = _failures(each for each in done if each["session"] == event["session_id"])
    with closing(for_reading(hook)) as connection:
        if not _has_waiting(connection):
            return NOTHING
        from ctx.agents.claude_code import waiting

        with _beside(hook, event) as own:
            stores = _stores(own, connection)
            text, items = waiting.take(hook, stores, event["session_id"])
    if not text:
        return NOTHING
    from ctx import tokens

    place = _place(hook, event)
    with _unharmed(hook):
        given.receipt(hook, event, place, items, tokens.estimate(text))
    return _additional("UserPromptSubmit", text, failed)


def pre_compact(hook: Hook, said: bytes) -> bytes:
    """Write down what the agent is at, as far as memory knows."""
    event = _event(hook, said)
    if event is None:
        return NOTHING
    spool.put(hook.home, spool.new_id(hook.now_ms()), hook.word, said)
    from ctx.retrieval import layers

    session = event["session_id"]
    place = _place(hook, event)
    with closing(for_reading(hook)) as connection, _beside(hook, event) as own:
        task = _task(connection, place)
        nodes = layers.state(_stores(own, connection), place.project, task, session)
    live.write(hook.home, f"{session}.state", json.dumps(nodes))
    return b""


ANSWERS: "dict[str, Callable[[Hook, bytes], bytes]]" = {
    "session-start": session_start,
    "prompt-submit": prompt_submit,
    "pre-compact": pre_compact,
}


def end(hook: Hook, said: bytes) -> None:
    """A session is over. One that was cleared goes on under another name."""
    event = _event(hook, said)
    if event is not None:
        if event.get("reason") == "clear":
            live.write(hook.home, _cleared(hook, event), event["session_id"])
        live.remove(hook.home, event["session_id"])
        applying.start(hook)


def respond(hook: Hook, said: bytes, response: str) -> bytes:
    """A Stop whose response is given on the command line rather than in a transcript."""
    try:
        event = json.loads(said) if said.strip() else {}
    except ValueError:
        event = {}
    event = event if isinstance(event, dict) else {}
    event.setdefault("session_id", hook.environment.get("CTX_SESSION") or "cli")
    event.setdefault("cwd", _folder(hook, event))
    event["response"] = response
    event_id = spool.new_id(hook.now_ms())
    spool.put(hook.home, event_id, f"{spool.STOP}.-", json.dumps(event).encode(), durable=True)
    return work(hook, event_id, event["session_id"])


def work(hook: Hook, event_id: str, session: str) -> bytes:
    """Have an agent's commands done, and tell the user if some could not be."""
    hook.limit = WORK_S
    began_ms = hook.now_ms()
    done = applying.apply(hook, WORK_S - _ANSWERING_S)
    mine = [each for each in done if each["event"] == event_id]
    failed = _failures(mine) if mine else _failures_since(hook, session, began_ms)
    return _printed({"systemMessage": failed}) if failed else NOTHING


def _failures_since(hook: Hook, session: str, began_ms: int) -> str:
    """The same where another process was faster, as far as it has come."""
    since = clock.iso(began_ms - 1000)
    with closing(for_reading(hook)) as connection:
        rows = connection.execute(
            "SELECT problem IS NOT NULL FROM commands WHERE session = ? AND at >= ?",
            (session, since),
        ).fetchall()
    failed = sum(row[0] for row in rows)
    return _failures([{"done": len(rows) - failed, "failed": failed}])


def _failures(stops: "Iterable[dict[str, Any]]") -> str:
    """What the user is told of commands that failed; nothing where none did."""
    told = [(each["done"], each["failed"]) for each in stops]
    failed = sum(each for _, each in told)
    count = failed + sum(each for each, _ in told)
    commands = "1 command" if count == 1 else f"{failed:,} of {count:,} commands"
    return f"ctx: {commands} failed; the agent is told with your next prompt" if failed else ""


@contextmanager
def _unharmed(hook: Hook) -> "Iterator[None]":
    """What cannot be written down does not keep an agent from what it is to be given."""
    try:
        yield
    except OSError as error:
        hook.log(f"{type(error).__name__}: {error}")


# What the client said


def _event(hook: Hook, said: bytes) -> "dict[str, Any] | None":
    try:
        event = json.loads(said)
    except (ValueError, RecursionError):
        hook.log("what the client said is not JSON")
        return None
    session = event.get("session_id") if isinstance(event, dict) else None
    if not isinstance(session, str) or not live.is_session(session):
        hook.log("what the client said names no session")
        return None
    return event  # type: ignore[no-any-return]


def _place(hook: Hook, event: "dict[str, Any]") -> Place:
    def trusts(project: "layout.Project") -> bool:
        from ctx.sessions import trust

        return trust.is_trusted(hook.home, project)

    return layout.place(_folder(hook, event), hook.home, trusts)


def _folder(hook: Hook, event: "dict[str, Any]") -> str:
    for told in (event.get("cwd"), hook.environment.get("CLAUDE_PROJECT_DIR")):
        if isinstance(told, str) and os.path.isabs(told) and "\0" not in told:
            return told
    return os.getcwd()


def _go_live(hook: Hook, event: "dict[str, Any]") -> None:
    session, source = event["session_id"], event.get("source")
    process = hook.environment.get("CLAUDE_PID", "")
    live.begin(hook.home, session, process, _folder(hook, event))
    before = ""
    if source == "clear":
        name = _cleared(hook, event)
        before = live.read(hook.home, name)
        live.remove(hook.home, name)
    elif source == "fork":
        before = lineage.forked_from(event, process, hook.now_ms() / 1000)
    if live.is_session(before) and before != session:
        # What a cleared one asked for last may be done only in a moment.
        later_ms = _MOMENT_MS if source == "clear" else 0
        live.follow(hook.home, session, before, hook.now_ms() + later_ms)


def _cleared(hook: Hook, event: "dict[str, Any]") -> str:
    """Where a client says which session it has cleared. Older ones do not say who they are."""
    process = hook.environment.get("CLAUDE_PID", "")
    if process.isdecimal():
        return f"cleared-{process}"
    from zlib import crc32

    return f"cleared-{crc32(os.fsencode(_folder(hook, event))):08x}"


# SessionStart


@contextmanager
def _beside(hook: Hook, event: "dict[str, Any]") -> "Iterator[Beside]":
    """The store of the project itself; none where `CTX_DB` names one that is to be used alone."""
    is_alone = path_of(hook.environment, hook.home) != f"{hook.home}/store.db"
    project = None if is_alone else layout.find_project(_folder(hook, event), hook.home)
    own = NO_STORE
    if project is not None:
        from ctx.sessions import beside

        own = beside.read(hook.home, project)
    try:
        if not own.is_current and hook.part == 1:
            # It is brought up to date for the next time.
            applying.start(hook)
        yield own
    finally:
        if own.connection is not None:
            own.connection.close()


def _stores(own: Beside, user: Connection) -> "Sequence[Connection]":
    return [user] if own.connection is None else [own.connection, user]


def _context(
    hook: Hook,
    connection: Connection,
    own: Beside,
    place: Place,
    event: "dict[str, Any]",
    part: int,
) -> Context:
    source, session = event.get("source"), event["session_id"]
    settings = contexts.settings(hook.home, hook.environment)
    key = contexts.Key(place, settings, part, own.told)
    stores = _stores(own, connection)
    if source not in ("resume", "compact") and (ready := contexts.ready(connection, key)):
        return ready
    from ctx.retrieval import layers

    budget = _budget(hook, key.settings)
    task = _task(connection, place)
    wanted = layers.Wanted(place.project, task, budget, part, own.notice)
    before = given.before(hook, session) if source == "resume" else {}
    if before and lineage.remembers(event.get("transcript_path")):
        if part > 1:
            return contexts.NOTHING
        held = set(layers.there(stores, before))
        still = {each: digest for each, digest in before.items() if each in held}
        if not own.is_current:
            # What an index lacks that is behind may be there all the same.
            return layers.changed(stores, wanted, still)
        found = layers.changed(stores, wanted, before)
        # What is gone is said once.
        with _unharmed(hook):
            given.note(hook, session, still)
        return found
    if source == "compact" and part == 1:
        now = layers.state(stores, place.project, wanted.task, session)
        return layers.context(stores, wanted, _saved(hook, session, now))
    if part == 1:
        # It makes the context, so that the next session finds it ready.
        applying.start(hook)
    return layers.context(stores, wanted)


def _budget(hook: Hook, settings: str) -> int:
    if contexts.is_default(settings):
        return _DEFAULT_BUDGET
    from ctx.config.resolve import survey

    config = survey(f"{hook.home}/config.toml", None, hook.environment, ())
    return config.integer("context.budget")


def _task(connection: Connection, place: Place) -> "str | None":
    found = connection.execute("SELECT value FROM pending WHERE key = ?", (place.task_key,))
    row = found.fetchone()
    return row[0] if row else None


def _has_waiting(connection: Connection) -> bool:
    sql = "SELECT 1 FROM pending WHERE key NOT LIKE 'current\\_task%' ESCAPE '\\' LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def _expands(connection: Connection) -> bool:
    sql = "SELECT 1 FROM pending WHERE key LIKE 'expand\\_nodes:%' ESCAPE '\\' LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def _saved(hook: Hook, session: str, now: "list[Any]") -> "list[Any]":
    """What the agent was at before its conversation was compacted, and what it is at now."""
    try:
        saved = json.loads(live.read(hook.home, f"{session}.state") or "[]")
    except ValueError:
        saved = []
    live.remove(hook.home, f"{session}.state")
    told = [each for each in saved if isinstance(each, str)] if isinstance(saved, list) else []
    return list(dict.fromkeys([*told, *now]))


def _additional(event: str, text: str, message: str) -> bytes:
    told = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return _printed({**told, "systemMessage": message} if message else told)


def _printed(value: "dict[str, Any]") -> bytes:
    return json.dumps(value).encode() + b"\n"
