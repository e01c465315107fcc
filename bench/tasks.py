"""Does memory help? Tasks of two sessions: the second one needs what the first one said.

The first session is scripted: a user and an agent talk, read, edit and run commands, and Claude
Code's hooks report it to ctx. The second session is played twice by a model, in copies of the same
repository: with what the hooks of ctx give at its start and with its prompt, and with `ctx recall`
as an action; and without ctx. A shell script then checks the files that the model wrote.

    python -m bench tasks                                        the scripted model: a smoke test
    python -m bench tasks --backend openai --server URL --model NAME --rounds 5
    python -m bench tasks --backend anthropic --model NAME
    python -m bench tasks --backend local                        the small model of `make clients`

The scripted model knows only what is in its prompt, so it shows what ctx gave to it. A model of 135
million parameters solves hardly any task: its figures say that the program works, no more. Checks
may run code that the model has written, so use a machine or a container where it can do no harm.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from bench import paired, report
from bench.paired import Interval
from bench.task_agent import Attempt, Limits, Session
from bench.task_script import ScriptedModel
from bench.two_session_tasks import Task, all_tasks
from ctx.config import resolve
from ctx.errors import CtxError
from ctx.llm import backends
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import Prices
from ctx.llm.protocol import Backend, Meter
from tests.llm import llama

ROOT = Path(__file__).parent.parent
CTX = Path(sys.executable).with_name("ctx")
LIMITS = Limits(turns=8, answer_tokens=800)
# The small model has a window of 2,048 tokens, and reads about forty tokens a second.
LOCAL_LIMITS = Limits(turns=2, answer_tokens=96)
WORKER_S = 120
MOST_TOKENS = 2_000_000
MODELS = {
    "scripted": "a script that knows only its prompt",
    "local": "SmolLM2, 135 million parameters",
}
BACKENDS = ("scripted", "local", *backends.NAMES)


class Outcome(NamedTuple):
    """One task, once with ctx and once without."""

    task: str
    kind: str
    language: str
    is_solved_with: bool
    is_solved_without: bool
    with_ctx: Attempt
    without: Attempt


# The two sessions


@cache
def load_demo() -> Any:
    """The simulated Claude Code of `scripts/try`."""
    loader = SourceFileLoader("demo", str(ROOT / "scripts" / "try"))
    spec = spec_from_loader("demo", loader)
    assert spec is not None
    demo = module_from_spec(spec)
    loader.exec_module(demo)
    return demo


@contextmanager
def first_session(task: Task, space: Path) -> Iterator[Any]:
    """Play the first session; the sandbox has its memory and its repository."""
    demo = load_demo()
    sandbox = demo.Sandbox(str(CTX), space)
    sandbox.project = space / "shop"
    # This measures what ctx gives, not how fast: on a busy machine, a hook would give nothing.
    sandbox.environment["CTX_PATIENCE"] = "20"
    sandbox.project.mkdir()
    task.write_files(sandbox.project)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "The shop"]):
        subprocess.run(["git", *words], cwd=sandbox.project, env=sandbox.environment, check=True)
    for name, text in task.programs.items():
        program = space / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    try:
        sandbox.run("install", "--quiet")
        with redirect_stdout(io.StringIO()):
            sandbox.hook("SessionStart", "first", source="startup")
            for step in task.first:
                play_step(sandbox, step)
            sandbox.hook("SessionEnd", "first", reason="other")
        wait_for_worker(sandbox)
        yield sandbox
    finally:
        stop = [str(CTX), "worker", "stop"]
        subprocess.run(stop, env=sandbox.environment, capture_output=True, check=False)


def wait_for_worker(sandbox: Any) -> None:
    """Wait until the worker has processed the first session. A short one gets no summary."""
    until = time.monotonic() + WORKER_S
    while time.monotonic() < until:
        listed = json.loads(sandbox.run("sessions", "list", "--format", "json"))["sessions"]
        if any(each["id"] == "first" and each["status"] == "completed" for each in listed):
            found = json.loads(sandbox.run("sessions", "show", "first", "--format", "json"))
            if found["session"]["synthesised"] and not found["events"].get("new"):
                return
        time.sleep(0.1)
    sys.exit("The worker did not process the first session in time.")


def play_step(sandbox: Any, step: Mapping[str, str]) -> None:
    match step:
        case {"user": text}:
            sandbox.asks("first", text)
        case {"agent": text}:
            sandbox.answers("first", text)
        case {"reads": path}:
            sandbox.reads("first", path)
        case {"edits": path, "old": old, "new": new}:
            sandbox.edits("first", path, old, new)
        case {"runs": command}:
            sandbox.runs("first", command)
        case _:
            raise ValueError(f"{step} is not a step of a session")


def given_context(sandbox: Any, prompt: str) -> str:
    """What the hooks give to the agent of the second session."""
    demo = load_demo()
    start = demo.context_of(sandbox.hook("SessionStart", "second", source="startup"))
    with redirect_stdout(io.StringIO()):
        more = sandbox.asks("second", prompt)
    return "\n\n".join(filter(None, (start, more)))


def play(task: Task, backend: Backend, meter: Meter, limits: Limits) -> Outcome:
    # A process that indexes the repository in the background may still write there.
    with tempfile.TemporaryDirectory(prefix="ctx-tasks-", ignore_cleanup_errors=True) as folder:
        with first_session(task, Path(folder)) as sandbox:
            alone = Path(folder, "without", "shop")
            shutil.copytree(sandbox.project, alone)
            context = given_context(sandbox, task.prompt)

            def recall(question: str) -> str:
                return str(sandbox.run("recall", "--", question))

            session = Session(sandbox.project, task.prompt, context, recall)
            with_ctx = session.play(backend, meter, limits)
            solved = task.is_solved(sandbox.project)
        without = Session(alone, task.prompt, "", None).play(backend, meter, limits)
        return Outcome(
            task.name,
            task.kind,
            task.language,
            solved,
            task.is_solved(alone),
            with_ctx,
            without,
        )


# The model


@contextmanager
def local_server(options: argparse.Namespace, space: Path) -> Iterator[None]:
    """The small model for `--backend local`, as a server of llama.cpp."""
    if options.backend != "local":
        yield
        return
    with llama.running(space / "llama") as server:
        options.server = server.url
        yield


def chosen_model(options: argparse.Namespace, task: Task, space: Path) -> Backend:
    """The backend that the options name. Keys and time limits come from the user's settings."""
    if options.backend == "scripted":
        return ScriptedModel(task)
    name = "llama_cpp" if options.backend == "local" else options.backend
    overrides = [f"llm.model={options.model}"] if options.model else []
    home = os.environ.get("CTX_HOME") or os.path.expanduser("~/.ctx")
    config = resolve.survey(os.path.join(home, "config.toml"), None, os.environ, overrides)
    return backends.named_backend(name, options.server, config, os.environ, str(space))


