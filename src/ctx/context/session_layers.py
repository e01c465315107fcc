"""The layers of a context about past sessions: how they ended, what the user said, what ran.

    ## Where things stand
    - [yesterday] The refresh takes a lock now.
    - The user wrote last, without an answer: And the mobile client?
    - Next: the same for the mobile client.
    - Not committed: src/auth.py
    ## Rules and corrections
    - Never commit yourself: I review every change first.
    ## What the user said
    - [yesterday] The states of an invoice stay in German.
    ## Commands that work here
    - test: `pnpm vitest run` (14 runs in 6 sessions)
    ## Recent Sessions
    - [2 days ago] Check the links. Fixed one in docs/setup.md (12 times)

Each layer is a list of lines, most important first. A layer that cannot be read has a `problem`,
and the others are not affected.

Hooks load this module, so it imports nothing slow.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.context import command_lines, hook_queries, layer_rows, user_statements
from ctx.context.contexts import COMMANDS, RULES, SESSIONS, STANDING, WORDS
from ctx.context.layer_lines import Layer, LayerLimits, LayerLine, cut, digest, sentence
from ctx.markdown import flat
from ctx.memory import model

# The lengths of the forms of a line, in characters.
_LENGTHS = (300, 160, 80)
_NEXT, _UNCOMMITTED = "- Next: ", "- Not committed: "
_UNANSWERED = "- The user wrote last, without an answer: "
_MOST_NAMED = 3
_MOST_OF_A_SESSION = 300
_LONGEST_PART, _LONGEST_SHORT, _SHORTEST = 240, 120, 60
_MOST_SESSIONS_READ = 400
_FEWEST_RUNS = 3
"""The same single prompt so often is an automated run."""
_LATER_REQUEST = " Then: "
"""Synthesis writes this between the requests of a session."""
# Dates, times, ids and long numbers, but not `phase 3`.
_DIFFERS = re.compile(
    r"\b(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:t[\d:.]+z?)?|\d{1,2}:\d{2}(?::\d{2})?|\d{5,}"
    r"|(?=[a-z-]*\d)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*)\b"
)


class LayerRequest(NamedTuple):
    """Which sessions the layers cover."""

    project: str | None
    session: str
    """The session that gets the context; its own work is left out."""
    limits: LayerLimits
    rule_tokens: int


def build_layers(connections: Sequence[Connection], asked: LayerRequest) -> list[Layer]:
    """The layers in order. The last store is the user's, which has the sessions."""
    user, project, session, limits = connections[-1], asked.project, asked.session, asked.limits

    standing = _build_layer(STANDING, lambda: _last_session_state(connections, project, session))
    rules = _build_layer(
        RULES, lambda: user_statements.rules(connections, project, asked.rule_tokens)
    )
    words = _build_layer(
        WORDS,
        lambda: user_statements.messages(
            connections, project, session, [*standing.lines, *rules.lines]
        ),
    )
    commands = _build_layer(
        COMMANDS, lambda: command_lines.lines(user, project, session)[: limits.most_commands]
    )
    # The last session needs no line of its own if its end is shown.
    without = sum(line.texts[0].startswith("- [") for line in standing.lines[:1])
    sessions = _build_layer(SESSIONS, lambda: _sessions(connections, asked, without))
    listed = sessions.lines
    sessions = sessions._replace(
        lines=listed[: limits.most_sessions], left_out=len(listed[limits.most_sessions :])
    )
    return [standing, rules, words, commands, sessions]


def _build_layer(name: str, build: "Callable[[], list[LayerLine]]") -> Layer:
    try:
        return Layer(name, tuple(build()))
    except sqlite3.DatabaseError as error:
        return Layer(name, (), 0, str(error))


# Where things stand


def _last_session_state(
    connections: Sequence[Connection], project: str | None, session: str
) -> list[LayerLine]:
    """The end of the last session: what is done, unanswered, open and not committed."""
    user = connections[-1]
    lines = []
    last = hook_queries.sessions(user, project, session, 1)
    summaries = hook_queries.valid_nodes(connections, [last[0][2]], project) if last else []
    today = clock.day_number(clock.now_ms())
    age = clock.days_ago(today - clock.day_number((last[0][1] or 0) * 1000)) if last else ""
    for row in summaries:
        about = model.from_json(row[3])
        if _is_edited(row, about):
            continue
        done = [sentence(each) for each in layer_rows.texts(about.get("ended"))]
        steps = layer_rows.texts(about.get("next_steps"))
        while len(steps) > 1 and len("; ".join(steps)) > _LONGEST_PART:
            steps.pop()
        further = layer_rows.next_steps({"next_steps": steps} if steps else about)
        files = layer_rows.texts(about.get("uncommitted"))
        more = f" and {len(files) - _MOST_NAMED:,} more" if len(files) > _MOST_NAMED else ""
        lines = [
            _standing_line(row, f"- [{age}] ", " ".join(done), (done or [""])[0]),
            _standing_line(row, _NEXT, further, (steps or [""])[0]),
            _standing_line(row, _UNCOMMITTED, ", ".join(files[:_MOST_NAMED]) + more),
        ]
    unanswered = hook_queries.unanswered_message(user, project, session)
    if unanswered and not layer_rows.Withdrawn(connections, project).has(
        unanswered[0], "", unanswered[2]
    ):
        name, at, text = unanswered
        line = _standing_line(("", "", "", "", "", at), _UNANSWERED, text)
        lines.insert(1, line and line._replace(label=f"said:{name[:8]}.{line.digest}"))
    # What room is left shows the best passage of the final message.
    finals = [
        row
        for name, *_ in last
        for row in hook_queries.nodes_with_tag(
            connections, project, f"session:{name}", _MOST_OF_A_SESSION
        )
        if model.from_json(row[3]).get("said_as") == "final"
    ]
    finals.sort(key=lambda row: model.from_json(row[3]).get("worth") or 0, reverse=True)
    said = layer_rows.words(" ".join(line.texts[0] for line in lines if line))
    for row in finals[:1]:
        if not layer_rows.is_mostly_in(layer_rows.words(row[2]), said, _LONGEST_PART):
            line = _standing_line(row, f"- [{age}] ", row[2])
            lines.append(line and line._replace(texts=line.texts[:1]))
    return [line for line in lines if line]


