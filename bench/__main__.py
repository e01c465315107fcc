"""Run all benchmarks, or one of them, each in its own process.

python -m bench [NAME [ARGUMENTS]]
"""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
NOT_BENCHMARKS = {
    *("__init__", "__main__", "judge", "timing", "try_it"),
    *("baselines", "checkouts", "conversations", "dated_questions", "packs", "paired"),
    *("plots", "scale_code", "scale_memory", "scale_stores"),
    *("session_ablations", "session_evidence", "task_agent", "task_script", "two_session_tasks"),
    *("secret_encodings", "secret_passwords", "secret_values"),
}

NEED_DATA = {"localisation", "peers", "recall", "sessions"}
"""They need external data, so they run only if they are named."""


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
    match sys.argv[1:]:
        case []:
            codes = [run(name, []) for name in names() if name not in NEED_DATA]
        case [name, *arguments] if name in names():
            codes = [run(name, arguments)]
        case [name, *_]:
            print(f"There is no benchmark {name!r}. There are: {', '.join(names())}.")
            return 2
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