# The table


class Measure(NamedTuple):
    """One number for each task, the mean of its rounds."""

    name: str
    with_ctx: Sequence[float]
    without: Sequence[float]

    def shown(self, interval: Interval) -> str:
        scale, digits, unit = _FORMATS[self.name]
        mean, low, high = (f"{scale * value:,.{digits}f}" for value in interval)
        return f"{mean}{unit} [{low}, {high}]"


def share(values: Sequence[float]) -> Interval:
    """A share with Wilson's interval. A bootstrap would show none if all values are the same."""
    count, mean = len(values), paired.mean(values)
    if not count:
        return Interval(0.0, 0.0, 0.0)
    middle = (mean + _Z * _Z / (2 * count)) / (1 + _Z * _Z / count)
    spread = _Z / (1 + _Z * _Z / count)
    spread *= sqrt(mean * (1 - mean) / count + _Z * _Z / (4 * count * count))
    return Interval(mean, max(0.0, middle - spread), min(1.0, middle + spread))


_Z = 1.96
_FORMATS = {"success": (100, 0, " %"), "tokens": (1, 0, ""), "turns": (1, 1, "")}


def measures(outcomes: Sequence[Outcome]) -> list[Measure]:
    by_task: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_task.setdefault(outcome.task, []).append(outcome)

    def means(number: Callable[[Outcome], float]) -> list[float]:
        return [paired.mean([number(each) for each in rounds]) for rounds in by_task.values()]

    return [
        Measure(
            "success",
            means(lambda each: each.is_solved_with),
            means(lambda each: each.is_solved_without),
        ),
        Measure(
            "tokens",
            means(lambda each: each.with_ctx.tokens),
            means(lambda each: each.without.tokens),
        ),
        Measure(
            "turns", means(lambda each: each.with_ctx.turns), means(lambda each: each.without.turns)
        ),
    ]


