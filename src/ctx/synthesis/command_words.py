"""The words of a simple command: its settings, its wrappers, its program, its options.

Also the files that a command line changes. It shows which files `sed -i` or `cat >` change. For a
patch, an install or an automatic fix it does not: only the fact of a change is known.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ctx.capture import shell_line

_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+""")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REDIRECTION = re.compile(r"(?:[0-9]*|&)(?:>>?|<)")
_ONLY_PRINTS = frozenset(
    "NO_COLOR FORCE_COLOR CLICOLOR COLUMNS TERM RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED"
    " PYTHONDONTWRITEBYTECODE".split()
)
_OPENS = frozenset({"(", "{", "!", "then", "do", "else", "if", "while"})
_NEUTRAL = frozenset("time nice nohup command exec env timeout gtimeout stdbuf caffeinate".split())
"""Wrappers that do not change the outcome of a command."""
_THROUGH: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("uv poetry pipenv hatch pdm rye".split(), ("run",)),
    "bundle": ("exec",),
    **dict.fromkeys("npx bunx pnpx uvx sudo xvfb-run".split(), ()),
    **dict.fromkeys(_NEUTRAL, ()),
}
"""Wrapper commands, and the words that may follow them before the wrapped command."""


def raw_words(command: str) -> list[str]:
    """The words of a simple command as typed, without redirections."""
    found: list[str] = []
    skips = False
    for piece in _WORD.finditer(command.replace("\\\n", " ")):
        word = piece[0]
        if skips:
            skips = False
        elif _REDIRECTION.match(word):
            skips = word.endswith((">", "<"))
        elif word != "&" and not (not found and word in _OPENS):
            found.append(word)
    if found and found[-1].endswith("&") and not found[-1].endswith("&&"):
        found[-1] = found[-1].rstrip("&")
    return [word for word in found if word]


def unquoted(words: Sequence[str]) -> list[str]:
    plain = (word.replace("'", "").replace('"', "") for word in words)
    return [word for word in plain if word]


def variable(word: str) -> str:
    """The environment variable that a word sets, unless it only affects output."""
    name = word.partition("=")[0] if _ASSIGNMENT.match(word) else ""
    return "" if name in _ONLY_PRINTS else name


def is_assignment(word: str) -> bool:
    return _ASSIGNMENT.match(word) is not None


def program_index(words: Sequence[str]) -> int:
    """The index of the program behind settings and wrappers; the number of words if none."""
    index = 0
    while index < len(words):
        program = posixpath.basename(words[index])
        if is_assignment(words[index]):
            index += 1
        elif program in _THROUGH:
            between = _THROUGH[program]
            index += 1
            while index < len(words) and (
                words[index] in between
                or words[index].startswith("-")
                or words[index][:1].isdigit()
            ):
                index += 1
            if between and words[index - 1] not in between:
                return len(words)
        else:
            break
    return index


def prefix(words: Sequence[str]) -> list[str]:
    """The settings and wrappers of a command, without those that do not change its outcome."""
    kept: list[str] = []
    is_neutral = False
    for word in words:
        if is_assignment(word):
            kept += [word] if variable(word) else []
            continue
        program = posixpath.basename(word)
        if program in _THROUGH:
            is_neutral = program in _NEUTRAL
        if not is_neutral:
            kept.append(word)
    return kept


