"""Rank the files of a project for a task.

The ranking uses the words in a file, in its path and in the names it defines, what the task names,
and the files that similar past commits touched. The score of a file is a weighted sum of these
signals. The weights were learned from the commits of many repositories (`scripts/ranking`), and
`bench/localisation.py` can leave out each signal.
"""

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import compress
from sqlite3 import Connection
from types import MappingProxyType
from typing import NamedTuple

from ctx import clock
from ctx.code import file_roles
from ctx.code.bm25 import Bm25Collection
from ctx.code.file_words import BODY, NAMES, PATH, SUBJECT
from ctx.code.history import commit_meanings, commit_queries
from ctx.code.history.commit_meanings import MOST_FILES
from ctx.code.history.history_tables import unpack
from ctx.code.postings import FILES
from ctx.code.vocabulary import file_of
from ctx.errors import IndexCorrupt
from ctx.packs.file_weights import CONFIDENCE, SHARPNESS, WEIGHTS
from ctx.packs.prompt_pack import Signal
from ctx.search import embedders
from ctx.search.question import SearchQuestion
from ctx.sqlite.connection import snapshot

_FIELDS = {BODY: 1.0, PATH: 1.5, NAMES: 0.5}
"""The factor of each field in the sum that all fields are compared with."""
_SIGNALS = {BODY: "text", PATH: "path", NAMES: "names"}
_IS_SOURCE = bytes([role == file_roles.SOURCE for role in range(256)])

RANKED = 50
"""The number of files that are ranked, if nothing else is asked for."""
NEVER_SURE = 0.02
"""The odds of the other files that are left, however far behind they are."""

_CANDIDATES = 150
_BESIDE = 50
_COMMITS = 100
_NEAR = 10.0
"""How quickly a commit counts less as its meaning gets farther from the task."""
_MOST_NAMED = 3.0
_MOST_MESSAGES = 400
_AT_ONCE = 120
_HALF_LIFE_DAYS = 1000
_OLDEST_DAYS = 20_000
_FADES_IN_DAYS = 30
_DAY = 86_400
_NO_PATHS: Mapping[str, float] = MappingProxyType({})
_NO_ITEMS: Mapping[int, float] = MappingProxyType({})


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
    mentioned: Mapping[str, float] = _NO_PATHS,
    named: Mapping[int, float] = _NO_ITEMS,
    limit: int = RANKED,
    without: Container[str] = (),
) -> list[RankedFile]:
    """The files that match best. The task names the paths `mentioned` and the items `named`, each
    with some confidence; `without` disables signals."""
    with snapshot(connection):
        values = signals(connection, question, mentioned, named, without)
        added = {
            name: {id: WEIGHTS[name] * value for id, value in by_file.items()}
            for name, by_file in values.by_name.items()
        }
        scores = _sums(added)
        beside = set() if question.is_about_tests or "roles" in without else values.beside
        first = sorted(scores, key=lambda id: (id in beside, -scores[id], id))[:limit]
        return _rank_files(connection, first, scores, added)


def confidence(scores: Sequence[float]) -> float:
    """The probability that the first file is right, by the scores of the `RANKED` best."""
    best = max(scores)
    others = math.fsum(math.exp(SHARPNESS * (score - best)) for score in scores) - 1
    constant, factor = CONFIDENCE
    # The log odds of the first file among these are minus the logarithm of the odds of the others.
    odds = constant - factor * math.log(max(others, NEVER_SURE))
    return 1 / (1 + math.exp(-odds))


class FileSignals(NamedTuple):
    """What speaks for each file, before it is weighted."""

    by_name: dict[str, Mapping[int, float]]
    """By the name of the signal, then by the id of the file; at most 1, with few exceptions."""
    beside: set[int]
    """Files that are not source: tests and documentation."""


def signals(
    connection: Connection,
    question: SearchQuestion,
    mentioned: Mapping[str, float] = _NO_PATHS,
    named: Mapping[int, float] = _NO_ITEMS,
    without: Container[str] = (),
) -> FileSignals:
    """The signals of all files that may be among the best."""
    found: dict[str, Mapping[int, float]] = {}
    if "history" not in without:
        found["history"] = _scale_to_one(_score_by_commits(connection, question))
    if "mentioned" not in without:
        found["mentioned"] = _score_named_files(connection, mentioned)
    if "named" not in without:
        found["named"] = _score_named_items(named)
    near = {} if "meaning" in without else _score_by_meaning(connection, question)
    texts = _texts(connection, question, set().union(near, *found.values()), without)
    found = texts.by_name | found
    # There is always a nearest commit, so a similar meaning alone is not enough.
    otherwise = set().union(*found.values())
    found["meaning"] = _scale_to_one({id: near[id] for id in near if id in otherwise})
    if "recent" not in without:
        scores = _sums(found)
        likely = heapq.nlargest(_CANDIDATES, scores, key=scores.__getitem__)
        found["recent"] = _scale_to_one(_recent(connection, likely))
    return FileSignals(found, texts.beside)


