"""Whether memory finds the session that solved a related issue before.

    python -m bench experience RELATIONS CASES OUT [--again] [--part PART] [--show]

RELATIONS names a base issue for each related one, CASES has the issues (`*.json`, as in SWE-bench)
and recorded sessions of Claude Code that solved base issues (`*.jsonl`); SWE-ContextBench has both.
The sessions are imported as the past of their projects into a home in OUT, by `ctx import`. Then
each related issue is asked in its project by `ctx recall`, each in a process of its own, without
waiting for anything. `hit@k`: the session of the base issue is among the first k sessions of the
answer. The baselines are BM25 with stems over the same sessions: their first prompts, and all that
the user and the agent said. Foreign questions are issues of other projects: they should get no
answer.

`--again` asks the memory that is in OUT. Projects are in three parts, `fit`, `choose` and `report`:
tune on the first alone. `--show` prints what was missed.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import paired, report
from bench.conversations import Case, History
from bench.hooks import CTX, surroundings
from bench.recall import bm25
from ctx import terms

FIRST = (1, 5)
FOREIGN = 3
"""Issues of other projects that are asked in each project."""
OURS, PROMPTS, TEXTS = "ctx recall", "BM25, first prompts", "BM25, all that was said"
PARTS = ("fit", "choose", "report")
_INSTANCE = re.compile(r"instance_id: (\S+)")


class Past(NamedTuple):
    """A recorded session."""

    session: str
    issue: str
    prompt: str
    text: str
    lines: Sequence[dict[str, Any]]


class Question(NamedTuple):
    project: str
    issue: str
    text: str
    base: str
    """The session that should be found; empty if there is none."""


def project_of(issue: str) -> str:
    return issue.rpartition("-")[0]


def part_of(project: str) -> str:
    """The two largest projects, and all others."""
    return {"django__django": "fit", "sympy__sympy": "choose"}.get(project, "report")


def pasts(cases: Path) -> Iterator[Past]:
    for path in sorted(cases.rglob("*.jsonl")):
        read = path.read_text(encoding="utf-8").splitlines()
        lines = [json.loads(line) for line in read if line.startswith("{")]
        said = [line for line in lines if line.get("type") in ("user", "assistant")]
        texts = [text for line in said for text in said_in(line["message"]["content"])]
        if texts and (issue := _INSTANCE.search(texts[0])):
            yield Past(said[0]["sessionId"], issue[1], texts[0], "\n".join(texts), lines)


def said_in(content: str | list[dict[str, Any]]) -> Iterator[str]:
    """The texts of a message, without calls of tools and their output."""
    if isinstance(content, str):
        yield content
    else:
        yield from (block["text"] for block in content if block["type"] == "text")


def import_sessions(found: Sequence[Past], out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    for past in found:
        project = project_of(past.issue)
        folder = out / "projects" / project
        if not folder.exists():
            folder.mkdir(parents=True)
            subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        written = out / "transcripts" / project / f"{past.session}.jsonl"
        written.parent.mkdir(parents=True, exist_ok=True)
        lines = ({**line, "cwd": str(folder)} if "cwd" in line else line for line in past.lines)
        written.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    command = [CTX, "import", "--from", "claude-code", "--transcripts", str(out / "transcripts")]
    subprocess.run(command, cwd=out, env=surroundings(str(out / "home")), check=True)


def ask(out: Path, question: Question) -> list[str]:
    """The sessions of an answer, in order."""
    command = [CTX, "recall", "--json", "--only", "nodes", "-"]
    done = subprocess.run(
        command,
        cwd=out / "projects" / question.project,
        env=surroundings(str(out / "home")),
        input=question.text,
        capture_output=True,
        text=True,
        check=True,
    )
    tags = (tag for node in json.loads(done.stdout)["nodes"] for tag in node["tags"])
    return list(dict.fromkeys(tag[8:] for tag in tags if tag.startswith("session:")))


def questions(relations: Path, cases: Path, found: Sequence[Past]) -> list[Question]:
    texts: dict[str, str] = {}
    for path in sorted(cases.rglob("*.json")):
        issue = json.loads(path.read_text(encoding="utf-8"))
        texts[issue["instance_id"]] = issue["problem_statement"]
    sessions = {past.issue: past.session for past in found}
    pairs = [(each["related"], each["base"]) for each in json.loads(relations.read_text())]
    related = [
        Question(project_of(base), issue, texts[issue], sessions[base])
        for issue, base in pairs
        if base in sessions and issue in texts
    ]
    chance = random.Random(7)
    foreign: list[Question] = []
    for project in sorted({project_of(past.issue) for past in found}):
        others = sorted(issue for issue, base in pairs if project_of(base) != project)
        foreign += [
            Question(project, issue, texts[issue], "") for issue in chance.sample(others, FOREIGN)
        ]
    return related + foreign


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench experience")
    parser.add_argument("relations", type=Path)
    parser.add_argument("cases", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    found = list(pasts(given.cases))
    if not given.again:
        import_sessions(found, given.out)
    asked = [
        question
        for question in questions(given.relations, given.cases, found)
        if given.part in (None, part_of(question.project))
    ]
    by_project: dict[str, dict[str, History]] = {}
    for past in found:
        histories = by_project.setdefault(
            project_of(past.issue),
            {name: History(name, [], []) for name in (PROMPTS, TEXTS)},
        )
        for name, text in ((PROMPTS, past.prompt), (TEXTS, past.text)):
            histories[name].entries.append({"unit": past.session, "content": text})
    ways = {
        project: {name: bm25(history, terms.stem) for name, history in histories.items()}
        for project, histories in by_project.items()
    }
    hits: dict[str, list[list[float]]] = {
        name: [[] for _ in FIRST] for name in (OURS, PROMPTS, TEXTS)
    }
    empty = silent = 0
    seconds: list[float] = []
    names = {past.session: past.issue for past in found}
    for question in asked:
        began = time.perf_counter()
        answer = ask(given.out, question)
        seconds.append(time.perf_counter() - began)
        if not question.base:
            silent += not answer
            if answer and given.show:
                print(f"answered: {question.issue} in {question.project}")
            continue
        empty += not answer
        case = Case("", question.text, frozenset())
        rivals = {name: way(case) for name, way in ways[question.project].items()}
        for name, sessions in {OURS: answer, **rivals}.items():
            for scores, most in zip(hits[name], FIRST, strict=True):
                scores.append(float(question.base in sessions[:most]))
        if given.show and question.base not in answer[: FIRST[-1]]:
            others = [names[each] for each in answer[: FIRST[-1]]]
            print(f"missed: {question.issue} -> {names[question.base]}: {others}")
    count = len(hits[OURS][0])
    rows = []
    for name, by_most in hits.items():
        cells = [f"{paired.mean(each):.2f}" for each in by_most]
        gained = paired.gain(hits[OURS][-1], by_most[-1])
        gain = (
            "" if name == OURS else f"{gained.mean:+.2f} ({gained.low:+.2f} to {gained.high:+.2f})"
        )
        rows.append([f"{name}, {count} issues", *cells, gain])
    foreign = len(asked) - count
    note = (
        f"{empty} answers of ctx were empty, and {silent} of {foreign} to foreign questions;"
        f" {sorted(seconds)[len(seconds) // 2]:.2f} s a question, the whole process."
    )
    columns = ["sessions ranked by", *(f"hit@{most}" for most in FIRST), "gain of ctx, hit@5"]
    report.show_table(
        report.Table("experience", columns, rows, note),
        "python -m bench experience RELATIONS CASES OUT",
    )


if __name__ == "__main__":
    main()