_VALUES = {
    "pytest": "-n -W -o -c -p -r --tb --durations --durations-min --maxfail --cov --cov-report"
    " --cov-config --rootdir --basetemp --timeout --junitxml --junit-xml --color --capture"
    " --log-level --log-cli-level --import-mode --dist --numprocesses --confcutdir --override-ini"
    " --pythonwarnings --reruns",
    "jest": "-w -c --maxWorkers --reporters --config --env --testTimeout --coverageReporters",
    "vitest": "-c --reporter --config --pool --project --testTimeout --environment --root",
    "eslint": "-c -f -o --max-warnings --config --ext --format --ignore-path --rule --parser"
    " --plugin --output-file --cache-location",
    "go": "-count -timeout -parallel -cpu -coverprofile -covermode -tags -bench -benchtime -shuffle"
    " -mod -o",
    "cargo": "-j -F -D -W -A -Z --jobs --features --target --target-dir --profile --manifest-path"
    " --color --message-format --test-threads",
    "mypy": "--config-file --python-version --python-executable --platform --cache-dir",
    "ruff": "--config --select --extend-select --output-format --line-length --target-version",
    "tsc": "--target --module --outDir",
    "tox": "-e -c --workdir",
    "nox": "-s -f",
    "make": "-j -C -f -l --jobs --directory --file",
    "npm": "-w --prefix --workspace",
    "pnpm": "-C --filter --dir",
    "yarn": "--cwd",
}
"""Options that take the next word as their value; it is not a target."""
_TAKES_VALUE = {tool: frozenset(options.split()) for tool, options in _VALUES.items()}
_SELECTS = {
    **dict.fromkeys("-k -run --run -t --testNamePattern".split(), "-k"),
    **dict.fromkeys("-p --package".split(), "-p"),
    "-m": "-m",
}
_LEAVES_OUT = frozenset(
    {"--ignore", "--deselect", "--exclude", "--skip", "-skip", "--testPathIgnorePatterns"}
)
_PRINTS = frozenset(
    "-q -qq -v -vv -vvv -s -x -rA -ra -rf --quiet --verbose --silent --no-header --no-summary"
    " --nocapture --exitfirst --bail --fail-fast -failfast --ff --no-color --color --tb --durations"
    " --maxfail -n -j --jobs --numprocesses --reporter --reporters --output-format --message-format"
    " --format --lf --last-failed --".split()
)
"""Options that only affect output, speed, or when the run stops."""

_SCRIPT_RUNNERS = frozenset({"make", "npm", "pnpm", "yarn", "tox", "nox"})


def targets(words: Sequence[str], *, keeps_all: bool) -> tuple[str, ...]:
    """The targets of a check, without options; with them if `keeps_all`."""
    found: list[str] = []
    takes = ""
    for word in words:
        if takes:
            found.append(f"{takes} {word}")
            takes = ""
        elif word in _SELECTS:
            takes = _SELECTS[word]
        elif word == "--":
            continue
        elif not word.startswith("-") or keeps_all:
            found.append(word.removeprefix("./") or ".")
    return tuple(sorted(set(found)))


def without_values(tool: str, words: Sequence[str]) -> list[str]:
    """The words without options that take a value, and without their values."""
    takes = _TAKES_VALUE.get(tool, frozenset())
    kept: list[str] = []
    skips = False
    for index, word in enumerate(words):
        if skips:
            skips = False
        elif word in takes or word in _LEAVES_OUT:
            # `-j` may have no value.
            following = words[index + 1] if index + 1 < len(words) else ""
            skips = not (tool == "make" and word in ("-j", "-l") and not following.isdigit())
        elif not (word.isdigit() and index and words[index - 1].startswith("-")):
            kept.append(word)
    return kept


def left_out(words: Sequence[str]) -> tuple[str, ...]:
    """The targets that a check excludes."""
    apart = (word.partition("=") for word in words)
    found = [value for name, _, value in apart if name in _LEAVES_OUT and value]
    found += [value for name, value in pairwise(words) if name in _LEAVES_OUT]
    return tuple(sorted({each.removeprefix("./") for each in found}))


def as_typed(program: str, words: Sequence[str]) -> str:
    """A command as typed, without options that only affect its output."""
    takes = _TAKES_VALUE.get(program, frozenset())
    typed = words[words.index(program) + 1 :] if program in words else words[1:]
    if program == "unittest":
        return " ".join(["python -m unittest", *typed])
    kept: list[str] = []
    skips = False
    for index, word in enumerate(typed):
        if skips:
            skips = False
        elif word.partition("=")[0] not in _PRINTS or (word == "--" and typed[index + 1 :]):
            kept.append(word)
        else:
            skips = word in takes
    if kept[-1:] == ["--"]:
        kept.pop()
    return " ".join([program, *kept])


