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
    first: str
    steps: tuple[str, ...]
    """The ids of its steps; for a summary, of the last step."""
    at: str
    model: str
    body: dict[str, Any]
    problem: str


def new_answer(
    question: ModelQuestion, at: str, model: str, body: dict[str, Any], problem: str
) -> ModelAnswer:
    """The row for an answer. Its body is already parsed and redacted."""
    return ModelAnswer(
        *(question.session, question.kind, question.first, question.steps, at),
        redact(model).text[:_LONGEST_MODEL],
        body,
        redact(problem).text[:_LONGEST_PROBLEM],
    )


def put(connection: Connection, answer: ModelAnswer) -> None:
    """Store an answer, replacing earlier ones about the same steps; needs a transaction.

    A failed answer does not replace a usable one that is still complete.
    """
    before = [each for each in of_session(connection, answer.session) if _is_about(each, answer)]
    if answer.problem and any(_is_good_for(each, answer) for each in before):
        return
    connection.executemany(
        "DELETE FROM model_answers WHERE session = ? AND kind = ? AND first = ?",
        [each[:3] for each in before],
    )
    steps = json.dumps(answer.steps, separators=(",", ":"))
    body = json.dumps(answer.body, ensure_ascii=False, separators=(",", ":"))
    connection.execute(
        f"INSERT OR REPLACE INTO model_answers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*answer[:3], steps, *answer[4:6], body, answer.problem),
    )


def of_session(connection: Connection, session: str) -> list[ModelAnswer]:
    """The answers about a session, in the order of its steps."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM model_answers WHERE session = ? ORDER BY kind, first", (session,)
    )
    return [from_row(row) for row in rows]


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


def asked_step_ids(answers: Sequence[ModelAnswer]) -> set[str]:
    """The ids of the steps that a model was asked about."""
    return {step for answer in answers if answer.kind == "steps" for step in answer.steps}


def summary_of(answers: Sequence[ModelAnswer]) -> ModelAnswer | None:
    return next((answer for answer in answers if answer.kind == "summary"), None)


def _is_about(answer: ModelAnswer, other: ModelAnswer) -> bool:
    """Whether two answers share steps, or are both summaries."""
    is_same = answer.kind == "summary" or not set(answer.steps).isdisjoint(other.steps)
    return answer.kind == other.kind and is_same


def _is_good_for(answer: ModelAnswer, other: ModelAnswer) -> bool:
    return not answer.problem and (answer.kind == "steps" or answer.steps >= other.steps)


def from_row(row: Sequence[str]) -> ModelAnswer:
    """An answer from its row; a damaged row gives an empty answer."""
    session, kind, first, steps, at, model, body, problem = row
    ids, said = _json(steps), _json(body)
    return ModelAnswer(
        session,
        "steps" if kind == "steps" else "summary",
        first,
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
