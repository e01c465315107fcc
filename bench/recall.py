"""How well memory answers: long conversations with labelled evidence, and what must be left out.

    python -m bench recall locomo FILE [--without SIGNAL …]
    python -m bench recall dated FILE
    python -m bench recall beam FILE
    python -m bench recall precision BELIEFS CASES [SESSION CASES]
    python -m bench recall locomo FILE --server postgresql://USER@HOST/DATABASE

Each turn of a conversation becomes a node, imported as by `ctx import`, and each question runs as
in `ctx recall`. R@10 is the share of the evidence among the first ten nodes. The baselines are BM25
over the same turns (lower-case words without stop words, k1 1.2, b 0.75), as they are and as stems,
and ctx without vectors. Brackets are 95 % bootstrap intervals of the difference to BM25 with stems
over the same questions. `(cut)` is what the command shows: it stops where relevance ends.

`dated` takes the file that `python -m bench.dated_questions` derives from a LoCoMo file.

A question without an answer should get none: BEAM's abstention questions, LoCoMo's adversarial
questions, which ask about the wrong person, and questions about another conversation.

`precision` takes the files of PrecisionMemBench. Pinned nodes and open questions are shown to an
agent elsewhere, as the cases expect; the rest of the answer is compared with the expected one. The
precision of an empty answer is 1 if nothing should be found, else 0.

With `--server`, the same questions are asked without vectors on SQLite and on a team's server, by
`ctx search` and `ctx recall`. Each conversation gets a new database there, which is deleted again.
"""

import argparse
import json
import random
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bench import report
from bench.conversations import FIRST, Case, History, beam, beliefs, locomo
from ctx import clock, terms
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.memory.query.query_parser import parse, parse_words
from ctx.operations import import_, link, query, recall
from ctx.operations.visible_nodes import VisibleNodes, scope_of
from ctx.packs import node_ranking, node_vectors
from ctx.workspace import Environment, Memory, open_memory

ROUNDS = 2_000
BASELINE = "BM25, stems"
SEARCH = "ctx search"
CUT_TEXT, CUT = "text (cut)", "ctx recall (cut)"
_ONE_OF = 5
"""Of the questions about other conversations, one of so many is asked."""

STOP = frozenset(
    """a about also an and are as at be because been but by can cannot could did do does
    doing etc for from get got had has have he her him his how however i if in instead into
    is it it's its just like made make makes me more most my new no nor not now of off on
    once one only or other our out over own rather same see she should since so some such
    than that the their them then there these they this those through to too two under until
    up use used using very via was we were what when where which while who whom why will
    with would you your""".split()
)


Answering = Callable[[Case], Sequence[str]]


