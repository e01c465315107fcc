"""Learnings: what recurs over several sessions, so that no session has to find it out again.

    architecture   how the thing is built      "Events are kept in SQLite, not in memory."
    convention     how work is done here       "Tests are run with `make test`."
    gotcha         what went wrong repeatedly  "`test_retry` broke in 3 sessions: …"
    dependency     what it is built upon       "httpx is installed with `pip install httpx`."
    pattern        what goes together          "Who changes `schema.sql` changes `migrations.py`."

A learning needs evidence from several sessions, more of it if only agents said so. Its confidence
is in `memory.learning_confidence`. All functions here work on values; `operations.learnings` reads
and writes the store.
"""

import posixpath
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

from ctx import terms
from ctx.synthesis import dedupe
from ctx.synthesis.check_commands import Check, checks, covers
from ctx.synthesis.wording import is_test

_Shown = TypeVar("_Shown")

CATEGORIES = ("architecture", "convention", "gotcha", "dependency", "pattern")
_FEWEST = 2
_FEWEST_BY_AGENTS = 3
_FEWEST_DAYS = 2
_FEWEST_CHECKS = 3
_FEWEST_TOGETHER = 3
_MOSTLY = 0.75
_MOST_FILES = 12
_MOST_STATEMENTS = 400
_FEWEST_TERMS = 3
_FEWEST_OF_A_PERSON = 2
_MOST_NAMED = 4
_LONGEST = 240

_ARCHITECTURE = frozenset(
    terms.extract(
        "architecture layer module service database store schema api protocol queue design server"
        " client process storage cache interface component"
    )
)
_DEPENDENCY = frozenset(terms.extract("dependency library package version upgrade pin install"))
_INSTALLS = re.compile(
    r"(?:^|[;&|]\s*)(?P<command>(?:python3? -m )?pip3? install|uv add|poetry add|npm (?:install|i)"
    r"|pnpm add|yarn add|cargo add|go get|bundle add|gem install|composer require)"
    r"\s+(?P<words>[^;&|\n]{1,200})"
)
_TAKE_A_VALUE = frozenset(
    "-r --requirement -c --constraint -t --target -i --index-url --extra-index-url --registry"
    " --features -F --prefix --group --extra --with --platform --python --python-version -f"
    " --find-links -e --editable --version -v --tag --source --path --git --branch --rev --root"
    " --cache-dir --timeout --proxy -w --workspace -G".split()
)
_INSTALLERS = frozenset("pip setuptools wheel npm pnpm yarn uv poetry cargo".split())
# `httpx`, `uvicorn[standard]`, `@types/node`, `github.com/x/y`, each perhaps with a version.
_PACKAGE = re.compile(
    r"(?P<name>@?[A-Za-z][\w./-]*(?:\[[\w,-]{1,80}\])?)(?:[@=<>~!^;,].*)?\Z", re.DOTALL
)
# `src/app` is a folder.
_NO_PACKAGE = re.compile(r"^[^@./]+/|://|^git\+|\.(?:txt|toml|whl|tgz|gz|zip|cfg|lock)$|/$")
_NO_CODE = re.compile(
    r"(?:\A|/)(?:changelog|changes|readme|news|history|license|requirements)\b[^/]*\Z"
    r"|\.(?:lock|sum|log)\Z|(?:\A|[/-])lock\.(?:json|ya?ml)\Z",
    re.IGNORECASE,
)
# The test or command of `Fixed `test_a` and `test_b` in src/a.py: …`
_FIXED = re.compile(r"Fixed (?P<names>`[^`]{1,100}`(?:(?:, | and )`[^`]{1,100}`)*)")
_FORMATS = re.compile(r"\b(?:fmt|format|gofmt|rustfmt|prettier|black)\b")
_NAME = re.compile(r"`([^`]{1,100})`")
# `Which database should we use: SQLite` is the answer to a question of the agent.
_ANSWERS = re.compile(
    r"(?:what|which|how|should|do|does|did|would|want|more|any|ready|is|are|can|could|where|when|who"
    r"|why|shall|anything|continue|proceed)\b[^:]{8,200}: ",
    re.IGNORECASE,
)
_NAMES_ONE = re.compile(r"::|\A-[km]\b|\.(?:py|rs|go|ts|tsx|js|jsx|java|rb|php|cs|c|cpp)\b")