def print_report(outcomes: Sequence[Outcome], options: argparse.Namespace) -> None:
    found = measures(outcomes)
    success = found[0]
    model = MODELS.get(options.backend, options.model or options.backend)
    tasks = f"{len(success.with_ctx)} tasks, {options.rounds} × each"
    rows = []
    for each in found:
        interval = share if each is success else paired.interval
        intervals = (
            interval(each.with_ctx),
            interval(each.without),
            paired.gain(each.with_ctx, each.without),
        )
        rows.append([f"{model}, {tasks}: {each.name}", *map(each.shown, intervals)])
    columns = ["mean [95 % interval]", "with ctx", "without", "difference"]
    table = report.Table(f"tasks-{options.backend}", columns, rows)
    command = f"python -m bench tasks --backend {options.backend}"
    if options.only:
        command += f" --only {' '.join(options.only)}"
    report.show_table(table, command)
    differing = paired.differing(success.with_ctx, success.without)
    print(
        f"\nTasks solved more often with ctx: {differing.won}; without: {differing.lost}."
        f" Sign test: p = {differing.p:.2g}"
    )
    for kind in sorted({each.kind for each in outcomes}):
        of_kind = [each for each in outcomes if each.kind == kind]
        solved = sum(each.is_solved_with for each in of_kind)
        alone = sum(each.is_solved_without for each in of_kind)
        print(f"  {kind:<12} {solved} of {len(of_kind)} with ctx, {alone} without")
    if options.backend == "local":
        print("\nThis model is far too small for these tasks. The figures mean little.")


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        **outcome._asdict(),
        "with_ctx": outcome.with_ctx._asdict(),
        "without": outcome.without._asdict(),
    }


def main() -> int:
    tasks = all_tasks()
    parser = argparse.ArgumentParser(
        prog="python -m bench tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--backend", choices=BACKENDS, default="scripted")
    parser.add_argument("--server", default="", metavar="URL", help="the address of the model")
    parser.add_argument("--model", default="", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=1, help="how often to play each task")
    parser.add_argument("--only", nargs="+", metavar="TASK", choices=[task.name for task in tasks])
    parser.add_argument("--turns", type=int, help="the most answers in a session")
    parser.add_argument("--token-cap", type=int, default=MOST_TOKENS, help="stop at this many")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    options = parser.parse_args()
    if options.backend == "local" and (reason := llama.missing()):
        print(reason)
        return 1
    limits = LOCAL_LIMITS if options.backend == "local" else LIMITS
    limits = limits._replace(turns=options.turns or limits.turns)
    chosen = [task for task in tasks if not options.only or task.name in options.only]
    try:
        outcomes = list(played(options, chosen, limits))
    except CtxError as error:
        print(f"{error.message} {error.hint or ''}")
        return 1
    print_report(outcomes, options)
    if options.json:
        options.json.write_text(json.dumps([as_json(each) for each in outcomes], indent=1) + "\n")
    return 0


def played(options: argparse.Namespace, tasks: Sequence[Task], limits: Limits) -> Iterator[Outcome]:
    """Every task in every round; each outcome is printed as it comes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(f"{folder}/ledger.db") as ledger,
        local_server(options, Path(folder)),
    ):
        for number, task in product(range(options.rounds), tasks):
            with closing(chosen_model(options, task, Path(folder))) as backend:
                target = ModelTarget(backend.name, backend.where, backend.model)
                caps = Caps(options.token_cap)
                meter = ledger.meter(Purpose("llm"), target, caps, Prices(()))
                outcome = play(task, backend, meter, limits)
            print(f"{number + 1}  {task.name:<24}{described(outcome)}", flush=True)
            yield outcome


def described(outcome: Outcome) -> str:
    sides = (
        ("with ctx", outcome.is_solved_with, outcome.with_ctx),
        ("without", outcome.is_solved_without, outcome.without),
    )
    return "; ".join(
        f"{name}: {'solved' if solved else 'not solved'}, {attempt.turns} turns,"
        f" {attempt.tokens:,} tokens{f' ({attempt.problem})' if attempt.problem else ''}"
        for name, solved, attempt in sides
    )


if __name__ == "__main__":
    raise SystemExit(main())