@contextmanager
def filled(history: History, server: str = "") -> Iterator[Memory]:
    """A store with the turns of a history, or the database of a server."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "turns.jsonl")
        written = (json.dumps(entry, ensure_ascii=False) for entry in history.entries)
        lines.write_text("\n".join(written) + "\n", encoding="utf-8")
        surroundings = Environment(folder, UserStore(folder), {}, (), CLI_SESSION, server)
        with open_memory(surroundings, writing=True) as memory:
            if history.entries:
                source = import_.ImportSource("jsonl", (str(lines),))
                import_.import_(memory, (source,), import_.Options())
                _link(memory)
            yield memory


def _link(memory: Memory) -> None:
    """The sources of a belief, and what it replaced."""
    nodes = list(memory.graph.nodes(memory.user.newest((), (), None, None)[0]))
    named = {node.metadata["unit"]: node.id for node in nodes}
    for node in nodes:
        if (newer := node.metadata.get("superseded_by_unit")) in named:
            link.link(memory, named[newer], node.id, "SUPERSEDES")
        for other in node.metadata.get("participants", ()):
            if other in named:
                link.link(memory, node.id, named[other], "DEPENDS_ON")


def bm25(history: History, stem: Callable[[str], str] = str) -> Answering:
    """The baseline."""
    split = [list(map(stem, _words(entry["content"]))) for entry in history.entries]
    texts = [Counter(words) for words in split]
    having = Counter(word for text in texts for word in text)
    average = sum(map(len, split)) / max(1, len(split)) or 1.0
    units = [entry["unit"] for entry in history.entries]

    def answer(case: Case) -> list[str]:
        scores = dict.fromkeys(units, 0.0)
        for word in set(map(stem, _words(case.question))) & having.keys():
            rarity = log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            for unit, text, words in zip(units, texts, split, strict=True):
                if times := text[word]:
                    length = 1.2 * (0.25 + 0.75 * len(words) / average)
                    scores[unit] += rarity * times * 2.2 / (times + length)
        return sorted(units, key=lambda unit: -scores[unit])[:FIRST]

    return answer


def _words(text: str) -> list[str]:
    found = (word.lower().strip("'") for word in re.findall(r"[A-Za-z0-9']+", text))
    return [word for word in found if word and word not in STOP]


def ours(memory: Memory, *, with_vectors: bool, without: Sequence[str] = ()) -> Answering:
    """The first ten, relevant or not."""
    scope = scope_of(memory, VisibleNodes(all_projects=True))

    def answer(case: Case) -> list[str]:
        query = parse(" ".join([*case.beside, case.question]))
        near = node_vectors.nearness(memory, case.question) if with_vectors else None
        now_ms = case.asked_ms or clock.now_ms()
        found = node_ranking.rank(
            memory.graph, query, scope, now_ms, FIRST, near, frozenset(without)
        )
        return [each.node.metadata["unit"] for each in found]

    return answer


def shown(memory: Memory, *, with_vectors: bool) -> Answering:
    """The answer of `ctx recall`."""

    def answer(case: Case) -> list[str]:
        asked = " ".join([*case.beside, case.question])
        visible = VisibleNodes(all_projects=True)
        options = recall.Options(asked, FIRST, visible=visible, asked_ms=case.asked_ms)
        near = node_vectors.nearness(memory, case.question) if with_vectors else None
        found = recall.recall(memory, options, near)
        return [node.metadata["unit"] for node in found.nodes]

    return answer


Figures = dict[str, dict[str, list[float]]]
"""The score of each question, by method and by ability."""


def measured(histories: Sequence[History], without: Sequence[str]) -> tuple[Figures, Figures]:
    """The recall of what has an answer, and how often nothing is shown for the rest."""
    figures: Figures = {}
    silent: Figures = {}
    for history in histories:
        with filled(history) as memory:
            node_vectors.fill(memory)
            ways = {
                "BM25": bm25(history),
                BASELINE: bm25(history, terms.stem),
                "ctx, text": ours(memory, with_vectors=False, without=without),
                "ctx": ours(memory, with_vectors=True, without=without),
                SEARCH: searching(memory, with_vectors=True),
                CUT_TEXT: shown(memory, with_vectors=False),
                CUT: shown(memory, with_vectors=True),
            }
            for name, answer in ways.items():
                scores = figures.setdefault(name, {})
                for case in history.cases:
                    if case.wanted:
                        found = set(answer(case)[:FIRST])
                        share = len(found & case.wanted) / len(case.wanted)
                        scores.setdefault(case.ability, []).append(share)
            for case in unanswerable(history, histories):
                for name in (CUT_TEXT, CUT):
                    scores = silent.setdefault(name, {})
                    scores.setdefault(case.ability, []).append(float(not ways[name](case)))
    return figures, silent


def searching(memory: Memory, *, with_vectors: bool) -> Answering:
    """The answer of `ctx search`."""
    scope = scope_of(memory, VisibleNodes(all_projects=True))

    def answer(case: Case) -> list[str]:
        near = node_vectors.nearness(memory, case.question) if with_vectors else None
        found = query.find(memory.graph, parse_words(case.question), scope, FIRST, nearness=near)
        return [node.metadata["unit"] for node in found.nodes]

    return answer


def show_engines(name: str, histories: Sequence[History], server: str) -> None:
    """R@10 of the same questions on SQLite and on a server."""
    figures: dict[str, list[float]] = {}
    for history in histories:
        with new_database(server) as database:
            for engine, place in (("SQLite", ""), ("server", database)):
                with filled(history, place) as memory:
                    ways = {
                        "search": searching(memory, with_vectors=False),
                        "recall": ours(memory, with_vectors=False),
                    }
                    for name, answer in ways.items():
                        figures.setdefault(f"{name}, {engine}", []).extend(
                            len(set(answer(case)[:FIRST]) & case.wanted) / len(case.wanted)
                            for case in history.cases
                            if case.wanted
                        )
    count = len(next(iter(figures.values()), []))
    row = [
        f"{SETS[name]}, {count} questions, R@10",
        *map(str.strip, map(_percent, figures.values())),
    ]
    report.show_table(
        report.Table(f"recall-server-{name}", ["questions", *figures], [row], "without vectors"),
        f"python -m bench recall {name} FILE --server URL",
    )


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of a new database beside another one."""
    import psycopg

    name = f"ctx_bench_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def unanswerable(history: History, others: Sequence[History]) -> Iterator[Case]:
    """The questions of a history that have no answer, and some questions of the others."""
    yield from (case for case in history.cases if case.ability in ("abstention", "adversarial"))
    for other in others:
        if other.name != history.name:
            foreign = [case for case in other.cases if case.wanted][::_ONE_OF]
            yield from (case._replace(ability="another conversation") for case in foreign)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    rng = random.Random(7)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(ROUNDS))
    return means[ROUNDS // 40], means[-ROUNDS // 40 - 1]


def _percent(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):5.1f}"


