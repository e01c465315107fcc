"""Development tasks from the public history of repositories: commits, with their messages as tasks.

`history_tasks.tsv` has one commit in a line: its id, the repository, the language, the commit, and
the source files of that language that it changed and that its parent has. The text of the task is
the message of the commit, which is read from the git directory when the benchmark runs. It is
cleaned of trailers and of the numbers of issues and pull requests.

The commits are chosen by rule, from the last 3,000 that are not merges. A commit is a task if

- it changed 1 to 4 source files of the language of the repository, not counting tests,
  documentation, examples and generated parsers, and one of them was there before,
- the words of its message have at least 30 letters,
- its subject is not that of a release, a revert, a change of format or of dependencies.

Of these, the ten are taken whose commits have the lowest SHA-256 together with a seed.

    python -m bench.history_tasks MIRRORS    # writes history_tasks.tsv
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bench import baselines
from bench.checkouts import mirror_of

KEPT = Path(__file__).with_suffix(".tsv")
SEED = "44"
NEWEST = 3_000
MOST_TASKS = 10
MOST_FILES = 4
FEWEST_LETTERS = 30
SUFFIXES = {
    "C": (".c", ".h"),
    "C++": (".cc", ".cpp", ".h"),
    "Java": (".java",),
    "Ruby": (".rb",),
    "PHP": (".php",),
    "C#": (".cs",),
    "Kotlin": (".kt",),
}
REPOSITORIES = {
    **dict.fromkeys(("jqlang/jq", "tmux/tmux"), "C"),
    **dict.fromkeys(("fmtlib/fmt", "google/leveldb"), "C++"),
    **dict.fromkeys(("google/gson", "jhy/jsoup"), "Java"),
    **dict.fromkeys(("sinatra/sinatra", "jekyll/jekyll"), "Ruby"),
    **dict.fromkeys(("guzzle/guzzle", "composer/composer"), "PHP"),
    **dict.fromkeys(("App-vNext/Polly", "JamesNK/Newtonsoft.Json"), "C#"),
    **dict.fromkeys(("square/okio", "detekt/detekt"), "Kotlin"),
}
_CHORES = re.compile(
    r"^(?:merge|revert|release|prepare|bump|upgrade|update (?:copyright|version|dependenc|to )"
    r"|(?:chore|build|ci|style|deps)\b|v?\d+\.\d+)"
    r"|\b(?:bump|upgrade)(?:s|ed|ing)?\b|\bdependenc(?:y|ies)\b|\bversion (?:to|number)\b"
    r"|\brelease\b|\bmerge (?:changes|branch)\b|\bupdate\b.*\bpackages\b"
    r"|\b(?:re-?format|formatting|whitespace|white space|indent(?:ation)?|code ?style|coding style"
    r"|clang-format|prettier|spotless|rubocop|cs[- ]fix\w*|lint\w*|typos?|spelling|javadocs?"
    r"|copyright|licen[cs]e|changelog)\b",
    re.IGNORECASE,
)
_TRAILER = re.compile(
    r"^(?:(?:[a-z]+-)+(?:by|id|revid|link|url): .*|\(cherry picked .*|merge pull request \d+"
    r"|-{9,}|[.,]+|created by moe: .*|[a-z]+_migrated_revid=.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = re.compile(
    r"[ \t]*\((?:#|GH-|PR ?#?)\d+\)"
    r"|(?:[ \t]*[(,])?[ \t]*\b(?:fix|close|resolve)(?:s|d|es|ed)?:? (?:[\w.-]+/[\w.-]+)?#\d+\b\)?"
    r"|(?<!\w)(?:[\w.-]+/[\w.-]+)?#\d+\b",
    re.IGNORECASE,
)


class HistoryTask(NamedTuple):
    id: str
    repository: str
    language: str
    commit: str
    paths: tuple[str, ...]


def read(path: str) -> Iterator[HistoryTask]:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        id, repository, language, commit, *paths = line.split("\t")
        yield HistoryTask(id, repository, language, commit, tuple(paths))


def parent_and_text(task: HistoryTask, mirror: str) -> tuple[str, str]:
    parent, _, message = _git(mirror, "show", "-s", "--format=%P%n%B", task.commit).partition("\n")
    return parent, cleaned(message)


def cleaned(message: str) -> str:
    return _TRAILER.sub("", _NUMBER.sub("", message)).strip()


def chosen(repository: str, mirror: str) -> list[HistoryTask]:
    """The tasks of one repository, by the rule of this module."""
    found = sorted(candidates(repository, mirror), key=lambda each: _lot(each.commit))
    return found[:MOST_TASKS]


def candidates(repository: str, mirror: str) -> Iterator[HistoryTask]:
    language = REPOSITORIES[repository]
    listed = _git(
        *(mirror, "log", "--no-merges", f"--max-count={NEWEST}", "--no-renames", "--name-status"),
        "--format=%x01%H %P%n%B%x02",
    )
    subjects: set[str] = set()
    for entry in listed.split("\1")[1:]:
        head, _, changes = entry.partition("\2")
        hashes, _, message = head.partition("\n")
        text = cleaned(message)
        subject = text.partition("\n")[0]
        letters = sum(map(len, re.findall(r"[A-Za-z]{2,}", text)))
        rows = [line.split("\t") for line in changes.split("\n") if "\t" in line]
        grammars = {path[:-2] for _, path in rows if path.endswith((".y", ".l"))}
        sources = [
            (status, path)
            for status, path in rows
            if path.endswith(SUFFIXES[language])
            and not baselines.is_beside(path)
            and path.rpartition(".")[0] not in grammars
        ]
        gold = tuple(path for status, path in sources if status != "A")
        is_task = gold and len(sources) <= MOST_FILES and letters >= FEWEST_LETTERS
        if is_task and " " in hashes and subject not in subjects and not _CHORES.search(subject):
            subjects.add(subject)
            commit = hashes.split()[0]
            id = f"{repository.replace('/', '__')}-{commit[:10]}"
            yield HistoryTask(id, repository, language, commit, gold)


def _lot(commit: str) -> str:
    return sha256(f"{SEED} {commit}".encode()).hexdigest()


def _git(mirror: str, *words: str) -> str:
    command = ["git", "-c", "core.quotepath=off", "--git-dir", mirror, *words]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("python -m bench.history_tasks MIRRORS")
    rows = []
    for repository in REPOSITORIES:
        mirror = mirror_of(sys.argv[1], repository)
        if mirror is None:
            raise SystemExit(f"There is no {repository} in {sys.argv[1]}.")
        tasks = chosen(repository, mirror)
        print(f"{repository}: {len(tasks)}")
        rows += ["\t".join([*task[:4], *task.paths]) for task in tasks]
    KEPT.write_text("\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
