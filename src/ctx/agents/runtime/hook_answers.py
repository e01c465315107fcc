"""The answers to hooks that need one.

`hook` imports this module only when it is needed. The only write to the store is the removal of
pending results.
"""

import os
import sqlite3
from contextlib import closing, contextmanager

from ctx import clock, layout
from ctx.agents.runtime import hook_receipts, run_apply
from ctx.agents.runtime.hook_store import for_reading
from ctx.context import contexts, hook_queries
from ctx.context.contexts import NO_STORE, Context, ContextItem, ProjectStoreState
from ctx.hook_files import live, spool, start_receipts
from ctx.hosts.hook_events import NO_ANSWER, HookAnswer
from ctx.layout import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ctx.agents.runtime.hook import Hook
    from ctx.hosts.hook_events import HookEvent

# The part of the time limit that is reserved for the answer.
_ANSWERING_S = 0.4
_AT_ONCE_MS = 1_000
_MOMENT_MS = 10_000
_A_SESSION_MS = 30 * 86_400_000
_RELEVANT_S = 0.1
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "ash")
_LONGEST_PROMPT = 20_000
_PROPOSED = "## Proposed to the user"


def answer(hook: "Hook", payload: bytes) -> bytes:
    """The bytes to print for the host."""
    event = _event(hook, payload)
    return _serialize_answer(hook, ANSWERS[hook.word](hook, event) if event else NO_ANSWER)


def session_start(hook: "Hook", event: "HookEvent") -> "HookAnswer | None":
    """The context for this folder; for a resumed session, only what changed."""
    part = hook.part
    is_paused = hook.is_paused(event.raw)
    with _log_write_errors(hook):
        if not _is_first(hook, event, part):
            return None
        if part == 1:
            if not is_paused:
                hook.put(spool.new_id(hook.now_ms()), hook.word, event.raw)
            _mark_live(hook, event)
            if hook.host.starts_with_prompt:
                live.write(hook.home, f"{event.session}.source", event.source or "startup")
    waiting = hook.waiting() if part == 1 else []
    if any(map(spool.has_commands, waiting)):
        run_apply.apply(hook, hook.left - _ANSWERING_S)
    try:
        if hook.host.starts_with_prompt:
            return NO_ANSWER
        return _answer_start(hook, event, is_paused=is_paused)
    finally:
        # Last, because it uses CPU time that the answer needs.
        if part == 1 and hook.wake_worker() and spool.waits_long(waiting, hook.now_ms()):
            # A running worker that does not process the spool may hang.
            run_apply.start_beside(hook)


def _answer_start(hook: "Hook", event: "HookEvent", *, is_paused: bool) -> HookAnswer:
    try:
        return _session_start(hook, event, is_paused=is_paused)
    except sqlite3.Error as error:
        from ctx.agents.runtime import notices

        hook.log(f"{type(error).__name__}: {error}")
        return HookAnswer(message=notices.unreadable(hook, error) if hook.part == 1 else "")


def _session_start(hook: "Hook", event: "HookEvent", *, is_paused: bool) -> HookAnswer:
    part = hook.part
    if not os.path.exists(hook.database):
        hook.log("there is no store yet; it is being created")
        run_apply.start(hook)
        return NO_ANSWER
    from ctx.agents.runtime import session_context

    place = _place(hook, event)
    began = clock.monotonic()
    try:
        with closing(for_reading(hook)) as connection, _project_store_state(hook, event) as own:
            context = session_context.start_context(hook, connection, own, place, event)
            text, tokens, items = context[:3]
            took_ms = round((clock.monotonic() - began) * 1000)
            if part == 1 and hook_queries.are_nodes_expanded(connection):
                from ctx.agents.runtime import pending_results

                stores = session_context.stores_of(own, connection)
                more, nodes = pending_results.take_expanded(hook, stores, event.session, text)
                text, items = text + more, (*items, *nodes)
                tokens += sum(node.tokens for node in nodes)
    except sqlite3.OperationalError:
        # The store may have an older schema. It is migrated for the next session.
        run_apply.start(hook)
        raise
    if not text or (part > 1 and not items):
        return NO_ANSWER
    with _log_write_errors(hook):
        hook_receipts.receipt(
            hook, event, place, items, tokens, hook_receipts.build_report(context, took_ms)
        )
    if part > 1:
        return HookAnswer(text)
    from ctx.agents.runtime import notices

    message = notices.notice(hook, text, items, tokens, is_paused=is_paused)
    return HookAnswer(text, message)


def _is_first(hook: "Hook", event: "HookEvent", part: int) -> bool:
    """Whether no other process answers this event.

    If hooks are registered in two places, the client runs both at the same time.
    """
    from zlib import crc32

    process = hook.host.process(hook.environment).encode()
    name = f"{event.session}.start-{crc32(event.raw + process):08x}-{part}"
    return live.claim(hook.home, name, hook.now_ms(), _AT_ONCE_MS * clock.patience)


