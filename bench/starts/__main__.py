"""What new sessions need, and what they are given: starts of real sessions, drawn at random.

    python -m bench starts KIT MIRRORS OUT [PROJECT ...]

KIT is the folder of the measuring kit (`starts/` has its labels), MIRRORS the git directories of
the labelled projects, OUT a folder for copies of memory. The sessions before each labelled start
are imported with this ctx, with its clock set to that moment; the context and what its hook gives
with the first prompt are compared with what readers say the session needed. OUT keeps memory as it
was at each start, and a project that is there is not imported again.

The weights of the chooser are fitted without the project that is measured. Beside ctx, in the same
tokens: BM25 over what memory has, with the first prompt; and short messages of the user, newest
first. `--again` asks the memory in OUT without importing anything, so another design is measured in
minutes. Needs numpy, scikit-learn and lightgbm (the kit imports it).
"""

import argparse
import importlib
import json
import math
import random
import shutil
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench import report
from bench.starts import passages
from bench.starts.fit import Example, fit
from ctx import clock, terms
from ctx.agents.specstory import history as specstory
from ctx.config import schema
from ctx.context import chooser, excerpt_search, layers, user_statements
from ctx.context.chooser import Passage
from ctx.context.layers import ContextRequest
from ctx.hosts.transcript_reader import digest

BUDGETS = (800, 1_600, 2_400)
_FRAME = 6
"""Tokens of a line beside its text: who said it, and when."""
_SAME = 0.7
_FEWEST_SHARED = 0.4
_UNKNOWN, _GRADED, _NEEDED = 0.3, 1.0, 1.5
"""The weights of passages that nobody graded, that are of no use, and that are."""
_ROUNDS = 2_000
_LATER_MS = 16 * 60_000
"""A session starts so long after the clock was set, by which earlier ones were remembered."""


