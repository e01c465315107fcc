"""Rank the files of a project for a task.

The ranking uses the words in a file, in its path and in the names it defines, and the files that
similar past commits touched. The formula was measured (`bench/localisation.py`, which can leave out
each part).
"""

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import compress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.code import file_roles
from ctx.code.bm25 import Bm25Collection
from ctx.code.file_words import BODY, NAMES, PATH, SUBJECT
from ctx.code.history import commit_queries
from ctx.code.history.history_tables import unpack
from ctx.code.segments import FILES
from ctx.packs.prompt_pack import Signal
from ctx.search.question import SearchQuestion
from ctx.sqlite.connection import snapshot

_WEIGHTS = {BODY: 1.0, PATH: 1.5, NAMES: 0.5}
_SIGNALS = {BODY: "text", PATH: "path", NAMES: "names"}
_HISTORY = 0.3
_MENTIONED = 0.4
_RECENT = 0.15
_AUXILIARY = 0.7
_BY_ROLE = {file_roles.SOURCE: 1.0, file_roles.AUXILIARY: _AUXILIARY, file_roles.BESIDE: 0.0}
_IS_SOURCE = bytes([role == file_roles.SOURCE for role in range(256)])

_CANDIDATES = 150
_BESIDE = 50
_COMMITS = 100
_MOST_MESSAGES = 400
_AT_ONCE = 120
_MOST_FILES = 12
_HALF_LIFE_DAYS = 1000
_OLDEST_DAYS = 20_000
_FADES_IN_DAYS = 30
_DAY = 86_400


class RankedFile(NamedTuple):
    """A file with its score and the reasons for it."""

    id: int
    path: str
    score: float
    """The sum of the signals. Words alone give at most 1."""
    signals: tuple[Signal, ...]


def rank(
    connection: Connection,
    question: SearchQuestion,
    mentioned: Sequence[str] = (),
    limit: int = 50,
    without: Container[str] = (),
) -> list[RankedFile]:
    """The files that match best. `mentioned` are paths that the task names; `without` disables
    signals."""
    with snapshot(connection):
        return _rank(connection, question, mentioned, limit, without)


def _rank(
    connection: Connection,
    question: SearchQuestion,
    mentioned: Sequence[str],
    limit: int,
    without: Container[str],
) -> list[RankedFile]:
    signals: dict[str, Mapping[int, float]] = {}
    if "history" not in without:
        signals["history"] = _scale_to_weight(_HISTORY, _score_by_commits(connection, question))
    if "mentioned" not in without:
        signals["mentioned"] = _scale_to_weight(
            _MENTIONED, _score_named_files(connection, mentioned)
        )
    texts = _texts(connection, question, set().union(*signals.values()), without)
    signals = texts.signals | signals
    scores = _sums(signals)
    if "recent" not in without:
        likely = heapq.nlargest(_CANDIDATES, scores, key=scores.__getitem__)
        signals["recent"] = _scale_to_weight(_RECENT, _recent(connection, likely))
        for id, value in signals["recent"].items():
            scores[id] += value
    beside = set() if question.is_about_tests or "roles" in without else texts.beside
    first = sorted(scores, key=lambda id: (id in beside, -scores[id], id))[:limit]
    return _rank_files(connection, first, scores, signals)