def prompt_submit(hook: "Hook", event: "HookEvent") -> HookAnswer:
    """The pending results of this session, and what is relevant to the prompt. Commands of the last
    Stop run first."""
    is_paused = hook.is_paused(event.raw)
    with _log_write_errors(hook):
        if not is_paused:
            hook.put(spool.new_id(hook.now_ms()), hook.word, event.raw)
    try:
        start = _start_with_prompt(hook, event, is_paused=is_paused)
        found = _prompt_submit(hook, event)
        return HookAnswer(_below(start.text, found.text), _below(start.message, found.message))
    finally:
        # Last, because the worker has a request to answer first.
        if not is_paused:
            hook.wake_worker()


def _start_with_prompt(hook: "Hook", event: "HookEvent", *, is_paused: bool) -> HookAnswer:
    """The context of a session, with its first prompt after it was started, resumed or
    compacted."""
    if not (hook.host.starts_with_prompt or hook.host.compacts_silently):
        return NO_ANSWER
    source = live.take(hook.home, f"{event.session}.source")
    if not source and hook.host.starts_with_prompt and not live.is_known(hook.home, event.session):
        # No hook reported the start of the session.
        with _log_write_errors(hook):
            _mark_live(hook, event)
        has_context = start_receipts.of_session(hook.home, event.session) is not None
        source = "resume" if has_context else "startup"
    if not source:
        return NO_ANSWER
    return _answer_start(hook, event._replace(source=source), is_paused=is_paused)