class Kit:
    """The modules of the measuring kit."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.gold, self.pools, self.prepare, self.product, self.starts = map(
            importlib.import_module, ("gold", "pools", "prepare", "product", "product_starts")
        )
        word, cut, usual = self.starts.FORMS["codex"]
        self.starts.FORMS["codex"] = (word, cut, partial(codex_file, usual=usual))
        self.starts.FORMS["specstory"] = ("specstory", specstory_until, specstory_file)
        self.labels = [json.loads(path.read_text()) for path in sorted(folder.glob("starts/*"))]


def codex_file(home: str, place: str, session: Any, usual: Any) -> Path:
    """A rollout is named after its time and its session, also if the repository renamed it."""
    path = Path(usual(home, place, session))
    time = session["start"][:19].replace(":", "-")
    right = f"rollout-{time}-{session['sid']}.jsonl"
    return path if path.name.startswith("rollout-") else path.with_name(right)


def specstory_until(text: str, moment: str) -> str:
    """The turns of a session before a moment; most headings of older files have no time."""
    lines, end_ms = text.split("\n"), clock.parse_iso(moment) or 0
    for number, line in enumerate(lines):
        if line.startswith("_**") and (specstory.time_in(line) or 0) >= end_ms:
            return "\n".join(lines[:number])
    return text


def specstory_file(home: str, place: str, session: Any) -> Path:  # noqa: ARG001
    return Path(place, ".specstory", "history", session["file"])


def add_specstory(kit: Kit, project: Any) -> None:
    """Read what the kit, which looks for JSON lines, does not find: files of Markdown."""
    reader = kit.starts.read_sessions.Reader(project.mirror)
    best: dict[str, tuple[Any, bytes]] = {}
    for blob, path in kit.starts.read_sessions.blobs(project.mirror):
        data = reader.get(blob) if path.endswith(".md") else b""
        for each in kit.starts.read_sessions.read_blob(data, path) if data else ():
            longest = len(best[each.sid][0].turns) if each.sid in best else 0
            if each.kind == project.kind and each.start and len(each.turns) > longest:
                best[each.sid] = each, data
    project.data = {sid: data for sid, (_, data) in best.items()}
    found = [
        {
            "sid": sid,
            "start": kit.prepare.stamp(each.start),
            # A heading may have an earlier time than the file.
            "end": kit.prepare.stamp(max(each.start, each.end)),
            "file": Path(each.path).name,
        }
        for sid, (each, _) in best.items()
    ]
    project.sessions = sorted(found, key=lambda each: (each["start"], each["sid"]))


def id_in_memory(sid: str) -> str:
    """Older files of SpecStory name no session: the kit takes their name, and ctx makes an id."""
    return f"{digest(sid.encode())}-md" if sid.endswith(".md") else sid


class Start(NamedTuple):
    """What could be given at a start, and what of it is right."""

    project: str
    kinds: tuple[str, ...]
    """Of the things that are needed."""
    given: frozenset[int]
    """Those of them that ctx gives."""
    tokens: int
    """What ctx takes for it."""
    grades: tuple[int, ...]
    """Of those items of ctx that readers graded."""
    passages: list[Passage]
    costs: tuple[int, ...]
    says: tuple[frozenset[int], ...]
    """Which needed things each passage says."""
    by_words: list[float]
    """The scores of BM25 with the first prompt."""


class Rating(NamedTuple):
    """What the product rates at once."""

    passages: list[Passage]
    ages: dict[str, int]
    asked: frozenset[str]
    named: frozenset[str]


class Labels(NamedTuple):
    """What readers say of one start."""

    wanted: list[Any]
    graded: dict[str, list[tuple[frozenset[str], int]]]
    """For each session, the words of pieces and their grades."""

    @classmethod
    def of(cls, kit: Kit, label: Any, given: Any) -> "Labels":
        graded = defaultdict(list)
        for piece, (session, text) in given["graded"].items():
            graded[session].append((_words(text), label["grades"][piece]))
        return cls([kit.gold.groups_of(each) for each in label["needed"]], graded)

    def said_by(self, kit: Kit, text: str) -> frozenset[int]:
        plain = kit.gold.plain(text)
        return frozenset(
            n for n, groups in enumerate(self.wanted) if kit.gold.matches(groups, plain)
        )

    def grade(self, session: str, words: frozenset[str]) -> int | None:
        """The best grade of a piece of the session that says the same."""
        found = [
            grade
            for other, grade in self.graded.get(session, ())
            if words and other and _are_alike(words, other)
        ]
        return max(found, default=None)


# Memory as it was


def remember(kit: Kit, labels: Any, mirrors: Path, out: Path, ctx: str) -> None:
    """Keep memory and what it gives at each start of a project."""
    folder = out / labels["project"]
    if (folder / "done").exists():
        return
    history = kit.pools.History(mirrors / labels["repo"].replace("/", "+") / "repo")
    by_recorder = defaultdict(list)
    for label in labels["starts"]:
        session = history.find(label["sid"])
        by_recorder[session.kind].append((session, label))
    for recorder, starts in by_recorder.items():
        if recorder not in kit.starts.FORMS:
            print(f"{labels['project']}: {len(starts)} starts recorded by {recorder} are left out")
            continue
        work = out / "work"
        work.mkdir(parents=True, exist_ok=True)
        project = kit.starts.Recorded(labels["repo"], str(mirrors), str(work), recorder)
        # Folders of Windows are escaped in JSON.
        project.roots = {each for root in project.roots for each in (root, json.dumps(root)[1:-1])}
        if recorder == "specstory":
            add_specstory(kit, project)
        # To Codex, subagents have sessions of their own. To ctx, these are parts of another one.
        project.sessions = [
            each
            for each in project.sessions
            if b'"subagent":' not in project.data[each["sid"]].partition(b"\n")[0]
        ]
        walk = kit.starts.StartWalk(project, kit.product.Product(ctx), "starts")
        for session, label in sorted(starts, key=lambda each: each[0].start):
            if all(each["sid"] != session.sid for each in project.sessions):
                print(f"{labels['project']} {label['sid']}: no transcript of its own")
                continue
            walk.to(kit.prepare.stamp(session.start))
            _keep(kit, walk, session, label, history, folder)
        walk.close()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "done").touch()


def _keep(kit: Kit, walk: Any, session: Any, label: Any, history: Any, folder: Path) -> None:
    place = folder / label["sid"]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for store in Path(walk.home, ".ctx").glob("store.db*"):
        shutil.copy(store, place)
    prompt = history.first_prompt(session)
    context = walk.context()
    hint = walk.hints(id_in_memory(session.sid), [prompt])[0][0] or ""
    items = [item for _, item in kit.product.context_items(context)] + kit.product.blocks(hint)
    graded = {
        piece.id: [id_in_memory(earlier.sid), piece.text]
        for earlier in history.sessions
        for piece in history.pieces(earlier)
        if piece.id in label["grades"]
    }
    given = {
        "session": id_in_memory(session.sid),
        "start": str(session.start),
        "branch": session.branch or "",
        "prompt": prompt,
        "context": context,
        "hint": hint,
        "items": items,
        "graded": graded,
    }
    (place / "given.json").write_text(json.dumps(given, ensure_ascii=False), "utf-8")


def examples(kit: Kit, labels: Any, out: Path) -> Iterator[Example]:
    """What ctx rates at the starts of a project, with and without the prompt."""
    for label, given, store in _kept_starts(labels, out):
        project, session = _project(store), given["session"]
        known = Labels.of(kit, label, given)
        found = excerpt_search.find(store, project, given["prompt"], session)
        said, ages = user_statements.said_by_user(store, project, session)
        rated = [Rating(said, ages, frozenset(), frozenset())]
        if found:
            rated.append(Rating(found.passages, found.ages, found.asked, found.named))
        for one in rated:
            says = [known.said_by(kit, each.text) for each in one.passages]
            holders = Counter(n for each in says for n in each)
            rows = chooser.rows(*one)
            for passage, said_here, (_, features) in zip(one.passages, says, rows, strict=True):
                grade = known.grade(passage.session, _words(passage.text))
                is_right = (bool(said_here) and grade != -1) or (grade or 0) >= 2
                weight = _UNKNOWN if grade is None else _NEEDED if is_right else _GRADED
                rarest = max((_NEEDED / math.sqrt(holders[n]) for n in said_here), default=0.0)
                yield Example(features, is_right, max(weight, rarest if is_right else 0))


def give_again(kit: Kit, labels: Any, out: Path, prompt_tokens: int) -> None:
    """Ask for the context and the passages for the first prompt again, as the hooks of this ctx do.

    Sessions stay as they were imported.
    """
    for _, given, store in _kept_starts(labels, out):
        project, session = _project(store), given["session"]
        wanted = ContextRequest(project, None, _setting("context.budget"), session=session)
        made = layers.make_context([store], wanted)
        context = made.context
        known = {each.digest for each in context.items} | {each.id for each in context.items}
        hits = excerpt_search.choose(
            *([store], project, given["prompt"], prompt_tokens),
            session=session,
            given=known,
            given_text=context.text,
        ).hits
        hint = excerpt_search.context_from_hits(hits).text
        items = [item for _, item in kit.product.context_items(context.text)]
        sessions = {
            label_of_session: each for each in _sessions(store) for label_of_session in (each[:8],)
        }
        spoken = [
            (sessions.get(item.label.removeprefix("said:")[:8], ""), text)
            for item, text in zip(context.items, made.texts, strict=False)
        ]
        spoken += [(hit.session, hit.text) for hit in hits]
        given |= {
            "context": context.text,
            "hint": hint,
            "items": items + [excerpt_search.line_of(hit) for hit in hits],
            "spoken": spoken,
        }
        place = out / labels["project"] / given["sid"] / "given.json"
        place.write_text(json.dumps(given, ensure_ascii=False), "utf-8")


def _kept_starts(labels: Any, out: Path) -> Iterator[tuple[Any, Any, sqlite3.Connection]]:
    """The label, what was given, and memory as it was, with the clock set to then."""
    for label in labels["starts"]:
        place = out / labels["project"] / label["sid"]
        if (place / "given.json").exists():
            given = json.loads((place / "given.json").read_text("utf-8"))
            now_ms = int(passages.as_start(given).timestamp() * 1000) + _LATER_MS
            clock.now_ms = partial(int, now_ms)
            store = (place / "store.db").as_uri()
            with closing(sqlite3.connect(f"{store}?mode=ro", uri=True)) as connection:
                yield label, given | {"sid": label["sid"]}, connection


def _project(store: sqlite3.Connection) -> str | None:
    found = store.execute(
        "SELECT project FROM sessions GROUP BY project ORDER BY count(*) DESC LIMIT 1"
    ).fetchone()
    return found[0] if found else None


def _sessions(store: sqlite3.Connection) -> list[str]:
    return [row[0] for row in store.execute("SELECT id FROM sessions")]


def _setting(name: str) -> int:
    value = schema.SETTINGS[name].default
    assert isinstance(value, int)
    return value


# What is right


def read(kit: Kit, labels: Any, out: Path) -> Iterator[Start]:
    for label in labels["starts"]:
        place = out / labels["project"] / label["sid"]
        if (place / "given.json").exists():
            given = json.loads((place / "given.json").read_text("utf-8"))
            known = Labels.of(kit, label, given)
            found = passages.read(place / "store.db", given["session"])
            marks = [
                known.grade(session, _words(text)) for session, text in given.get("spoken", ())
            ]
            yield Start(
                labels["project"],
                tuple(each["kind"] for each in label["needed"]),
                frozenset[int]().union(*(known.said_by(kit, text) for text in given["items"])),
                sum(kit.product.tokens(given[name]) for name in ("context", "hint") if given[name]),
                tuple(mark for mark in marks if mark is not None),
                found,
                tuple(kit.product.tokens(each.text) + _FRAME for each in found),
                tuple(known.said_by(kit, each.text) for each in found),
                passages.bm25(found, given["prompt"]),
            )


def _words(text: str) -> frozenset[str]:
    return terms.significant(text)


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether the one is most of the other, and not much shorter."""
    small, large = sorted((len(one), len(other)))
    return len(one & other) >= _SAME * small and small >= _FEWEST_SHARED * large


