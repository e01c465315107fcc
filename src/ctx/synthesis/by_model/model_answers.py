"""What models answered, as the table `model_answers` keeps it."""

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
    """One answer, or why there is none."""

    session: str
    kind: Kind
    first: str
    steps: tuple[str, ...]
    """The steps that it is about, by their ids; of a summary, the last."""
    at: str
    model: str
    body: dict[str, Any]
    problem: str


def new_answer(
    question: ModelQuestion, at: str, model: str, body: dict[str, Any], problem: str
) -> ModelAnswer:
    """What is to be kept of an answer. Its body has been read, so it holds no secret."""
    return ModelAnswer(
        *(question.session, question.kind, question.first, question.steps, at),
        redact(model).text[:_LONGEST_MODEL],
        body,
        redact(problem).text[:_LONGEST_PROBLEM],
    )


def put(connection: Connection, answer: ModelAnswer) -> None:
    """Inside a transaction; in the place of what was answered about the same before.

    One that is of no use does not take the place of one that is, and that is still of it all.
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
    """What was answered about a session, in the order of its steps."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM model_answers WHERE session = ? ORDER BY kind, first", (session,)
    )
    return [from_row(row) for row in rows]


def count_and_last(connection: Connection, session: str) -> tuple[int, str | None]:
    """How many answers there are about a session, and when the last of them came."""
    found: tuple[int, str | None] = connection.execute(
        "SELECT count(*), max(at) FROM model_answers WHERE session = ?", (session,)
    ).fetchone()
    return found


def last_at(connection: Connection) -> str:
    """When the last answer came; empty where there is none."""
    return connection.execute("SELECT max(at) FROM model_answers").fetchone()[0] or ""


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM model_answers WHERE session = ?", (session,))


def sessions(connection: Connection) -> list[str]:
    """Those that a model was asked about."""
    rows = connection.execute("SELECT DISTINCT session FROM model_answers")
    return [row[0] for row in rows]


def asked_about(answers: Sequence[ModelAnswer]) -> set[str]:
    """The steps that a model was asked about, whatever it said."""
    return {step for answer in answers if answer.kind == "steps" for step in answer.steps}


def summary_of(answers: Sequence[ModelAnswer]) -> ModelAnswer | None:
    return next((answer for answer in answers if answer.kind == "summary"), None)


def _is_about(answer: ModelAnswer, other: ModelAnswer) -> bool:
    """Whether two answers are about the same steps, or both about the whole."""
    is_same = answer.kind == "summary" or not set(answer.steps).isdisjoint(other.steps)
    return answer.kind == other.kind and is_same


def _is_good_for(answer: ModelAnswer, other: ModelAnswer) -> bool:
    return not answer.problem and (answer.kind == "steps" or answer.steps >= other.steps)


def from_row(row: Sequence[str]) -> ModelAnswer:
    """Out of its row; one that somebody has damaged says nothing."""
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
