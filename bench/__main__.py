"""Run all benchmarks, or one of them, each in its own process.

    python -m bench [--write] [--full] [NAME [ARGUMENTS]]

Without a name, it runs those that need no external data and end within minutes. `--full` also runs
those that take longer. `--write` writes the tables to docs/figures, the plots to docs/plots, and
both to docs/benchmarks.md. Without it, a run only prints, so you can try smaller sizes.
"""

import subprocess
import sys
import time
from pathlib import Path

from bench import report

HERE = Path(__file__).parent
NOT_BENCHMARKS = {
    *("__init__", "__main__", "judge", "report", "timing"),
    *("baselines", "checkouts", "code_index", "conversations", "dated_questions", "history_tasks"),
    *("pack_lines", "packs", "paired"),
    *("plots", "scale_code", "scale_memory", "scale_stores"),
    *("session_ablations", "session_evidence", "task_agent", "task_script", "two_session_tasks"),
    *("secret_encodings", "secret_passwords", "secret_values", "trials"),
}

NEED_DATA = {
    *("calls", "code", "experience", "gold", "localisation", "peers", "query", "recall"),
    *("sessions", "starts"),
    "subjects",
}
"""They need external data, so they run only if they are named."""

LONG = {"faults", "scale", "team", "year"}
"""They take long or need gigabytes of disk, so they run only if named, or with `--full`."""


def names() -> list[str]:
    modules = {path.stem for path in HERE.glob("*.py")}
    packages = {path.parent.name for path in HERE.glob("*/__main__.py")}
    return sorted((modules | packages) - NOT_BENCHMARKS)


def run(name: str, arguments: list[str]) -> int:
    """Run it in a fresh process, so that no benchmark affects the next."""
    print(f"\n== {name}", flush=True)
    started = time.perf_counter()
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    code = subprocess.run(command, cwd=HERE.parent, check=False).returncode
    outcome = "done" if code == 0 else f"could not run (exit code {code})"
    print(f"   {outcome} in {time.perf_counter() - started:.0f} s", flush=True)
    return code


def main() -> int:
    arguments = [word for word in sys.argv[1:] if word not in ("--write", "--full")]
    if "--write" in sys.argv:
        report.start_writing()
    match arguments:
        case []:
            left_out = NEED_DATA if "--full" in sys.argv else NEED_DATA | LONG
            codes = [run(name, []) for name in names() if name not in left_out]
            print(f"\nnot run: {', '.join(sorted(left_out))}")
        case ["report"]:
            report.fill_pages()
            return 0
        case [name, *rest] if name in names():
            codes = [run(name, rest)]
        case [name, *_]:
            print(f"There is no benchmark {name!r}. There are: {', '.join(names())}.")
            return 2
    if "--write" in sys.argv:
        report.fill_pages()
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
