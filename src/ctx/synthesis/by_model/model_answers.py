"""Reads and writes the table `model_answers`."""

import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.redaction import redact
from ctx.synthesis.by_model.questions import Kind, ModelQuestion

_COLUMNS = "session, kind, first, steps, at, model, body, problem"
_LONGEST_PROBLEM = 300
_LONGEST_MODEL = 200


class ModelAnswer(NamedTuple):
    """One answer, or the problem why there is none."""

    session: str
    kind: Kind
    steps: tuple[str, ...]
    """The ids of the steps that the question showed; the last one is the last of the session."""
    at: str
    model: str
    body: dict[str, Any]
    problem: str

    @property
    def last(self) -> str:
        """The last step that it is about."""
        return self.steps[-1] if self.steps else ""


def new_answer(
    question: ModelQuestion, at: str, model: str, body: dict[str, Any], problem: str
) -> ModelAnswer:
    """The row for an answer. Its body is already parsed and redacted."""
    return ModelAnswer(
        *(question.session, question.kind, question.steps, at),
        redact(model).text[:_LONGEST_MODEL],
        body,
        redact(problem).text[:_LONGEST_PROBLEM],
    )


def put(connection: Connection, answer: ModelAnswer) -> None:
    """Store an answer, replacing an earlier one; needs a transaction.

    A failed answer does not replace a usable one that is still complete.
    """
    before = of_session(connection, answer.session).get(answer.kind)
    if answer.problem and before and not before.problem and before.last >= answer.last:
        return
    steps = json.dumps(answer.steps, separators=(",", ":"))
    body = json.dumps(answer.body, ensure_ascii=False, separators=(",", ":"))
    connection.execute(
        f"INSERT OR REPLACE INTO model_answers ({_COLUMNS}) VALUES (?, ?, '', ?, ?, ?, ?, ?)",
        (*answer[:2], steps, *answer[3:5], body, answer.problem),
    )


def of_session(connection: Connection, session: str) -> dict[str, ModelAnswer]:
    """The answers about a session, by kind. Those of an older ctx are left out."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM model_answers WHERE session = ? AND first = ''", (session,)
    )
    return {row[1]: _from_row(row) for row in rows}


def count_and_last(connection: Connection, session: str) -> tuple[int, str | None]:
    """The number of answers about a session, and the time of the last one."""
    found: tuple[int, str | None] = connection.execute(
        "SELECT count(*), max(at) FROM model_answers WHERE session = ?", (session,)
    ).fetchone()
    return found


def last_at(connection: Connection) -> str:
    """The time of the last answer; empty if there is none."""
    return connection.execute("SELECT max(at) FROM model_answers").fetchone()[0] or ""


def forget_session(connection: Connection, session: str) -> None:
    """Delete the answers about a session; needs a transaction."""
    connection.execute("DELETE FROM model_answers WHERE session = ?", (session,))


def sessions(connection: Connection) -> list[str]:
    """The sessions with answers."""
    rows = connection.execute("SELECT DISTINCT session FROM model_answers")
    return [row[0] for row in rows]


def _from_row(row: Sequence[str]) -> ModelAnswer:
    """An answer from its row; a damaged row gives an empty answer."""
    session, kind, _, steps, at, model, body, problem = row
    ids, said = _json(steps), _json(body)
    return ModelAnswer(
        session,
        "excerpts" if kind == "excerpts" else "summary",
        tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else (),
        *(at, model),
        said if isinstance(said, dict) else {},
        problem,
    )


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
