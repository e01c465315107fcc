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
from ctx.synthesis import check_options

_LONGEST = 2_000
_MOST_PARTS = 12
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REDIRECTION = re.compile(r"[0-9]*(?:>>?|<)")

_THROUGH = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "bundle": ("exec",),
    "npx": (),
    "bunx": (),
    "pnpx": (),
    "time": (),
    "sudo": (),
    "env": (),
    "nice": (),
    "command": (),
    "exec": (),
    "timeout": (),
    "xvfb-run": (),
}
"""Wrapper commands, and the words that may follow them before the wrapped command."""
_TESTS = frozenset(
    "pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest unittest nosetests karma"
    " playwright cypress gotestsum".split()
)
_BUILDERS = frozenset({"cargo", "go", "dotnet", "swift", "zig", "mix", "stack", "cabal", "sbt"})
_RUNNERS = frozenset(
    "npm pnpm yarn bun deno make just task rake gradle gradlew mvn mvnw ant bazel ninja".split()
)
_LINTERS = frozenset(
    "mypy pyright ruff flake8 pylint tsc eslint biome prettier black isort clippy rustc gcc g++"
    " clang javac shellcheck golangci-lint staticcheck rubocop phpstan psalm vue-tsc".split()
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
}
_ONLY_PRINTS = frozenset(
    "NO_COLOR FORCE_COLOR CLICOLOR COLUMNS TERM RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED"
    " PYTHONDONTWRITEBYTECODE PYTHONPATH GOFLAGS LANG LC_ALL CI".split()
)
_STYLE = frozenset(
    "ruff flake8 pylint eslint biome prettier black isort shellcheck golangci-lint staticcheck"
    " rubocop stylelint".split()
)
_RUNS_ANY = frozenset({"make", "just", "task", "bazel", "ninja"})
_PYTHON_TESTS = frozenset({"pytest", "unittest", "nosetests"})
_SCRIPT_TESTS = frozenset("jest vitest mocha ava karma playwright cypress node".split())
_WHOLE = re.compile(r"(?:tests?|t|check|ci|all|verify|unit|test[:_-](?:unit|all|ci))\Z")
_TEST_SCRIPT = re.compile(r"(?<![a-z])(?:run)?tests?(?![a-z])")
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

    @property
    def is_style(self) -> bool:
        """Whether it only checks style; its findings are not bugs."""
        names = " ".join(self.targets) if self.tool in _RUNNERS else ""
        return self.tool in _STYLE or re.search(r"lint|format|fmt|style", names) is not None


@lru_cache(maxsize=2_048)
def checks(command: str) -> tuple[Check, ...]:
    """The checks in a command line, in order."""
    parts = shell_line.read(command[:_LONGEST]).parts[:_MOST_PARTS]
    found: list[Check | None] = []
    exported: list[str] = []
    for part in parts:
        words = _words(part.text)
        if part.verb == "export":
            exported += [name for word in words[1:] if (name := _variable(word))]
        # A command behind a pipe only filters the output.
        elif part.joint != "|" and not part.is_own:
            found.append(_check(words, exported))
    return tuple(check for check in found if check)


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


def looks_at(check: Check, path: str, test: str) -> bool:
    """Whether a check covers a file or a test."""
    if any(holds(out, test) or holds(out, path) for out in check.left_out):
        return False
    if not check.targets:
        return True
    name = _bare(test)
    return any(
        holds(target, test)
        or holds(target, path)
        or (name and _bare(target) == name)
        or (name and target.startswith("-k ") and target[3:] in test)
        for target in check.targets
    )


def _bare(test: str) -> str:
    """The name of a test, without file and parameters."""
    name = test.partition("[")[0].partition(" (")[0]
    return re.split(r"::|[/.]| > ", name)[-1].strip()


def _reaches(later: str, earlier: str) -> bool:
    # Testing or running implies building.
    return later == earlier or (earlier == "build" and later in ("test", "run"))