def _sums(signals: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for values in signals.values():
        for id, value in values.items():
            scores[id] += value
    return scores


class _Texts(NamedTuple):
    """The matches for the words of the task."""

    signals: dict[str, Mapping[int, float]]
    """What each signal adds to each file. The best file has 1 in total."""
    beside: set[int]
    """Files that are not source: tests and documentation."""


def _texts(
    connection: Connection, question: SearchQuestion, others: set[int], without: Container[str]
) -> _Texts:
    """The files that match the words best, including the scores of `others`."""
    fields = {field: weight for field, weight in _WEIGHTS.items() if _SIGNALS[field] not in without}
    scores = Bm25Collection(connection, FILES).scores(fields, question.weights)
    signals: dict[str, dict[int, float]] = {_SIGNALS[field]: {} for field in fields}
    beside: set[int] = set()
    best = best_beside = 0.0
    for segment, totals, added in scores:
        ids, role_of = segment.ids, segment.roles
        near = _near_best(totals, role_of)
        source = {file: totals[file] * _BY_ROLE[role_of[file]] for file in near}
        wanted = compress(range(len(ids)), map(others.__contains__, ids))
        chosen = {
            *heapq.nlargest(_CANDIDATES, near, key=source.__getitem__),
            *heapq.nlargest(_BESIDE, near, key=totals.__getitem__),
            *(file for file in wanted if totals[file]),
        }
        best = max(best, max(source.values(), default=0.0))
        best_beside = max(best_beside, max(map(totals.__getitem__, near), default=0.0))
        for position in chosen:
            id, role = ids[position], role_of[position]
            if role == file_roles.BESIDE:
                beside.add(id)
            factor = _AUXILIARY if role == file_roles.AUXILIARY else 1.0
            for field, own in added.items():
                if own[position]:
                    signals[_SIGNALS[field]][id] = factor * own[position]
    most = best or best_beside
    for values in signals.values():
        for id in values:
            values[id] /= most
    return _Texts(dict(signals), beside)


def _near_best(totals: Sequence[float], role_of: bytes) -> list[int]:
    """The positions of texts that may be among the best in any role: all with at least the score of
    the last of the best source files."""
    best = heapq.nlargest(_CANDIDATES, compress(totals, role_of.translate(_IS_SOURCE)))
    least = best[-1] if len(best) == _CANDIDATES else 0.0
    return [place for place, total in enumerate(totals) if total >= least and total]


def _scale_to_weight(weight: float, values: Mapping[int, float]) -> dict[int, float]:
    """Scale the values so that the highest equals the weight."""
    most = max(values.values(), default=0.0)
    return {id: weight * value / most for id, value in values.items()} if most else {}


def _score_named_files(connection: Connection, paths: Sequence[str]) -> dict[int, float]:
    rows = connection.execute(
        "SELECT id FROM files WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps(list(paths)),),
    )
    return {id: 1.0 for (id,) in rows}


def _score_by_commits(connection: Connection, question: SearchQuestion) -> dict[int, float]:
    """The files touched by commits whose messages resemble the task."""
    spoken = commit_queries.message_scores(connection, {SUBJECT: 1.0}, question.weights)
    likely = heapq.nlargest(_MOST_MESSAGES, spoken, key=spoken.__getitem__)
    rows = connection.execute(
        "SELECT id, time, files FROM commits WHERE length(files) BETWEEN 4 AND ? AND time <= ?"
        " AND id IN (SELECT value FROM json_each(?))",
        # Commits dated in the future say nothing about the age of the others.
        (4 * 4 * _MOST_FILES, clock.wall_s(), str(likely)),
    ).fetchall()
    newest = max((time for _, time, _ in rows), default=0)
    faded: list[tuple[float, bytes]] = []
    for id, time, packed in rows:
        age = min((newest - time) / _DAY, _OLDEST_DAYS)
        faded.append((spoken[id] * 0.5 ** (age / _HALF_LIFE_DAYS), packed))
    faded.sort(key=lambda commit: -commit[0])
    best: list[tuple[float, list[int]]] = []
    # Most commits touch files that still exist, so little more than needed is read.
    for start in range(0, len(faded), _AT_ONCE):
        part = [(score, unpack(packed)) for score, packed in faded[start : start + _AT_ONCE]]
        files_of = _present(connection, {path for _, paths in part for path in paths})
        for score, paths in part:
            files = [files_of[path] for path in paths if path in files_of]
            if 1 <= len(files) <= _MOST_FILES:
                best.append((score, files))
        if len(best) >= _COMMITS:
            break
    scores: dict[int, float] = defaultdict(float)
    for score, files in best[:_COMMITS]:
        for file in files:
            scores[file] += (score / best[0][0]) ** 2 / math.sqrt(len(files))
    return scores


def _recent(connection: Connection, files: Sequence[int]) -> dict[int, float]:
    """How recently each file was touched by a commit of moderate size."""
    paths = _paths(connection, files)
    ages = commit_queries.ages(connection, paths.values())
    return {
        id: 1 / (1 + ages[path] / _DAY / _FADES_IN_DAYS)
        for id, path in paths.items()
        if path in ages
    }


def _present(connection: Connection, paths: set[int]) -> dict[int, int]:
    """The current source file for a path in the history, if it still exists."""
    rows = connection.execute(
        "SELECT history_paths.id, files.id FROM history_paths JOIN files USING (path)"
        " WHERE history_paths.id IN (SELECT value FROM json_each(?)) AND files.skipped IS NULL",
        (str(list(paths)),),
    )
    return dict(rows)


def _rank_files(
    connection: Connection,
    ids: Sequence[int],
    scores: Mapping[int, float],
    parts: Mapping[str, Mapping[int, float]],
) -> list[RankedFile]:
    paths = _paths(connection, ids)
    return [
        RankedFile(
            id,
            paths[id],
            scores[id],
            tuple(Signal(name, values[id]) for name, values in parts.items() if id in values),
        )
        for id in ids
        if id in paths
    ]


def _paths(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    return dict(
        connection.execute(
            "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))",
            (str(list(ids)),),
        )
    )