def _below(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def _prompt_submit(hook: "Hook", event: "HookEvent") -> HookAnswer:
    failed = ""
    if any(map(spool.has_commands, hook.waiting())):
        hook.limit = hook.WORK_S
        done = run_apply.apply(hook, (hook.WORK_S - _ANSWERING_S) * clock.patience)
        failed = _failures(result for result in done if result["session"] == event.session)
    # Pending results are removed when they are taken, so the time from taking them to printing them
    # must be short.
    more = _first_prompt(hook, event)
    if more is None:
        more = _relevant(hook, event)
    text, items = _take_results(hook, event)
    if more.text and text:
        # Results that the agent asked for come first, because the host limits the length.
        if hook.host.length(text) + hook.host.length(more.text) >= hook.host.largest_answer:
            more = contexts.NOTHING
        text += "\n" if more.text else ""
    text, items = text + more.text, [*items, *more.items]
    if not text:
        return NO_ANSWER
    from ctx import tokens

    place = _place(hook, event)
    with _log_write_errors(hook):
        hook_receipts.receipt(hook, event, place, items, tokens.estimate(text))
    return HookAnswer(text, failed)


def _take_results(hook: "Hook", event: "HookEvent") -> "tuple[str, list[ContextItem]]":
    """The pending results of this session."""
    if not os.path.exists(hook.database):
        # The store is created when there is something to store.
        return "", []
    with closing(for_reading(hook)) as connection:
        if not hook_queries.is_anything_pending(connection):
            return "", []
        # Results that are taken but not printed are lost, so a busy machine gets more time.
        hook.limit = hook.WORK_S
        from ctx.agents.runtime import pending_results, session_context

        with _project_store_state(hook, event) as own:
            stores = session_context.stores_of(own, connection)
            return pending_results.take(hook, stores, event.session)


def _first_prompt(hook: "Hook", event: "HookEvent") -> "Context | None":
    """What earlier sessions said about the first prompt of a session; None for a later one."""
    if not event.prompt.strip() or not os.path.exists(hook.database):
        return None
    name = f"{event.session}.prompted"
    with _log_write_errors(hook):
        if not live.claim(hook.home, name, hook.now_ms(), _A_SESSION_MS):
            return None
    from ctx.agents.runtime import first_prompt

    with closing(for_reading(hook)) as connection, _project_store_state(hook, event) as own:
        return first_prompt.relevant_excerpts(hook, connection, own, _place(hook, event), event)


def _relevant(hook: "Hook", event: "HookEvent") -> Context:
    """What is relevant to the prompt; empty if no worker answers in time."""
    if not event.prompt.strip():
        return contexts.NOTHING
    question = {
        "folder": _folder(hook, event),
        "session": event.session,
        "prompt": event.prompt[:_LONGEST_PROMPT],
    }
    reply = run_apply.ask(hook, "/api/prompt", question, _RELEVANT_S * clock.patience)
    try:
        if reply is None or not reply["text"]:
            return contexts.NOTHING
        items = tuple(ContextItem(**item) for item in reply["items"])
        return Context(str(reply["text"]), int(reply["tokens"]), items)
    except (KeyError, TypeError, ValueError):
        # A worker of another version uses another format.
        return contexts.NOTHING


def pre_compact(hook: "Hook", event: "HookEvent") -> None:
    """Save what the agent is working on, as far as memory knows it."""
    if not hook.is_paused(event.raw):
        hook.put(spool.new_id(hook.now_ms()), hook.word, event.raw)
        hook.wake_worker()
    from ctx.agents.runtime import session_context

    with closing(for_reading(hook)) as connection, _project_store_state(hook, event) as own:
        stores = session_context.stores_of(own, connection)
        session_context.save_compaction_state(hook, stores, _place(hook, event), event.session)
    if hook.host.compacts_silently:
        live.write(hook.home, f"{event.session}.source", "compact")


def after_tool(hook: "Hook", event: "HookEvent") -> HookAnswer:
    """The context of a session that was compacted in the middle of a turn, and what memory knows
    about a file that was read."""
    start = NO_ANSWER
    if hook.host.compacts_silently:
        start = _start_with_prompt(hook, event, is_paused=hook.is_paused(event.raw))
    found = about_files(hook, event) or NO_ANSWER
    return HookAnswer(_below(start.text, found.text), _below(start.message, found.message))


def about_files(hook: "Hook", event: "HookEvent") -> "HookAnswer | None":
    """What memory knows about a file that the agent reads or edits, once for each session."""
    from ctx.agents.runtime import anchored_nodes

    for file in hook.files(event.raw):
        # It may belong to another project.
        there = event._replace(folder=os.path.dirname(file))
        place = _place(hook, there)
        with closing(for_reading(hook)) as connection, _project_store_state(hook, there) as own:
            context = anchored_nodes.about_file(hook, connection, own, place, event, file)
        if context.text:
            # An edit of several files gets no more than an edit of one.
            with _log_write_errors(hook):
                hook_receipts.receipt(hook, event, place, context.items, context.tokens)
            return HookAnswer(context.text)
    return None


ANSWERS: "dict[str, Callable[[Hook, HookEvent], HookAnswer | None]]" = {
    "session-start": session_start,
    "prompt-submit": prompt_submit,
    "pre-compact": pre_compact,
    spool.POST_TOOL: after_tool,
    spool.PRE_EDIT: about_files,
}


def end(hook: "Hook", data: bytes) -> None:
    """Note that a session has ended. A cleared session continues under another id."""
    event = _event(hook, data)
    if event is not None:
        if event.is_cleared:
            live.write(hook.home, _cleared_session_file(hook, event), event.session)
        live.remove(hook.home, event.session)
        run_apply.start(hook)


def respond(hook: "Hook", data: bytes, response: str) -> bytes:
    """Handle a Stop whose response is an argument of the command instead of being in a
    transcript."""
    default = hook.environment.get("CTX_SESSION") or "cli"
    folder = hook.host.folder(data) or _folder(hook)
    session, payload = hook.host.with_response(data, default, folder, response)
    event_id = spool.new_id(hook.now_ms())
    hook.put(event_id, f"{spool.STOP}.-", payload, durable=True)
    return work(hook, event_id, session)


def work(hook: "Hook", event_id: str, session: str) -> bytes:
    """Run an agent's commands, and report failures to the user."""
    hook.limit = hook.WORK_S
    began_ms = hook.now_ms()
    done = run_apply.apply(hook, (hook.WORK_S - _ANSWERING_S) * clock.patience)
    mine = [result for result in done if result["event"] == event_id]
    failed = _failures(mine) if mine else _failures_since(hook, session, began_ms)
    return _serialize_answer(hook, HookAnswer(message=failed))


def _failures_since(hook: "Hook", session: str, began_ms: int) -> str:
    """The failures if another process runs the commands, as far as they are known yet."""
    since = clock.iso(began_ms - 1000)
    with closing(for_reading(hook)) as connection:
        commands = hook_queries.commands_since(connection, session, since)
        # Problems that are reported to the agent with its next prompt belong to this answer.
        problems = hook_queries.pending(connection, f"command_problems:{session}") or ""
    failed = sum(commands)
    proposed = problems.count(_PROPOSED)
    return _failures([{"done": len(commands) - failed, "failed": failed, "proposed": proposed}])


def _failures(stops: "Iterable[dict[str, Any]]") -> str:
    """The message for the user: failed commands, and proposals to review."""
    counts = [(stop["done"], stop["failed"], stop.get("proposed", 0)) for stop in stops]
    failed, proposed = sum(count[1] for count in counts), sum(count[2] for count in counts)
    count = failed + sum(count[0] for count in counts)
    lines = []
    if failed:
        commands = "1 command" if count == 1 else f"{failed:,} of {count:,} commands"
        lines.append(f"ctx: {commands} failed; the agent is told with your next prompt")
    if proposed:
        what = "a proposal" if proposed == 1 else f"{proposed:,} proposals"
        lines.append(f"ctx: the agent made {what}; `ctx review` lets you decide")
    return "\n".join(lines)


@contextmanager
def _log_write_errors(hook: "Hook") -> "Iterator[None]":
    """Log errors when writing. The agent gets its context anyway."""
    try:
        yield
    except OSError as error:
        hook.refused = error.strerror or type(error).__name__
        hook.log(f"{type(error).__name__}: {error}")


# The event


def _event(hook: "Hook", payload: bytes) -> "HookEvent | None":
    try:
        event = hook.host.read(payload)
    except (ValueError, RecursionError):
        hook.log("the input of the hook is not JSON")
        return None
    if not live.is_session(event.session):
        hook.log("the input of the hook names no session")
        return None
    return event


def _serialize_answer(hook: "Hook", answer: "HookAnswer | None") -> bytes:
    """The answer as the host reads it. An agent must not get text that its user cannot see."""
    if answer is None:
        return b""
    plain = f"{answer.text}{answer.message}".replace("\n", "")
    if not (plain.isascii() and plain.isprintable()):
        from ctx.markdown import visible

        answer = answer._replace(text=visible(answer.text), message=visible(answer.message))
    return hook.host.write(spool.EVENTS[hook.word], answer)


def _place(hook: "Hook", event: "HookEvent") -> Place:
    def trusts(project: "layout.Project") -> bool:
        from ctx.project import trust_list

        return trust_list.is_trusted(hook.home, project)

    return layout.place(_folder(hook, event), hook.home, trusts)


def _folder(hook: "Hook", event: "HookEvent | None" = None) -> str:
    """The agent's folder, else the one in which the host or the hook was started."""
    for path in (event.folder if event else "", hook.host.project_folder(hook.environment)):
        if os.path.isabs(path) and "\0" not in path:
            return path
    return os.getcwd()


def _client() -> str:
    """The process that runs the hooks of a session, with a shell between; empty: it is unknown."""
    process = os.getppid()
    while process > 1:
        parent, name = _parent(process)
        if name not in _SHELLS:
            return str(process) if name else ""
        process = parent
    return ""


def _parent(process: int) -> tuple[int, str]:
    """The parent of a process, and the name of its program; empty: it is unknown."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(") ")
        return int(rest.split()[1]), name
    except FileNotFoundError:
        return _parent_by_ps(process)
    except (OSError, ValueError, IndexError):
        return 0, ""


def _parent_by_ps(process: int) -> tuple[int, str]:
    """The same where the system shows no files about processes."""
    import subprocess

    words = ["ps", "-o", "ppid=,comm=", "-p", str(process)]
    try:
        found = subprocess.run(words, capture_output=True, text=True, timeout=1, check=True).stdout
        parent, _, name = found.strip().partition(" ")
        return int(parent), os.path.basename(name.strip().lstrip("-"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0, ""


def _mark_live(hook: "Hook", event: "HookEvent") -> None:
    session, source = event.session, event.source
    process = hook.host.process(hook.environment) or _client()
    live.begin(hook.home, session, process, _folder(hook, event))
    before = ""
    if source == "clear":
        name = _cleared_session_file(hook, event)
        before = live.read(hook.home, name)
        live.remove(hook.home, name)
    elif source == "fork":
        before = hook.host.forked_from(event, process, clock.wall_s())
    if live.is_session(before) and before != session:
        # The last commands of a cleared session may still be running.
        later_ms = _MOMENT_MS if source == "clear" else 0
        live.follow(hook.home, session, before, hook.now_ms() + later_ms)


def _cleared_session_file(hook: "Hook", event: "HookEvent") -> str:
    """The name of the file in which a client records the session that it cleared. Older clients do
    not report their process id, so the folder identifies them."""
    process = hook.host.process(hook.environment)
    if process.isdecimal():
        return f"cleared-{process}"
    from zlib import crc32

    return f"cleared-{crc32(os.fsencode(_folder(hook, event))):08x}"


# SessionStart


@contextmanager
def _project_store_state(hook: "Hook", event: "HookEvent") -> "Iterator[ProjectStoreState]":
    """The project store; none if `CTX_DB` names the only store to use."""
    project = None if hook.is_alone else layout.find_project(_folder(hook, event), hook.home)
    own = NO_STORE
    if project is not None:
        from ctx.context import project_store_context

        own = project_store_context.read(hook.home, project)
    try:
        if not own.is_current and hook.part == 1:
            # The index is updated for the next session.
            run_apply.start(hook)
        yield own
    finally:
        if own.connection is not None:
            own.connection.close()