class SessionWork(NamedTuple):
    """The parts of a session that learnings are inferred from."""

    session: str
    at: str
    checks: tuple[str, ...] = ()
    """Commands with passing checks."""
    ran: tuple[str, ...] = ()
    """All commands that succeeded."""
    edited: tuple[str, ...] = ()


class ObservedStatement(NamedTuple):
    """The parts of an observation that are compared over sessions."""

    kind: str
    text: str
    sessions: tuple[str, ...]
    at: str
    files: tuple[str, ...] = ()
    human: bool = False
    """Whether the user said it."""
    id: str = ""
    """The observation."""
    is_verified: bool = False
    """For a bug fix: whether a check failed before and passed after it."""


class LearningCandidate(NamedTuple):
    """A learning that several sessions support."""

    key: str
    """Identifies the learning, independent of its wording."""
    category: str
    text: str
    sessions: tuple[str, ...]
    last_seen: str
    rests_on: tuple[str, ...] = ()
    """The observations, oldest first; empty if only the steps of the sessions show it."""
    human: bool = False
    """Whether the user said it."""
    files: tuple[str, ...] = ()
    """The files that were edited for it."""


def candidates(
    worked: Sequence[SessionWork], told: Sequence[ObservedStatement]
) -> list[LearningCandidate]:
    """All recurring things, without duplicates."""
    dates = {each.session: each.at for each in worked}
    found: dict[str, LearningCandidate] = {}
    for each in (
        *_checks(worked),
        *_installed_packages(worked),
        *_files_changed_together(worked),
        *_repeated_statements(told[-_MOST_STATEMENTS:], dates),
        *_recurring_failures(told[-_MOST_STATEMENTS:], dates),
    ):
        found.setdefault(each.key, each)
    return list(found.values())


def category_of(text: str) -> str:
    """The category of a sentence."""
    words = dedupe.meaning_of(text).subject
    if words & _DEPENDENCY:
        return "dependency"
    return "architecture" if words & _ARCHITECTURE else "convention"


# Inferred from steps


def _checks(worked: Sequence[SessionWork]) -> Iterator[LearningCandidate]:
    """Checks of the whole project that are run repeatedly, as typed most often."""
    shown = _sessions_of(worked, lambda each: filter(_covers_project, _checks_in(each.checks)))
    shown = {check: each for check, each in shown.items() if check.goal != "run"}
    often = {check: each for check, each in shown.items() if len(each) >= _FEWEST_CHECKS}
    for check, sessions in often.items():
        if any(covers(other, check) and not covers(check, other) for other in often):
            continue
        typed = Counter(
            plain
            for each in sessions
            for plain in map(_plain_command, each.checks)
            if plain and _checks_in([plain]) == [check]
        )
        # The most frequent, then the shortest.
        best = min(typed or [check.shown], key=lambda line: (-typed[line], len(line), line))
        how = "Tests are run" if check.goal == "test" else "The code is checked"
        how = "The code is formatted" if check.goal == "lint" and _FORMATS.search(best) else how
        text = f"{how} with `{best}`."
        if "`" not in best and len(best) <= _LONGEST // 2:
            yield _candidate(f"check {check.shown}", "convention", text, sessions)


def _checks_in(commands: Iterable[str]) -> list[Check]:
    """The checks of some commands, ignoring early stops and environment variables."""
    return [
        check._replace(stops_early=False, settings=())
        for command in commands
        for check in checks(command)
    ]