# Orders


def chosen(start: Start, scores: Sequence[float], tokens: int) -> frozenset[int]:
    """The needed things that the best passages say, as many as fit, near copies once."""
    taken: list[frozenset[str]] = []
    given: set[int] = set()
    for place in sorted(range(len(scores)), key=lambda place: -scores[place]):
        if tokens < _FRAME:
            break
        own = start.passages[place].words
        if start.costs[place] <= tokens and not any(
            len(own & other) > _SAME * max(1, min(len(own), len(other))) for other in taken
        ):
            taken.append(own)
            tokens -= start.costs[place]
            given |= start.says[place]
    return frozenset(given)


# The tables


def show(starts: Sequence[Start]) -> None:
    found = {
        name: {
            budget: [
                chosen(each, scores, budget or each.tokens)
                for each, scores in zip(starts, every, strict=True)
            ]
            for budget in (0, *BUDGETS)
        }
        for name, every in (
            ("BM25 with the first prompt", [each.by_words for each in starts]),
            (
                "short messages of the user, newest first",
                [passages.short_messages(each.passages) for each in starts],
            ),
        )
    }
    needed = sum(len(each.kinds) for each in starts)
    projects = len({each.project for each in starts})
    mean = sum(each.tokens for each in starts) / len(starts)
    print(f"{projects} projects, {len(starts)} starts, {needed} needed things")
    grades = [grade for each in starts for grade in each.grades]
    if grades:
        useful, bad = (100 * sum(map(is_so, grades)) / len(grades) for is_so in (_useful, _bad))
        print(
            f"of {len(grades)} graded items given: {useful:.0f} % useful, {bad:.0f} % junk or false"
        )
    ours = [each.given for each in starts]
    rows = [["ctx", f"{_share(ours, needed)} in {mean:,.0f}", *("" for _ in BUDGETS), ""]]
    rows += [
        [
            name,
            *(_share(by_budget[budget], needed) for budget in (0, *BUDGETS)),
            _gain(starts, ours, by_budget[0]),
        ]
        for name, by_budget in found.items()
    ]
    columns = ["order", "in the tokens of ctx", *(f"{each:,} tokens" for each in BUDGETS)]
    columns.append("ctx less it")
    command = "python -m bench starts KIT MIRRORS OUT"
    report.show_table(report.Table("starts", columns, rows), command)
    kinds = sorted({kind for each in starts for kind in each.kinds})
    by_kind = [
        [kind, str(sum(each.kinds.count(kind) for each in starts))]
        + [_of_kind(starts, given, kind) for given in (ours, *(each[0] for each in found.values()))]
        for kind in kinds
    ]
    columns = ["kind", "needed", "ctx", *found]
    report.show_table(report.Table("starts-kinds", columns, by_kind), command)