def _standing_line(row: Sequence[Any], prefix: str, text: str, short: str = "") -> LayerLine | None:
    whole = flat(text)
    first = flat(short) or whole
    texts = cut(whole, _LONGEST_PART), cut(first, _LONGEST_SHORT), cut(first, _SHORTEST)
    forms = tuple(f"{prefix}{each}" for each in dict.fromkeys(texts))
    return LayerLine(row[0], layer_rows.label(row), row[5], digest(whole), forms) if whole else None


# Recent sessions


def _sessions(
    connections: Sequence[Connection], asked: LayerRequest, without: int
) -> list[LayerLine]:
    """The lines without those of the newest sessions, so many of them."""
    lines, count = _session_lines(connections, asked, hook_queries.MOST_SESSIONS, without)
    if len(lines) < min(asked.limits.most_sessions, count):
        # Automated runs take one line, even if all of the latest sessions are such runs.
        lines, _ = _session_lines(connections, asked, _MOST_SESSIONS_READ, without)
    return lines


def _session_lines(
    connections: Sequence[Connection], asked: LayerRequest, most_read: int, without: int
) -> tuple[list[LayerLine], int]:
    """The lines without the newest sessions, and the number of sessions in them."""
    every = hook_queries.sessions(connections[-1], asked.project, asked.session, most_read)
    seconds = {row[2]: row[1] or 0 for row in every[without:]}
    nodes = {
        row[0]: row for row in hook_queries.valid_nodes(connections, list(seconds), asked.project)
    }
    for row in layer_rows.shared_summaries(connections, asked.project, asked.session):
        if row[0] not in nodes:
            nodes[row[0]] = row
            seconds[row[0]] = (clock.parse_iso(row[5]) or 0) // 1000
    written_by = layer_rows.author_prefixes(connections, list(nodes))
    today = clock.day_number(clock.now_ms())
    ordered = sorted(nodes, key=lambda node_id: (seconds[node_id], node_id), reverse=True)
    runs = {
        node_id: (written_by.get(node_id, ""), _request_key(nodes[node_id])) for node_id in ordered
    }
    times = Counter(runs.values())
    # Sessions with the same summary appear once, at their latest time. So do automated runs.
    lines: dict[tuple[str, str], LayerLine] = {}
    for node_id in ordered:
        author, request = runs[node_id]
        count = times[author, request] if request else 1
        age = clock.days_ago(today - clock.day_number(seconds[node_id] * 1000))
        is_automated = count >= _FEWEST_RUNS
        line = _session_line(nodes[node_id], age, author, count if is_automated else 1)
        lines.setdefault((author, request if is_automated else line.digest), line)
    return list(lines.values()), len(ordered)


def _request_key(row: Sequence[Any]) -> str:
    """The request of a session with one prompt, without what differs between automated runs."""
    about = model.from_json(row[3])
    request = flat(str(about.get("request") or ""))
    if about.get("key") != "summary" or request not in flat(row[2]) or _LATER_REQUEST in request:
        return ""
    return _DIFFERS.sub("#", request.casefold())


def _session_line(row: Sequence[Any], age: str, author: str, count: int) -> LayerLine:
    told = _summary_line(row)
    times = f" ({count:,} times)" if count > 1 else ""
    texts = tuple(f"- [{age}] {author}{cut(told, length)}{times}" for length in _LENGTHS)
    return LayerLine(row[0], layer_rows.label(row), row[5], digest(told), texts, told)


def _summary_line(row: Sequence[Any]) -> str:
    """The goal of a session, what it did and what is left to do, in one line."""
    about = model.from_json(row[3])
    if _is_edited(row, about):
        return flat(row[2][: layer_rows.LONGEST_COMPARED])
    title = layer_rows.one_line(about.get("title")) or layer_rows.one_line(about.get("request"))
    # A session that completed nothing may have learned or edited something.
    done = layer_rows.one_line(about.get("completed")) or layer_rows.one_line(about.get("learned"))
    done = done or _edited_files_text(about) or layer_rows.one_line(about.get("investigated"))
    further = layer_rows.next_steps(about)
    if title and title.casefold() not in done.casefold():
        done = f"{sentence(title)} {done}".strip()
    told = f"{sentence(done)} Next: {further}" if done and further else done
    return told or flat(row[2][: layer_rows.LONGEST_COMPARED])


def _is_edited(row: Sequence[Any], about: dict[str, Any]) -> bool:
    """Whether the user has edited a summary since."""
    made_of = [str(about.get("request", "")), *layer_rows.texts(about.get("completed"))]
    return about.get("key") == "summary" and not all(each in row[2] for each in made_of)


def _edited_files_text(about: dict[str, Any]) -> str:
    files = layer_rows.texts(about.get("files_edited"))
    more = f" and {len(files) - 3:,} more" if len(files) > 3 else ""
    return flat(f"Edited {', '.join(files[:3])}{more}") if files else ""