def print_recall(figures: Figures, silent: Figures) -> None:
    abilities = sorted(figures[BASELINE])
    every = {name: [each for a in abilities for each in by[a]] for name, by in figures.items()}
    print(f"R@{FIRST} over {len(every[BASELINE])} questions")
    for name, values in every.items():
        low, high = interval(values)
        line = f"  {name:<18} {_percent(values)} [{100 * low:.1f}, {100 * high:.1f}]"
        if name != BASELINE:
            gains = [a - b for a, b in zip(values, every[BASELINE], strict=True)]
            low, high = interval(gains)
            mean = 100 * sum(gains) / len(gains)
            line += f"   compared with {BASELINE} {mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        print(line)
    width = max(map(len, abilities))
    print(f"  {'':<{width}} {'':>5}" + "".join(f" {name:>17}" for name in figures))
    for ability in abilities:
        row = "".join(f" {_percent(by[ability]):>17}" for by in figures.values())
        print(f"  {ability:<{width}} {len(figures[BASELINE][ability]):>5}{row}")
    print("nothing shown, in percent, for questions without an answer")
    for name, by in silent.items():
        parts = (
            f"{ability} {_percent(each).strip()} of {len(each)}" for ability, each in by.items()
        )
        print(f"  {name:<18} {', '.join(parts)}")


COLUMNS = ("questions", "BM25 with stems", "words only", "ctx", "gain")
SETS = {
    "locomo": "LoCoMo, turns",
    "dated": "LoCoMo, questions with a time",
    "beam": "BEAM, exchanges",
}


def show_recall(name: str, figures: Figures, silent: Figures, *, held_out: bool) -> None:
    every = {way: [each for by in sorted(got) for each in got[by]] for way, got in figures.items()}
    gains = [a - b for a, b in zip(every["ctx"], every[BASELINE], strict=True)]
    low, high = interval(gains)
    means = [_percent(every[way]).strip() for way in (BASELINE, "ctx, text", "ctx")]
    around = f"{100 * sum(gains) / len(gains):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    rows = [[f"{SETS[name]}, R@{FIRST}", *means, around]]
    for ability, shown in sorted(silent.get(CUT, {}).items()):
        text = _percent(silent[CUT_TEXT][ability]).strip()
        about = f"{SETS[name]}, {ability}: nothing shown, % of {len(shown)}"
        rows.append([about, "", text, _percent(shown).strip(), ""])
    table, command = f"recall-{name}", f"python -m bench recall {name} FILE"
    if held_out:
        table, command = f"recall-held-out-{name}", f"{command} --held-out"
    report.show_table(report.Table(table, COLUMNS, rows), command)


class Precision(NamedTuple):
    ability: str
    precision: float
    recall: float | None
    """None if nothing should be found."""


def judged(case: Case, found: Sequence[str]) -> Precision:
    right = len(case.wanted.intersection(found))
    if not case.wanted:
        return Precision(case.ability, float(not found), None)
    precision = right / len(found) if found else 0.0
    return Precision(case.ability, precision, right / len(case.wanted))


def print_precision(histories: Sequence[History]) -> None:
    ways: dict[str, list[Precision]] = {}
    for history in histories:
        with filled(history) as memory:
            node_vectors.fill(memory)
            answers = {
                "BM25, first ten": bm25(history),
                "ctx recall, text": shown(memory, with_vectors=False),
                "ctx recall": shown(memory, with_vectors=True),
            }
            for name, answer in answers.items():
                ways.setdefault(name, []).extend(
                    judged(each, answer(each)) for each in history.cases
                )
    for name, results in ways.items():
        print(f"  {name:<18} {_summary(results)}")
    cells = []
    for results in ways.values():
        some = [each for each in results if each.recall is not None]
        precision = sum(each.precision for each in some) / len(some)
        recalled = sum(each.recall or 0.0 for each in some) / len(some)
        cells.append(f"{precision:.2f} at {recalled:.2f}")
    row = ["PrecisionMemBench, precision at recall", *cells, ""]
    report.show_table(
        report.Table("recall-precision", COLUMNS, [row]), "python -m bench recall precision FILE …"
    )
    last = list(ways.values())[-1]
    for ability in sorted({each.ability for each in last}):
        print(f"    {ability:<36} {_summary([each for each in last if each.ability == ability])}")


def _summary(results: Sequence[Precision]) -> str:
    precision = sum(each.precision for each in results) / len(results)
    some = [each for each in results if each.recall is not None]
    parts = [f"{len(results):3} cases, precision {precision:.2f}"]
    if some:
        recalled = sum(each.recall or 0.0 for each in some) / len(some)
        precise = sum(each.precision for each in some) / len(some)
        parts.append(f"of the {len(some)} with an answer: {precise:.2f}, recall {recalled:.2f}")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench recall")
    parser.add_argument("set", choices=("locomo", "dated", "beam", "precision"), nargs="?")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--without", action="append", default=[], metavar="SIGNAL")
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--held-out", action="store_true", help="nothing was tuned on the file")
    given = parser.parse_args()
    if given.set is None or not given.files:
        print("  needs a set and its files: python -m bench recall locomo FILE")
    elif given.set == "precision":
        print_precision(list(beliefs(*given.files)))
    else:
        read = beam if given.set == "beam" else locomo
        if given.server:
            show_engines(given.set, list(read(given.files[0])), given.server)
            return
        found = measured(list(read(given.files[0])), given.without)
        print_recall(*found)
        show_recall(given.set, *found, held_out=given.held_out)


if __name__ == "__main__":
    main()
