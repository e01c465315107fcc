"""Commands that check the code: tests, compilers, linters, or a program that must run.

The same check is rarely typed the same way twice. Wrappers, verbosity and redirections do not
matter; the targets do.
"""

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ctx.capture import shell_line
from ctx.synthesis import command_words

_LONGEST = 2_000
MOST_PARTS = 12
_TESTS = frozenset(
    "pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest unittest nosetests karma"
    " playwright cypress gotestsum bats behave pest nose2 wdio testcafe uvu jasmine".split()
)
_BUILDERS = frozenset(
    "cargo go dotnet swift zig mix stack cabal sbt flutter dart lein rebar3 gleam xcodebuild"
    " meson".split()
)
_RUNNERS = frozenset(
    "npm pnpm yarn bun deno make gmake just task rake gradle gradlew mvn mvnw ant bazel bazelisk"
    " ninja mise nx turbo moon poe invoke inv rush lerna earthly pants gulp grunt composer".split()
)
_LINTERS = frozenset(
    "mypy pyright basedpyright pyrefly ty ruff flake8 pylint tsc eslint biome prettier black isort"
    " clippy rustc gcc g++ clang javac shellcheck golangci-lint staticcheck rubocop phpstan psalm"
    " vue-tsc svelte-check oxlint stylelint dprint rustfmt gofmt goimports markdownlint"
    " markdownlint-cli2 yamllint actionlint hadolint swiftlint ktlint detekt tslint knip xo"
    " pre-commit lint-staged sqlfluff tflint cppcheck clang-tidy".split()
)
_INTERPRETERS = frozenset("python python3 node ruby php perl bash sh deno bun java".split())
_PLAIN = frozenset(
    "ls cat head tail grep rg egrep fgrep find fd cd pwd echo printf which type file stat wc sort"
    " uniq diff cmp rm cp mv mkdir rmdir touch ln chmod chown test [ true false kill pkill ps sleep"
    " git gh hg svn curl wget ssh scp rsync tar unzip zip sed awk cut tr xargs tee less more man"
    " pip pip3 apt apt-get brew dnf yum conda docker podman kubectl export source set unset jq"
    " open code vim nano ping nc lsof top df du tree sqlite3 psql mysql redis-cli claude".split()
)
"""Commands whose failure says nothing about the code."""
_GOALS = {
    "test": "test",
    "t": "test",
    "nextest": "test",
    "bench": "test",
    "build": "build",
    "b": "build",
    "check": "build",
    "c": "build",
    "clippy": "build",
    "vet": "build",
    "compile": "build",
    "run": "run",
    "fmt": "lint",
    "format": "lint",
    "analyze": "lint",
}
_STYLE = _LINTERS - frozenset(
    "mypy pyright basedpyright pyrefly ty tsc vue-tsc svelte-check clippy rustc gcc g++ clang"
    " javac phpstan psalm".split()
)
_KNOWN = _TESTS | _BUILDERS | _RUNNERS | _LINTERS | _INTERPRETERS
_RUN_WORDS = frozenset("run run-script exec x task r".split())
_LINT_NAMES = ("lint", "check", "format", "fmt", "prettier", "types")
_LONGEST_WRAPPER = 7
_PACKAGE_RUNNERS = frozenset("npm pnpm yarn bun deno".split())
_RUNS_ANY = frozenset({"make", "gmake", "just", "task", "mise", "bazel", "ninja"})
_PYTHON_TESTS = frozenset({"pytest", "unittest", "nosetests"})
_SCRIPT_TESTS = frozenset("jest vitest mocha ava karma playwright cypress node".split())
_WHOLE = re.compile(r"(?:tests?|t|check|ci|all|verify|unit|test[:_-](?:unit|all|ci))\Z")
_TEST_SCRIPT = re.compile(r"(?<![a-z])(?:run)?tests?(?![a-z])")
_INLINE = frozenset({"-", "-c", "-e", "-p", "--eval", "--print"})
_FIXES = re.compile(r"(?:[:_-]|(?<= )--)(?:fix|write|apply)\b")
_SUITE_SCRIPT = re.compile(
    r"(?:\A|/)(?:tests?|spec)/(?:run|all|check|suite)(?:[_-]\w+)?(?:\.\w+)?\Z"
)
_STOPS_EARLY = frozenset({"-x", "--exitfirst", "--bail", "--fail-fast", "-failfast", "--ff"})


