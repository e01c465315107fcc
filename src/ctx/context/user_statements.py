"""The layers of what the user said: rules and corrections, and short messages.

    ## Rules and corrections
    - Never commit yourself: I review every change first.
    ## What the user said
    - [yesterday] The states of an invoice stay in German.

Hooks load this module.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ctx import clock, tokens
from ctx.context import chooser, hook_queries, layer_rows, observation_lines
from ctx.context.chooser import Passage
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
_LONGEST_ANSWER, _LONGEST_RULE, _LONGEST_QUESTION = 60, 120, 160
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")
_LONGEST_SHOWN = 300


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
    found = (observation_lines.line_of(rows[each], kinds[each]) for each in ids)
    chosen = list(_in_budget(_without_similar(found), most_tokens))
    authors = layer_rows.author_prefixes(connections, [line.id for line in chosen])
    lines = []
    for line in chosen:
        about = model.from_json(rows[line.id][3])
        steps = layer_rows.texts(about.get("evidence"))
        told = rows[line.id][2]
        session = str(about.get("session", ""))
        asked = ""
        if steps:
            asked = _question_before(connections[-1], session, steps[0], told, _LONGEST_RULE)
        texts = tuple(f"- {asked}{each[2:]}" for each in line.texts)
        lines.append(line._replace(texts=texts).with_author(authors.get(line.id, "")))
    return lines


def messages(
    connections: Sequence[Connection], project: str | None, session: str, known: Iterable[LayerLine]
) -> list[LayerLine]:
    """What the user said, the likeliest to be needed again first.

    What was said in several sessions is one line: its last wording and day, with their number. What
    is `known` is left out.
    """
    user = connections[-1]
    passages, ages = said_by_user(user, project, session)
    outdated = layer_rows.Withdrawn(connections, project, list(ages))
    rated = chooser.rate(passages, ages)
    rated.sort(key=lambda each: -each.worth(tokens.estimate(each.passage.text)))
    said = [layer_rows.words(line.texts[0]) for line in known]
    chosen: list[tuple[chooser.Rated, set[str], list[Passage]]] = []
    holders: dict[str, list[int]] = {}
    for each in rated:
        it = each.passage
        own = layer_rows.words(it.text)
        is_short = not own or len(it.text.encode("utf-8", "replace")) < _SHORTEST
        if is_short or _is_among(own, said, _FEWEST_SHARED):
            continue
        near = Counter(place for word in own for place in holders.get(word, ()))
        least = min(2, len(own))
        same = [
            n for n, shared in near.items() if shared >= least and _is_restated(own, chosen[n][1])
        ]
        if (not same and len(chosen) == _MOST) or outdated.has(it.session, it.step, it.text):
            continue
        if same:
            chosen[min(same)][2].append(it)
        else:
            for word in own:
                holders.setdefault(word, []).append(len(chosen))
            chosen.append((each, own, [it]))
    return [_message_line(user, each, again) for each, _, again in chosen]


def said_by_user(
    connection: Connection, project: str | None, session: str
) -> tuple[list[Passage], dict[str, int]]:
    """What the user said in the latest sessions, and how many sessions ago each was."""
    sessions = hook_queries.latest_sessions(connection, project, session)
    rows = hook_queries.messages_of_user(connection, sessions, _LONGEST)
    passages = [Passage(*row) for row in rows]
    ages = {each: age for age, each in enumerate(sessions)}
    return [each for each in passages if chooser.is_lasting(each)], ages


def _message_line(
    connection: Connection, each: chooser.Rated, again: Sequence[Passage]
) -> LayerLine:
    # What was said last holds: a value in it may have changed.
    it = max(again, key=lambda passage: passage.at)
    today = clock.day_number(clock.now_ms())
    age = clock.days_ago(today - clock.day_number(clock.parse_iso(it.at) or 0))
    sessions = len({passage.session for passage in again})
    often = f", in {sessions} sessions" if sessions > 1 else ""
    told = flat(it.text)
    asked = _question_before(connection, it.session, it.step, told)
    text = f"- [{age}{often}] {asked}{cut(told, _LONGEST_SHOWN)}"
    label = f"said:{it.session[:8]}.{digest(told)}"
    reason = ", ".join(["what the user said", *each.reasons])
    return LayerLine("", label, it.at, digest(told), (text,), reason=reason)


def _question_before(
    connection: Connection, session: str, step: str, told: str, longest: int = _LONGEST_ANSWER
) -> str:
    """The question of the agent that a short statement answers, as its beginning."""
    if len(told) > longest or told.startswith("To “"):
        return ""
    said = flat(hook_queries.said_before(connection, session, step)).rstrip("*_` ")
    if not said.endswith("?"):
        return ""
    return f"To “{cut(' '.join(_SENTENCE_END.split(said)[-2:]), _LONGEST_QUESTION)}”: "


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


def _is_restated(own: set[str], other: set[str]) -> bool:
    """Whether two messages say the same, and not one of them much more."""
    return layer_rows.is_mostly_in(own, other, 2) and len(other) <= 2 * len(own) + 1


def _in_budget(lines: Iterable[LayerLine], most_tokens: int) -> Iterator[LayerLine]:
    misses = 0
    for line in lines:
        cost = tokens.estimate(line.texts[0] + "\n")
        if cost <= most_tokens:
            most_tokens -= cost
            yield line
        elif (misses := misses + 1) == _MOST_MISSES:
            return