def without_print_options(tool: str, words: Sequence[str]) -> list[str]:
    """The words of a command without options that only affect its output.

    Only options of the tool itself are known, not those behind it in `npm run test -- -v`.
    """
    if tool not in _TAKES_VALUE or tool in _SCRIPT_RUNNERS:
        return list(words)
    takes = _TAKES_VALUE[tool]
    kept: list[str] = []
    skips = False
    for word in words:
        if skips:
            skips = False
        elif tool == "go" and kept[-1:] == ["-tags"]:
            kept[-1] = f"-tags={word}"
        elif word == "--" or word.partition("=")[0] not in _PRINTS:
            kept.append(word)
        else:
            skips = word in takes
    return kept


_MOVERS = frozenset("mv git".split())
_LONGEST_LINE = 2_000
_MOST_PARTS = 12
_MOST_PATHS = 20
_FILE = re.compile(r"[\w@+./-]*(?:\w\.\w{1,8}|(?:Make|Docker|Rake|Gem)file)\Z")
_PRINTED = re.compile(r"\.(?:log|txt|out|tmp)\Z")
_INTO = re.compile(r"(?<![<>0-9&])>{1,2}\s*([^\s>&|;]+)")
_IN_PLACE = re.compile(r"-(?:[a-zA-Z]*i(?:\.\w+)?[a-z]*|-in-place(?:=.*)?)\Z")
_PATCHES = re.compile(r"git (?:-\S+ )*(?:apply|am|revert|cherry-pick)\b|patch\b")
_INSTALLS_OR_MENDS = re.compile(
    r"(?:uv )?pip3? install|(?:uv|poetry|pdm|cargo|yarn|pnpm|bun) add|(?:npm|pnpm|bun) (?:i|install"
    r"|ci|add)\b|yarn(?: install)?\s*\Z|go (?:get|mod tidy)|bundle (?:install|add)|composer require"
    r"|(?:apt|apt-get|brew|dnf) install|uv sync|poetry install|gofmt -w|cargo fix"
)
_FIXES_BY_ITSELF = re.compile(r"\s(?:--fix|--write|--unsafe-fixes|--in-place)(?=\s|\Z)")
_BEFORE = re.compile(r"(?:[A-Za-z_]\w*=\S* |sudo |command |python3? -m |[\w./]*/bin/)*")


class ShellEdit(NamedTuple):
    paths: tuple[str, ...]
    """The paths as written; empty if the command does not name them."""


@lru_cache(maxsize=2_048)
def shell_edit(command: str) -> ShellEdit | None:
    """The files that a command line changes; None if it changes none."""
    line = shell_line.read(command[:_LONGEST_LINE])
    found: list[str] = []
    is_edit = False
    for part in line.parts[:_MOST_PARTS]:
        paths = _changed_files(part)
        if paths is not None:
            is_edit = True
            found += [_relative_to_start(line.folder, path) for path in paths]
    return ShellEdit(tuple(dict.fromkeys(found))[:_MOST_PATHS]) if is_edit else None


def _changed_files(part: shell_line.CommandPart) -> Sequence[str] | None:
    text = part.text[_prefix_length(part.text) :]
    words = [word.strip("'\"") for word in _WORD.findall(text)]
    if part.verb in ("sed", "perl") and any(map(_IN_PLACE.match, words)):
        return [word for word in words[1:] if not word.startswith("-") and _FILE.match(word)]
    if part.verb == "tee":
        return _project_files(words[1:]) or None
    if part.verb in ("cat", "echo", "printf"):
        return _project_files(_INTO.findall(text)) or None
    if part.verb in _MOVERS and words[-3:-2] in (["mv"], ["-f"], ["-k"]):
        return _project_files(words[-1:]) or None
    if _PATCHES.match(text) or _INSTALLS_OR_MENDS.match(text) or _FIXES_BY_ITSELF.search(text):
        return []
    return None


def _prefix_length(text: str) -> int:
    before = _BEFORE.match(text)
    return before.end() if before else 0


def _project_files(words: Iterable[str]) -> list[str]:
    """The project files among the words, without logs and other output files."""
    bare = (word.strip("'\"") for word in words)
    return [word for word in bare if _FILE.match(word) and not _PRINTED.search(word)]


def _relative_to_start(folder: str, path: str) -> str:
    """A path relative to the folder in which the command line started."""
    joined = path if path.startswith("/") else posixpath.join(folder, path)
    return posixpath.normpath(joined)