class Check(NamedTuple):
    tool: str
    goal: str
    """test, build, lint or run."""
    targets: tuple[str, ...]
    """What it checks; empty means the whole project."""
    shown: str
    """The command as shown to a reader."""
    stops_early: bool = False
    """Whether it stops at the first failure."""
    left_out: tuple[str, ...] = ()
    """The targets that it excludes."""
    settings: tuple[str, ...] = ()
    """The names of its environment variables, without those that only affect output."""
    prefix: tuple[str, ...] = ()
    """What stands before the tool and may change its outcome: settings, wrappers, `cd`."""

    @property
    def typed(self) -> str:
        """The command with its settings and wrappers."""
        return " ".join([*self.prefix, self.shown])

    def is_fixed_by(self, other: "Check") -> bool:
        """Whether another check finds the same, and also fixes it: `lint:fix` of `lint`."""
        if (self.tool, self.goal, self.left_out) != (other.tool, other.goal, other.left_out):
            return False
        own, others = ({_without_fix(target) for target in each.targets} for each in (self, other))
        return own == others and (self.fixes or other.fixes)

    @property
    def fixes(self) -> bool:
        """Whether it changes what it checks."""
        return _FIXES.search(self.shown) is not None

    @property
    def is_style(self) -> bool:
        """Whether it only checks style; its findings are not bugs."""
        names = " ".join(self.targets) if self.tool in _RUNNERS else ""
        if self.tool in _BUILDERS and self.goal == "lint":
            return True
        return self.tool in _STYLE or re.search(r"lint|format|fmt|style", names) is not None


@lru_cache(maxsize=2_048)
def checks_by_part(command: str) -> tuple[Check | None, ...]:
    """For each part of a command line, the check that it runs."""
    found: list[Check | None] = []
    exported: list[str] = []
    for part in shell_line.read(command[:_LONGEST]).parts[:MOST_PARTS]:
        words = command_words.unquoted(command_words.raw_words(part.text))
        if part.verb == "export":
            exported += words[1:]
        # A command behind a pipe only filters the output.
        is_check = part.verb != "export" and part.joint != "|" and not part.is_own
        found.append(_check(words, exported) if is_check else None)
    return tuple(found)


def checks(command: str) -> tuple[Check, ...]:
    """The checks in a command line, in order."""
    return tuple(check for check in checks_by_part(command) if check)


def covers(later: Check, earlier: Check) -> bool:
    """Whether a passing check implies that an earlier one would pass too."""
    if later.tool != earlier.tool or not _reaches(later.goal, earlier.goal):
        return False
    if later.left_out and later.left_out != earlier.left_out:
        return False
    if not later.targets:
        return True
    return bool(earlier.targets) and all(
        any(holds(outer, inner) for outer in later.targets) for inner in earlier.targets
    )


def holds(outer: str, inner: str) -> bool:
    """Whether a target contains another: a folder its files, a file its tests."""
    if outer in (inner, ".", "./...", "..."):
        return True
    outer = outer.removesuffix("/...").removesuffix("/")
    return inner.startswith((f"{outer}/", f"{outer}::", f"{outer}["))


def is_run_by(inner: Check, outer: Check) -> bool:
    """Whether `outer` runs `inner` for the whole project: `make test`, `tox`, a script."""
    if inner.tool == outer.tool or inner.goal != outer.goal or outer.left_out:
        return False
    narrow = [each for each in outer.targets if not _WHOLE.match(each)]
    if outer.tool in _RUNS_ANY:
        return not narrow
    if outer.tool in ("tox", "nox"):
        return inner.tool in _PYTHON_TESTS and not narrow
    if outer.tool in _RUNNERS:
        return inner.tool in _SCRIPT_TESTS and not narrow
    return outer.goal == "test" and outer.tool not in _TESTS | _BUILDERS and not narrow


def check_covers(check: Check, path: str, test: str) -> bool:
    """Whether a check covers a file or a test."""
    if any(holds(out, test) or holds(out, path) for out in check.left_out):
        return False
    if not check.targets:
        return True
    name = _bare_test_name(test)
    return any(
        holds(target, test)
        or holds(target, path)
        or (name and _bare_test_name(target) == name)
        or (name and target.startswith("-k ") and target[3:] in test)
        for target in check.targets
    )


def _without_fix(target: str) -> str:
    """`lint` of `lint:fix`."""
    return _FIXES.sub("", target)


def _bare_test_name(test: str) -> str:
    """The name of a test, without file and parameters."""
    name = test.partition("[")[0].partition(" (")[0]
    return re.split(r"::|[/.]| > ", name)[-1].strip()


def _reaches(later: str, earlier: str) -> bool:
    # Testing or running implies building.
    return later == earlier or (earlier == "build" and later in ("test", "run"))