def _words(command: str) -> list[str]:
    """The words of a simple command, without quotation marks."""
    found: list[str] = []
    for piece in _WORD.finditer(command):
        words = piece[0].replace("'", "").replace('"', "")
        if words:
            found.append(words)
    return found


def _check(words: list[str], exported: Sequence[str]) -> Check | None:
    typed, words = words, _without_wrapping(words)
    if not words:
        return None
    before = typed[: typed.index(words[0])]
    settings = [*exported, *(name for word in before if (name := _variable(word)))]
    program = posixpath.basename(words[0])
    rest = words[1:]
    is_own = words[0].startswith(("./", "scripts/", "bin/")) or _runs_a_file(program, rest)
    if program in _PLAIN and not is_own:
        return None
    if program in _INTERPRETERS and (rest[:1] == ["-"] or _edits_by_line(program, rest)):
        # Code typed on the command line is not part of the project.
        return None
    if program in _INTERPRETERS and rest[:1] == ["-m"] and len(rest) > 1:
        program, rest = rest[1], rest[2:]
        if program in ("pip", "venv", "http.server", "json.tool"):
            return None
    tool = "pytest" if program == "py.test" else program
    if tool not in _INTERPRETERS:
        rest = check_options.without_values(tool, rest)
    goal, asked = _goal(program, rest)
    if not goal:
        return None
    if tool == "cargo" and goal != "test" and "--" in asked:
        asked = asked[: asked.index("--")]
    targets = check_options.targets(asked, keeps_all=goal == "run")
    stops_early = any(word in _STOPS_EARLY or word.startswith("--maxfail") for word in rest)
    is_known = goal != "run" and program in _TESTS | _LINTERS | _BUILDERS
    shown = check_options.as_typed(program, words) if is_known else " ".join(words)
    return Check(
        tool, goal, targets, shown, stops_early, check_options.left_out(words), tuple(settings)
    )


def _variable(word: str) -> str:
    """The environment variable that a word sets, unless it only affects output."""
    name = word.partition("=")[0] if _ASSIGNMENT.match(word) else ""
    return "" if name in _ONLY_PRINTS else name


def _runs_a_file(program: str, rest: Sequence[str]) -> bool:
    """Whether a plain command runs a file of the project: a query, an image."""
    if program in ("psql", "mysql", "sqlite3"):
        return any(word in ("-f", "--file") or word.startswith("--file=") for word in rest)
    asked = [word for word in rest[:2] if word not in ("compose", "buildx")]
    return program in ("docker", "podman") and asked[:1] == ["build"]


def _edits_by_line(program: str, rest: Sequence[str]) -> bool:
    return program == "perl" and any(re.match(r"-\w*[ipn]", word) for word in rest[:3])


def _without_wrapping(words: list[str]) -> list[str]:
    """A command without its wrappers and redirections."""
    kept: list[str] = []
    skips = False
    for word in words:
        if skips:
            skips = False
        elif _REDIRECTION.match(word):
            skips = word.endswith((">", "<"))
        else:
            kept.append(word)
    index = 0
    while index < len(kept):
        word = kept[index]
        program = posixpath.basename(word)
        if _ASSIGNMENT.match(word):
            index += 1
        elif program in _THROUGH:
            between = _THROUGH[program]
            index += 1
            while index < len(kept) and (
                kept[index] in between or kept[index].startswith("-") or kept[index][:1].isdigit()
            ):
                index += 1
            if between and kept[index - 1] not in between:
                return []
        else:
            break
    return kept[index:]


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
        names = [word for word in plain if word not in ("run", "run-script", "exec")]
        if not names or names[0] in ("install", "i", "add", "ci", "init", "update", "remove"):
            return ("run", rest) if program in ("make", "ninja", "just") and not names else ("", [])
        return _kind(names[0]), [word for word in rest if word not in ("run", "run-script")]
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
    return "lint" if any(word in name for word in ("lint", "check", "format")) else "run"
