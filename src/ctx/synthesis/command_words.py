"""The words of a simple command: its settings, its wrappers, and the program behind them."""

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise

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
    "uvx": (),
    "sudo": (),
    "xvfb-run": (),
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
    "-k": "-k",
    "-run": "-k",
    "--run": "-k",
    "-t": "-k",
    "--testNamePattern": "-k",
    "-p": "-p",
    "--package": "-p",
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