def _useful(grade: int) -> bool:
    return grade >= 2


def _bad(grade: int) -> bool:
    return grade <= 0


def _share(given: Iterable[frozenset[int]], needed: int) -> str:
    return f"{100 * sum(map(len, given)) / max(1, needed):.1f} %"


def _of_kind(starts: Sequence[Start], given: Sequence[frozenset[int]], kind: str) -> str:
    count = sum(each.kinds.count(kind) for each in starts)
    hit = sum(each.kinds[n] == kind for each, some in zip(starts, given, strict=True) for n in some)
    return f"{100 * hit / max(1, count):.0f} %"


def _gain(
    starts: Sequence[Start], ours: Sequence[frozenset[int]], theirs: Sequence[frozenset[int]]
) -> str:
    """The difference in points of all needed things, with an interval over projects."""
    by_project: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for start, our, their in zip(starts, ours, theirs, strict=True):
        by_project[start.project][0] += len(our) - len(their)
        by_project[start.project][1] += len(start.kinds)
    rows = list(by_project.values())
    chance = random.Random(7)
    drawn = sorted(_points(chance.choices(rows, k=len(rows))) for _ in range(_ROUNDS))
    low, high = drawn[_ROUNDS // 40], drawn[-1 - _ROUNDS // 40]
    return f"{_points(rows):+.1f} [{low:+.1f}, {high:+.1f}]"


def _points(rows: Sequence[Sequence[int]]) -> float:
    return 100 * sum(row[0] for row in rows) / max(1, sum(row[1] for row in rows))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench starts", description=__doc__)
    parser.add_argument("kit", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument(
        "--again", action="store_true", help="ask memory that is in OUT again, with this ctx"
    )
    parser.add_argument(
        "--prompt-tokens",
        metavar="N",
        type=int,
        default=_setting("context.prompt_budget"),
        help="the budget of the first prompt (default: the setting's)",
    )
    options = parser.parse_args()
    kit, out = Kit(options.kit.resolve()), options.out.resolve()
    wanted = [
        each for each in kit.labels if not options.projects or each["project"] in options.projects
    ]
    if not options.again:
        command = str(Path(sys.executable).with_name("ctx"))
        kit.product.Product(command).check_clock()
        for labels in wanted:
            remember(kit, labels, options.mirrors.resolve(), out, command)
    by_project = {each["project"]: list(examples(kit, each, out)) for each in kit.labels}
    starts: list[Start] = []
    for labels in wanted:
        others = [
            example
            for project, found in by_project.items()
            if project != labels["project"]
            for example in found
        ]
        fit(others).use()
        give_again(kit, labels, out, options.prompt_tokens)
        starts += (each for each in read(kit, labels, out) if each.passages)
    show(starts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