def _covers_project(check: Check) -> bool:
    """Whether a check covers the whole project and not a single file or test."""
    names_one = any(
        _NAMES_ONE.search(target) or (check.tool == "cargo" and check.goal == "test")
        for target in check.targets
    )
    return not names_one and not check.left_out


def _installed_packages(worked: Iterable[SessionWork]) -> Iterator[LearningCandidate]:
    def packages(each: SessionWork) -> Iterator[tuple[str, str]]:
        for command in each.ran:
            for match in _INSTALLS.finditer(command[:2_000]):
                for name in _packages(match["words"]):
                    yield match["command"], name

    for (command, name), sessions in _sessions_of(worked, packages).items():
        if len(sessions) >= _FEWEST:
            text = f"It needs {name} (`{command} {name}`)."
            yield _candidate(f"needs {name.lower()}", "dependency", text, sessions)


def _packages(words: str) -> Iterator[str]:
    """Package names of an install command, without versions, options and their values."""
    takes = False
    try:
        typed = shlex.split(words, comments=True)
    except ValueError:
        return
    for word in typed:
        is_value, takes = takes, word in _TAKE_A_VALUE
        name = _PACKAGE.match(word)
        if is_value or takes or name is None or name["name"].lower() in _INSTALLERS:
            continue
        if not _NO_PACKAGE.search(word):
            yield name["name"]


def _files_changed_together(worked: Sequence[SessionWork]) -> Iterator[LearningCandidate]:
    """Files that are nearly always changed together; each file is in one learning."""
    touched = _sessions_of(worked, lambda each: each.edited)
    pairs: dict[tuple[str, str], list[SessionWork]] = defaultdict(list)
    for each in worked:
        files = sorted({path for path in each.edited if not _NO_CODE.search(path)})
        # A session that touches many files does not show which belong together.
        if len(files) <= _MOST_FILES:
            for pair in combinations(files, 2):
                pairs[pair].append(each)
    groups: dict[str, dict[str, None]] = {}
    shown: dict[str, dict[SessionWork, None]] = defaultdict(dict)
    for (one, other), sessions in sorted(pairs.items()):
        often = max(len(touched[one]), len(touched[other]))
        is_habit = len(sessions) >= _FEWEST_TOGETHER and len(sessions) / often >= _MOSTLY
        # Several sessions of one day may be about one task.
        is_habit = is_habit and len({each.at[:10] for each in sessions}) >= _FEWEST_DAYS
        if is_habit and not _tests(one, other) and not _tests(other, one):
            group = groups.setdefault(one, {one: None}) | groups.get(other, {other: None})
            for path in group:
                groups[path] = group
                shown[path] |= dict.fromkeys(sessions)
    for first, group in groups.items():
        files = sorted(path for path in group if not any(_tests(path, other) for other in group))
        if first == min(group) and len(files) > 1:
            sessions = list({each: None for path in files for each in shown[path]})
            text = _line(f"{_file_list(files)} are changed together.")
            yield _candidate(f"together {first}", "pattern", text, sessions)


def _file_list(files: Sequence[str]) -> str:
    named = [f"`{path}`" for path in files[:_MOST_NAMED]]
    if len(named) == 1:
        return named[0]
    if len(files) > _MOST_NAMED:
        return f"{', '.join(named)} and {len(files) - _MOST_NAMED} more"
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _tests(one: str, other: str) -> bool:
    """Whether a file is the test of another; such a pair needs no learning."""
    if not is_test(one) or is_test(other):
        return False
    name = posixpath.basename(one).partition(".")[0].lower()
    bare = name.removeprefix("test_").removesuffix("_test").removesuffix("_spec")
    tested = posixpath.basename(other).partition(".")[0].lower()
    return tested in (bare, name.removesuffix("tests").removesuffix("test"))


def _sessions_of(
    worked: Iterable[SessionWork], read: Callable[[SessionWork], Iterable[_Shown]]
) -> dict[_Shown, list[SessionWork]]:
    found: dict[_Shown, list[SessionWork]] = defaultdict(list)
    for each in worked:
        for value in dict.fromkeys(read(each)):
            found[value].append(each)
    return found


