"""Fill a store with sessions, their changes, observations and learnings."""

from collections.abc import Sequence
from typing import Any

from ctx import clock, terms
from ctx.capture import steps
from ctx.capture.steps import Step
from ctx.ids import NodeId, Ulid
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from tests.memory import graphs

DAY_MS = 86_400_000
_numbers = iter(range(1, 10_000_000))


def new_id() -> NodeId:
    return NodeId(Ulid(f"01KG{next(_numbers):08d}{'0' * 14}"))


def node(
    graph: Graph, node_type: str, content: str, tags: Sequence[str] = (), **metadata: Any
) -> NodeId:
    with changing(graph, "add", graphs.WHO) as change:
        node_id = change.add_node(node_type, content, node_id=new_id(), metadata=metadata)
        for tag in tags:
            change.tag(node_id, tag)
    return node_id


def session(
    graph: Graph, name: str, days_ago: float, project: str | None = "app", **summary: Any
) -> NodeId | None:
    """Add a session that ended some days ago, with a summary if there are sections for one."""
    last_at = clock.iso(clock.now_ms() - int(days_ago * DAY_MS))
    summary_id = None
    if summary:
        text = "\n".join(f"**{key.capitalize()}:** {value}" for key, value in summary.items())
        tags = [f"session:{name}", *([f"project:{project}"] if project else [])]
        summary_id = node(graph, "summary", text, tags, **summary)
    graph.connection.execute(
        "INSERT INTO sessions (id, project, folder, status, started_at, last_at, summary)"
        " VALUES (?, ?, '/app', 'completed', ?, ?, ?)",
        (name, project, last_at, last_at, summary_id),
    )
    return summary_id


def change(
    graph: Graph,
    session_id: str,
    path: str,
    signature: str,
    kind: str = "modified",
    minutes_ago: int = 0,
    project: str | None = "app",
    line: int = 1,
) -> None:
    name = signature.partition("(")[0].rpartition(" ")[2]
    graph.connection.execute(
        "INSERT OR REPLACE INTO symbol_changes VALUES (?, ?, ?, 'function', ?, ?, ?, ?, ?)",
        (
            *(session_id, path, name, kind, signature, line, project),
            clock.iso(clock.now_ms() - minutes_ago * 60_000),
        ),
    )


def command(
    graph: Graph,
    session_id: str,
    text: str,
    purpose: str = "test",
    last: str = "passed",
    problem: str = "",
    replaced_by: str = "",
    runs: int = 1,
    days_ago: int = 0,
) -> None:
    passes = runs if last == "passed" else 0
    failures = runs if last == "failed" else 0
    last_at = clock.iso(clock.now_ms() - days_ago * DAY_MS)
    graph.connection.execute(
        "INSERT INTO session_commands VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, text, purpose, runs, passes, failures, last_at, last, problem, replaced_by),
    )


def learning(graph: Graph, category: str, text: str, confidence: int = 800, **more: Any) -> NodeId:
    tags = [f"learning:{category}", "project:app"]
    metadata = {"confidence": confidence, "times_seen": 3, "origin": "inferred", **more}
    return node(graph, "pattern", text, tags, **metadata)


def observation(
    graph: Graph, session_id: str, kind: str, title: str, text: str = "", **metadata: Any
) -> NodeId:
    tags = [f"kind:{kind}", f"session:{session_id}", "project:app"]
    content = f"{title}\n{text}" if text else title
    return node(graph, "observation", content, tags, title=title, **metadata)


def message(
    graph: Graph, session: str, days_ago: float, text: str, source: str = "user", step: str = ""
) -> None:
    """Add what was said in a message, as an excerpt."""
    at = clock.iso(clock.now_ms() - int(days_ago * DAY_MS))
    graph.connection.execute(
        "INSERT INTO excerpts (session, project, step, part, at, kind, source, worth, text, terms)"
        " VALUES (?, 'app', ?, 0, ?, 'prompt', ?, 0, ?, ?)",
        (session, step or f"{at}{text[:40]}", at, source, text, terms.column(text)),
    )


def step(graph: Graph, session_id: str, kind: Any, **told: Any) -> str:
    """Add a step to the table of events, as capture does. The id of its event."""
    event_id = f"{next(_numbers):013d}-1-a"
    made = Step(event_id, session_id, "2026-01-20T10:00:00Z", kind, **told)
    graph.connection.execute(
        "INSERT INTO events (id, session, event, at, status, body)"
        " VALUES (?, ?, 'PostToolUse', ?, 'step', ?)",
        (event_id, session_id, made.at, steps.body(made)),
    )
    return event_id