def _check(typed: list[str], exported: Sequence[str]) -> Check | None:
    start = command_words.program_index(typed)
    start += _wrapper_length(typed[start:])
    words = typed[start:]
    if not words:
        return None
    program = posixpath.basename(words[0])
    rest = words[1:]
    if program not in _KNOWN and rest and posixpath.basename(rest[0]) in _PLAIN:
        # A wrapper around a command that checks nothing: `rtk git status`.
        return None
    is_own = words[0].startswith(("./", "scripts/", "bin/")) or _runs_project_file(program, rest)
    if program in _PLAIN and not is_own:
        return None
    if program in _INTERPRETERS and (_INLINE & set(rest[:2]) or _edits_by_line(program, rest)):
        # Code typed on the command line is not part of the project.
        return None
    before = [*exported, *typed[:start]]
    if program in _INTERPRETERS and rest[:1] == ["-m"] and len(rest) > 1:
        before += words[:2]
        program, rest = rest[1], rest[2:]
        if program in ("pip", "venv", "http.server", "json.tool"):
            return None
    elif program in _PACKAGE_RUNNERS and (inner := _inner_tool(program, rest)):
        # `pnpm exec vitest` runs the same as `npx vitest`.
        before += [program, *rest[: len(rest) - len(inner)]]
        program, rest, words = inner[0], inner[1:], inner
    tool = "pytest" if program == "py.test" else program
    if tool not in _INTERPRETERS:
        rest = command_words.without_values(tool, rest)
    goal, asked = _goal(program, rest)
    if not goal:
        return None
    if goal == "run" and (suites := [word for word in words[:2] if _SUITE_SCRIPT.search(word)]):
        goal, asked = "test", [word for word in asked if word not in suites]
    if tool == "cargo" and goal != "test" and "--" in asked:
        asked = asked[: asked.index("--")]
    is_known = goal != "run" and program in _TESTS | _LINTERS | _BUILDERS
    return Check(
        tool,
        goal,
        command_words.targets(asked, keeps_all=goal == "run"),
        command_words.as_typed(program, words) if is_known else " ".join(words),
        any(word in _STOPS_EARLY or word.startswith("--maxfail") for word in rest),
        command_words.left_out(words),
        tuple(name for word in before if (name := command_words.variable(word))),
        tuple(command_words.prefix(before)),
    )


def _wrapper_length(words: Sequence[str]) -> int:
    """How many words an unknown wrapper has before a tool that checks: `rtk bun run test`."""
    program = posixpath.basename(words[0]) if words else ""
    if program in _KNOWN or (program in _PLAIN and not _runs_inside(program, words)):
        return 0
    for index, word in enumerate(words[1:_LONGEST_WRAPPER], start=1):
        name = posixpath.basename(word)
        if name in _KNOWN:
            goal, _ = _goal(name, command_words.without_values(name, words[index + 1 :]))
            return index if goal in ("test", "lint", "build") else 0
    return 0


def _runs_inside(program: str, words: Sequence[str]) -> bool:
    """Whether a command runs another in a container."""
    is_container = program in ("docker", "podman", "kubectl", "docker-compose")
    return is_container and any(word in ("exec", "run") for word in words[1:4])


def _inner_tool(program: str, rest: list[str]) -> list[str]:
    """The tool that a package runner calls by its name: `vitest run` of `pnpm exec vitest run`."""
    words = command_words.without_values(program, rest)
    while words and (words[0].startswith("-") or words[0] in ("exec", "x", "dlx")):
        words = words[1:]
    return words if words and words[0] in _TESTS | _LINTERS else []


def _runs_project_file(program: str, rest: Sequence[str]) -> bool:
    """Whether a plain command runs a file of the project: a query, an image."""
    if program in ("psql", "mysql", "sqlite3"):
        return any(word in ("-f", "--file") or word.startswith("--file=") for word in rest)
    asked = [word for word in rest[:2] if word not in ("compose", "buildx")]
    return program in ("docker", "podman") and asked[:1] == ["build"]


def _edits_by_line(program: str, rest: Sequence[str]) -> bool:
    return program == "perl" and any(re.match(r"-\w*[ipn]", word) for word in rest[:3])


def _goal(program: str, rest: list[str]) -> tuple[str, list[str]]:
    """The goal of a command, and the words that may name its targets."""
    if program == "unittest" and rest[:1] == ["discover"]:
        # Options say where to discover tests; it is nearly always everywhere.
        return "test", []
    if program in _TESTS:
        return "test", rest
    if program in _LINTERS:
        return "lint", rest[1:] if rest[:1] == ["check"] else rest
    plain = [word for word in rest if not word.startswith("-")]
    first = plain[0] if plain else ""
    if program in _BUILDERS:
        if first not in _GOALS:
            return "", rest
        return _GOALS[first], [word for word in rest if word != first]
    if program in _RUNNERS:
        names = [word for word in plain if word not in _RUN_WORDS]
        if not names or names[0] in ("install", "i", "add", "ci", "init", "update", "remove"):
            return ("run", rest) if program in ("make", "ninja", "just") and not names else ("", [])
        return _kind(names[0]), [word for word in rest if word not in _RUN_WORDS]
    if program in _INTERPRETERS and not rest:
        return "", rest
    if "--test" in rest:
        return "test", [word for word in rest if word != "--test"]
    script = posixpath.basename(first) if program in ("bash", "sh") else program
    if _TEST_SCRIPT.search(script) and program not in _INTERPRETERS - {"bash", "sh"}:
        return "test", [word for word in rest if word != first or script == program]
    return "run", rest


def _kind(name: str) -> str:
    """The goal of a project's script, by its name."""
    if "test" in name or name == "t":
        return "test"
    if "build" in name or "compile" in name:
        return "build"
    return "lint" if any(word in name for word in _LINT_NAMES) else "run"