def _plain_command(command: str) -> str:
    """A command without `cd`, wrappers, and pipes that only cut its output."""
    line = " ".join(command.split())
    line = re.sub(r"^cd [^&;|]{1,200}(?:&&|;) ?", "", line)
    line = re.sub(r" ?(?:2>&1)? ?\| ?(?:tail|head|tee|grep|cat)\b.*$", "", line)
    line = re.sub(r" ?(?:2>&1|\|\| true)$", "", line).strip()
    return re.sub(r"^(?:timeout \S+|time|nice) ", "", line)


# Inferred from observations


def _repeated_statements(
    told: Sequence[ObservedStatement], dates: dict[str, str]
) -> Iterator[LearningCandidate]:
    """Decisions and discoveries that were made more than once."""
    groups: list[list[ObservedStatement]] = []
    for each in told:
        fewest = _FEWEST_OF_A_PERSON if each.human else _FEWEST_TERMS
        is_enough = len(dedupe.meaning_of(each.text).subject) >= fewest
        if each.kind not in ("decision", "discovery") or not is_enough:
            continue
        if _ANSWERS.match(each.text):
            continue
        for group in groups:
            if dedupe.is_similar(group[0].text, each.text):
                group.append(each)
                break
        else:
            groups.append([each])
    for group in groups:
        sessions = list(dict.fromkeys(s for each in group for s in each.sessions))
        fewest = _FEWEST if any(each.human for each in group) else _FEWEST_BY_AGENTS
        if len(sessions) < fewest:
            continue
        # Prefer the user's wording, then the latest.
        best = max(group, key=lambda each: (each.human, each.at))
        category = "gotcha" if best.kind == "discovery" else category_of(best.text)
        first = dedupe.meaning_of(group[0].text)
        key = f"said{' not' * first.says_no} {' '.join(sorted(first.subject)[:12])}"
        yield LearningCandidate(
            key,
            category,
            _line(best.text),
            tuple(sessions),
            _last(group, dates),
            _ids(group),
            best.human,
        )


def _recurring_failures(
    told: Sequence[ObservedStatement], dates: dict[str, str]
) -> Iterator[LearningCandidate]:
    """Checks that failed and were fixed in several sessions."""
    by_check: dict[str, list[ObservedStatement]] = defaultdict(list)
    for each in told:
        if each.kind == "bugfix" and each.is_verified and (fixed := _FIXED.match(each.text)):
            for name in _NAME.findall(fixed["names"]):
                by_check[name].append(each)
    for name, group in by_check.items():
        sessions = list(dict.fromkeys(s for each in group for s in each.sessions))
        if len(sessions) >= _FEWEST:
            latest = max(group, key=lambda each: each.at)
            error = latest.text.partition(": ")[2]
            files = [path for each in group for path in each.files if not _NO_CODE.search(path)]
            often = [path for path, _ in Counter(files).most_common(_MOST_NAMED)]
            where = f", fixed in {_file_list(often)}" if often else ""
            last_time = f"; the last time: {error}" if error else ""
            text = _line(f"`{name}` broke in {len(sessions):,} sessions{where}{last_time}")
            yield LearningCandidate(
                *(f"broke {name}", "gotcha", text, tuple(sessions), _last(group, dates)),
                rests_on=_ids(group),
                files=tuple(often),
            )


def _ids(group: Iterable[ObservedStatement]) -> tuple[str, ...]:
    return tuple(each.id for each in group if each.id)


def _last(group: Iterable[ObservedStatement], dates: dict[str, str]) -> str:
    return max(
        max((dates.get(session, each.at) for session in each.sessions), default=each.at)
        for each in group
    )


def _candidate(
    key: str, category: str, text: str, worked: Sequence[SessionWork]
) -> LearningCandidate:
    sessions = tuple(each.session for each in worked)
    return LearningCandidate(key, category, text, sessions, max(each.at for each in worked))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