def _sums(signals: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for values in signals.values():
        for id, value in values.items():
            scores[id] += value
    return scores


def _texts(
    connection: Connection, question: SearchQuestion, others: set[int], without: Container[str]
) -> FileSignals:
    """The files that match the words best, including the scores of `others`."""
    fields = {field: factor for field, factor in _FIELDS.items() if _SIGNALS[field] not in without}
    scores = Bm25Collection(connection, FILES).scores(fields, question.weights)
    by_name: dict[str, dict[int, float]] = {_SIGNALS[field]: {} for field in fields}
    beside: set[int] = set()
    best = best_beside = 0.0
    for segment, totals, added in scores:
        ids, role_of = segment.ids, segment.roles
        near = _near_best(totals, role_of)
        source = {file: totals[file] for file in near if role_of[file] != file_roles.BESIDE}
        wanted = compress(range(len(ids)), map(others.__contains__, ids))
        chosen = {
            *heapq.nlargest(_CANDIDATES, source, key=source.__getitem__),
            *heapq.nlargest(_BESIDE, near, key=totals.__getitem__),
            *(file for file in wanted if totals[file]),
        }
        best = max(best, max(source.values(), default=0.0))
        best_beside = max(best_beside, max(map(totals.__getitem__, near), default=0.0))
        for position in chosen:
            id = ids[position]
            if role_of[position] == file_roles.BESIDE:
                beside.add(id)
            for field, own in added.items():
                if own[position]:
                    by_name[_SIGNALS[field]][id] = own[position]
    most = best or best_beside
    for values in by_name.values():
        for id in values:
            values[id] /= most
    return FileSignals(dict(by_name), beside)


def _near_best(totals: Sequence[float], role_of: bytes) -> list[int]:
    """The positions of texts that may be among the best in any role: all with at least the score of
    the last of the best source files."""
    best = heapq.nlargest(_CANDIDATES, compress(totals, role_of.translate(_IS_SOURCE)))
    least = best[-1] if len(best) == _CANDIDATES else 0.0
    return [place for place, total in enumerate(totals) if total >= least and total]


def _scale_to_one(values: Mapping[int, float]) -> dict[int, float]:
    """Scale the values so that the highest is 1."""
    most = max(values.values(), default=0.0)
    return {id: value / most for id, value in values.items()} if most else {}


def _score_named_files(connection: Connection, paths: Mapping[str, float]) -> dict[int, float]:
    rows = connection.execute(
        "SELECT id, path FROM files WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps(list(paths)),),
    )
    return {id: paths[path] for id, path in rows}


def _score_named_items(named: Mapping[int, float]) -> dict[int, float]:
    """The files of the items that the task names: more of them count more, up to a limit."""
    scores: dict[int, float] = defaultdict(float)
    for item, sure in named.items():
        scores[file_of(item)] += sure
    return {id: min(score, _MOST_NAMED) / _MOST_NAMED for id, score in scores.items()}


def _score_by_commits(connection: Connection, question: SearchQuestion) -> dict[int, float]:
    """The files touched by commits whose messages contain the words of the task."""
    spoken = commit_queries.message_scores(connection, {SUBJECT: 1.0}, question.weights)
    likely = heapq.nlargest(_MOST_MESSAGES, spoken, key=spoken.__getitem__)
    best = _files_touched(connection, {id: spoken[id] for id in likely})
    scores: dict[int, float] = defaultdict(float)
    for score, files in best:
        for file in files:
            scores[file] += (score / best[0][0]) ** 2 / math.sqrt(len(files))
    return scores


def _score_by_meaning(connection: Connection, question: SearchQuestion) -> dict[int, float]:
    """The files touched by commits whose subjects mean something similar to the first line of the
    task."""
    try:
        vector = embedders.unchecked().embed_one(question.first_line)
    except IndexCorrupt:
        # The table is damaged: the other signals remain.
        return {}
    near = commit_meanings.nearest(connection, vector, _COMMITS)
    best = max(near.values(), default=0.0)
    close = {id: math.exp(_NEAR * (value - best)) for id, value in near.items() if value > 0}
    scores: dict[int, float] = defaultdict(float)
    for score, files in _files_touched(connection, close):
        for file in files:
            scores[file] += score / math.sqrt(len(files))
    return scores


def _files_touched(
    connection: Connection, scores: Mapping[int, float]
) -> list[tuple[float, list[int]]]:
    """The files of the best small commits that still exist, with the score of the commit: the older
    it is, the lower."""
    rows = connection.execute(
        "SELECT id, time, files FROM commits WHERE length(files) BETWEEN 4 AND ? AND time <= ?"
        " AND id IN (SELECT value FROM json_each(?))",
        # Commits dated in the future say nothing about the age of the others.
        (4 * 4 * MOST_FILES, clock.wall_s(), str(list(scores))),
    ).fetchall()
    newest = max((time for _, time, _ in rows), default=0)
    faded: list[tuple[float, bytes]] = []
    for id, time, packed in rows:
        age = min((newest - time) / _DAY, _OLDEST_DAYS)
        faded.append((scores[id] * 0.5 ** (age / _HALF_LIFE_DAYS), packed))
    faded.sort(key=lambda commit: -commit[0])
    best: list[tuple[float, list[int]]] = []
    # Most commits touch files that still exist, so little more than needed is read.
    for start in range(0, len(faded), _AT_ONCE):
        part = [(score, unpack(packed)) for score, packed in faded[start : start + _AT_ONCE]]
        files_of = _present(connection, {path for _, paths in part for path in paths})
        for score, paths in part:
            files = [files_of[path] for path in paths if path in files_of]
            if 1 <= len(files) <= MOST_FILES:
                best.append((score, files))
        if len(best) >= _COMMITS:
            break
    return best[:_COMMITS]


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
