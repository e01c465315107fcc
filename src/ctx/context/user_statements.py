"""The layers of what the user said: rules and corrections, and short messages.

    ## Rules and corrections
    - Never commit yourself: I review every change first.
    ## What the user said
    - [yesterday] The states of an invoice stay in German.

Hooks load this module.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ctx import clock, tokens
from ctx.context import hook_queries, layer_rows, observation_lines
from ctx.context.layer_lines import LayerLine, cut, digest
from ctx.markdown import flat
from ctx.memory import model

_TAGS = ("kind:rule", "kind:correction", "kind:decision")
_MOST_READ = 500
_MOST_MISSES = 3
_FEWEST_SHARED = 3
"""A single word does not say it all."""
_ASKS_FOR_WORK = re.compile(
    r"(?:(?:ok|yes|and|so),? )?(?:can|could|would) (?:you|we)\b", re.IGNORECASE
)
"""What was asked for once, and is done since."""
_SHORTEST, _LONGEST, _MOST = 12, 400, 40
"""The bytes of a message, its characters, and how many are given."""
_LONGEST_ANSWER, _LONGEST_QUESTION = 120, 160
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
_LENGTHS = (300, 160, 80)


def rules(
    connections: Sequence[Connection], project: str | None, most_tokens: int
) -> list[LayerLine]:
    """What the user forbids, prefers, corrected, decided or taught.

    Lasting rules come first, those that were restated before the others, then the newest.
    """
    kinds: dict[str, str] = {}
    rows: dict[str, Sequence[Any]] = {}
    for tag in _TAGS:
        for row in hook_queries.nodes_with_tag(connections, project, tag, _MOST_READ):
            rows[row[0]], kinds[row[0]] = row, tag.removeprefix("kind:")
    for node_id in hook_queries.captured_imports(connections[-1], list(rows)):
        del rows[node_id]
    ranked = []
    for row in rows.values():
        about = model.from_json(row[3])
        if observation_lines.is_by_user(kinds[row[0]], about) and not _is_done(row[2]):
            again = len(layer_rows.texts(about.get("sessions"))) > 1
            ranked.append((about.get("lasting") is True, again, row[5], row[0]))
    for *row, tag in hook_queries.stated_learnings(connections, project, _MOST_READ):
        rows[row[0]], kinds[row[0]] = row, tag.removeprefix("learning:")
        ranked.append((True, False, row[5], row[0]))
    ids = [node_id for *_, node_id in sorted(ranked, reverse=True)]
    lines = (observation_lines.line_of(rows[each], kinds[each]) for each in ids)
    chosen = list(_in_budget(_without_similar(lines), most_tokens))
    authors = layer_rows.author_prefixes(connections, [line.id for line in chosen])
    return [
        _with_question(connections[-1], line, rows[line.id]).with_author(authors.get(line.id, ""))
        for line in chosen
    ]


def messages(
    connections: Sequence[Connection], project: str | None, session: str, known: Iterable[LayerLine]
) -> list[LayerLine]:
    """Short messages of the user, newest first, each thing once and not what is `known`."""
    user = connections[-1]
    sessions = hook_queries.latest_sessions(user, project, session)
    outdated = layer_rows.Withdrawn(connections, project, sessions)
    today = clock.day_number(clock.now_ms())
    said = [layer_rows.words(line.texts[0]) for line in known]
    lines = []
    for name, at, text, step, _ in hook_queries.short_messages(user, sessions, _LONGEST):
        own = layer_rows.words(text)
        is_short = not own or len(text.encode("utf-8", "replace")) < _SHORTEST
        if is_short or _is_among(own, said, 2) or outdated.has(name, step, text):
            continue
        said.append(own)
        age = clock.days_ago(today - clock.day_number(clock.parse_iso(at) or 0))
        told = flat(text)
        forms = tuple(f"- [{age}] {cut(told, length)}" for length in _LENGTHS)
        label = f"said:{name[:8]}.{digest(told)}"
        lines.append(LayerLine("", label, at, digest(told), forms))
        if len(lines) == _MOST:
            break
    return lines


def _with_question(connection: Connection, line: LayerLine, row: Sequence[Any]) -> LayerLine:
    """The line of a short statement after the question of the agent that it answers."""
    about = model.from_json(row[3])
    steps = layer_rows.texts(about.get("evidence"))
    if not steps or len(row[2]) > _LONGEST_ANSWER:
        return line
    said = hook_queries.said_before(connection, str(about.get("session", "")), steps[0])
    told = flat(said).rstrip("*_` ")
    if not told.endswith("?"):
        return line
    asked = cut(" ".join(_SENTENCE_END.split(told)[-2:]), _LONGEST_QUESTION)
    return line._replace(texts=tuple(f"- To “{asked}”: {each[2:]}" for each in line.texts))


def _is_done(text: str) -> bool:
    """Whether it is a question, or asks for something that was done since."""
    return text.rstrip().endswith("?") or _ASKS_FOR_WORK.match(text) is not None


def _without_similar(lines: Iterable[LayerLine]) -> Iterator[LayerLine]:
    known: list[set[str]] = []
    for line in lines:
        own = layer_rows.words(line.texts[0])
        if not _is_among(own, known, _FEWEST_SHARED):
            known.append(own)
            yield line


def _is_among(words: set[str], known: Iterable[set[str]], fewest: int) -> bool:
    return any(layer_rows.is_mostly_in(words, other, fewest) for other in known)


def _in_budget(lines: Iterable[LayerLine], most_tokens: int) -> Iterator[LayerLine]:
    misses = 0
    for line in lines:
        cost = tokens.estimate(line.texts[0] + "\n")
        if cost <= most_tokens:
            most_tokens -= cost
            yield line
        elif (misses := misses + 1) == _MOST_MISSES:
            return
