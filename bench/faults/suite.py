"""The tests of a tree, run in copies of it.

A copy is a clone of the last commit with a virtual environment of its own, so that the commands and
hooks that tests start run its code. As root on Linux, the tests of a copy can change only the copy
and temporary files, and all their processes end with them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple, TypeVar

from bench.faults import planted, plugin
from bench.faults.planted import Fault

T = TypeVar("T")

_PLUGIN = "ctx_faults_plugin"
_APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
_READ_ONLY = (
    'mount --bind "$0" "$0" && mount --bind /tmp /tmp && mount -o remount,bind,ro / '
    "&& mount -t tmpfs -o size=6g,mode=1777 tmpfs /dev/shm && mkdir -m 1777 /dev/shm/tmp "
    '|| exit 3; "$@"; exit $?'
)
_COMPILE = "import py_compile, sys; py_compile.compile(sys.argv[1], doraise=True)"
_SHARES = 8
"""The parts of the suite, which copies record in any order."""
_FIRST_FILES = (3, 12)
"""How many files of tests run in the first processes, as a start of pytest takes seconds."""


class RecordedTest(NamedTuple):
    name: str
    seconds: float
    executed: frozenset[int]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Ran(NamedTuple):
    """The first test that failed; nothing if all passed."""

    failed: str
    how: str
    is_complete: bool = True
    """Whether pytest ended by itself, with a result."""


_PASSED = Ran("", "")


class Copy:
    def __init__(self, tree: Path, folder: Path) -> None:
        self.root = folder / "tree"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True)
        subprocess.run(["git", "clone", "-q", "--shared", tree, self.root], check=True)
        if (tree / ".cache").exists():
            (self.root / ".cache").symlink_to((tree / ".cache").resolve())
        _copy_environment(tree, self.root)
        self.restore()

    def close(self) -> None:
        """End the tests that run. What they found is not known then."""
        self._is_closed = True
        if self._process and self._process.poll() is None:
            _end(self._process)

    def source(self, module: str) -> Path:
        return self.root / "src/ctx" / module

    def write(self, module: str, source: str) -> None:
        path = self.source(module)
        path.write_text(source, "utf-8")
        # A change within a second that keeps the size would not be noticed, and hooks that have to
        # compile it import more.
        self._python("-c", _COMPILE, str(path))

    def restore(self) -> None:
        """Take back all changes."""
        subprocess.run(["git", "checkout", "-q", "--", "src"], cwd=self.root, check=True)
        self._python("-m", "compileall", "-q", "-f", "src/ctx")

    def _python(self, *words: str) -> None:
        subprocess.run([str(self.root / ".venv/bin/python"), *words], cwd=self.root, check=True)

    def run(
        self,
        files: Iterable[str],
        tests: Mapping[str, float],
        limit_s: float,
        *,
        report: Path | None = None,
        executed: Path | None = None,
    ) -> Ran:
        """Run tests of some files: those that are named, up to the first that fails, or all."""
        report = report or self._folder / "report.jsonl"
        report.write_text("")
        plan = self._folder / "plan.json"
        plan.write_text(
            json.dumps({"report": str(report), "executed": str(executed or ""), "tests": tests})
        )
        words = [str(self.root / ".venv/bin/python"), "-m", "pytest", "-p", _PLUGIN]
        words += ["--timeout=900", *(["-x"] if tests else []), *files]
        environment = {
            "HOME": str(self._folder / "home"),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self._folder / "tmp"),
            plugin.PLAN: str(plan),
        }
        if _can_be_apart():
            environment["TMPDIR"] = "/dev/shm/tmp"  # noqa: S108 - seen by these tests alone
            words = [*_APART, "sh", "-c", _READ_ONLY, str(self._folder), *words]
        with open(self._folder / "output.txt", "ab") as output:
            process = self._process = subprocess.Popen(
                words,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        if self._is_closed:
            raise SystemExit("interrupted")
        return _outcome(report, code)


def _copy_environment(tree: Path, root: Path) -> None:
    """Copy the virtual environment, with the paths of its programs and of the package."""
    shutil.copytree(tree / ".venv", root / ".venv", symlinks=True)
    (packages,) = root.glob(".venv/lib/python*/site-packages")
    texts = [*packages.glob("*.pth"), *packages.glob("ctx_memory-*/*")]
    texts += [path for path in root.glob(".venv/bin/*") if not path.is_symlink()]
    before, after = os.fsencode(tree), os.fsencode(root)
    for path in texts:
        content = path.read_bytes() if path.is_file() else b""
        if before in content:
            path.write_bytes(content.replace(before, after))
    shutil.copy(plugin.__file__, packages / f"{_PLUGIN}.py")


def _can_be_apart() -> bool:
    if sys.platform != "linux" or not shutil.which("unshare"):
        return False
    return not subprocess.run([*_APART, "true"], capture_output=True, check=False).returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it has started. All processes of its own namespace end with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _outcome(report: Path, code: int | None) -> Ran:
    # 1: tests failed. 2: a file could not be collected. 5: there are no tests.
    is_complete = code in (0, 1, 2, 5)
    last = "tests/conftest.py"
    for text in report.read_text("utf-8").splitlines():
        line = json.loads(text)
        if "failed" in line:
            return Ran(line["failed"], line["how"], is_complete)
        last = line.get("started", last)
    if is_complete:
        return _PASSED
    how = "It does not end." if code is None else f"pytest ends with {code}."
    return Ran(last, how, is_complete)


# Which test executes which fault


class Recording:
    """Which tests execute the statements of which faults, as a file keeps it."""

    def __init__(self, path: Path) -> None:
        found = json.loads(path.read_text("utf-8"))
        self._numbers = {key: number for number, key in enumerate(found["faults"])}
        self.unreliable: set[str] = set(found["unreliable"])
        """Tests that fail without a fault."""
        self._tests = [
            RecordedTest(name, seconds, frozenset(executed))
            for name, seconds, executed in found["tests"]
        ]

    def has(self, faults: Iterable[Fault]) -> bool:
        return all(fault.key in self._numbers for fault in faults)

    def files(self, fault: Fault) -> list[Sequence[RecordedTest]]:
        """The tests that may find a fault, by file, the nearest first and then the quickest.

        Beside those that execute its statement, these are the other tests of near files: what one
        test has computed may be cached for the next.
        """
        number = self._numbers[fault.key]
        by_file: dict[str, list[RecordedTest]] = defaultdict(list)
        for test in self._tests:
            if test.name not in self.unreliable:
                by_file[test.file].append(test)
        chosen = []
        for file, tests in by_file.items():
            distance = _distance(file, fault)
            executing = [test for test in tests if number in test.executed]
            if distance == 0 or (distance == 1 and executing):
                chosen.append((distance, tests))
            elif executing:
                chosen.append((distance, executing))
        chosen.sort(key=lambda each: (each[0], sum(test.seconds for test in each[1])))
        return [tests for _, tests in chosen]


def _distance(file: str, fault: Fault) -> int:
    """0 for the tests named after the module, 1 for those of its package, 2 for others."""
    path = Path(file)
    if path.stem == f"test_{Path(fault.module).stem}":
        return 0
    module = Path(fault.module)
    return 1 if path.parts[1:2] == module.parts[:1] and len(module.parts) > 1 else 2


def record(copies: Sequence[Copy], faults: Sequence[Fault], folder: Path) -> None:
    """Run the whole suite once, and write which tests execute which faults."""
    memories = [_instrument(copy, faults) for copy in copies]
    files = _test_files(copies[0].root)
    reports = []

    def run(number: int, copy: Copy) -> None:
        report = folder / f"recorded-{number}.jsonl"
        executed = memories[copies.index(copy)]
        ran = copy.run(files[number::_SHARES], {}, 7200, report=report, executed=executed)
        if not ran.is_complete:
            raise SystemExit(f"{ran.failed}: {ran.how}")
        reports.append(report)

    share(copies, range(_SHARES), run)
    for copy in copies:
        copy.restore()
    lines = [
        json.loads(line) for report in reports for line in report.read_text("utf-8").splitlines()
    ]
    tests = [(line["test"], line["seconds"], line["executed"]) for line in lines if "test" in line]
    failed = {line["failed"] for line in lines if "failed" in line}
    found = {
        "faults": [fault.key for fault in faults],
        "unreliable": sorted(_failing_again(copies[0], failed)),
        "tests": sorted(tests),
    }
    (folder / "recording.json").write_text(json.dumps(found), "utf-8")


def share(copies: Sequence[Copy], items: Iterable[T], work: Callable[[T, Copy], None]) -> None:
    """Work on items, one in each copy at a time."""
    free: Queue[Copy] = Queue()
    for copy in copies:
        free.put(copy)

    def with_copy(item: T) -> None:
        copy = free.get()
        try:
            work(item, copy)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for done in [pool.submit(with_copy, item) for item in items]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.close()
            raise


def _instrument(copy: Copy, faults: Sequence[Fault]) -> Path:
    memory = copy.root.with_name("executed")
    memory.write_bytes(bytes(len(faults)))
    memory.chmod(0o666)
    by_module: dict[str, dict[int, Fault]] = defaultdict(dict)
    for number, fault in enumerate(faults):
        by_module[fault.module][number] = fault
    for module, numbered in by_module.items():
        source = copy.source(module).read_text("utf-8")
        copy.write(module, planted.recording(source, numbered, memory))
    return memory


def _test_files(root: Path) -> list[str]:
    files = (path.relative_to(root) for path in root.glob("tests/**/test_*.py"))
    return sorted(str(path) for path in files if "golden" not in path.parts)


def _failing_again(copy: Copy, failed: set[str]) -> set[str]:
    """Those of the tests that also fail in a tree that records nothing."""
    return {
        name
        for name in sorted(failed)
        if copy.run([name.partition("::")[0]], {name: 900}, 1800).failed
    }


# Find a fault


class Search(NamedTuple):
    found_by: str
    how: str
    tests: int
    """How many tests execute its statement or are near it."""
    seconds: float
    unreliable: tuple[str, ...] = ()


def find(copy: Copy, fault: Fault, recording: Recording) -> Search:
    """Plant a fault, and run the tests that may find it, up to the first that does."""
    started = time.perf_counter()
    clean = copy.source(fault.module).read_text("utf-8")
    changed = planted.planted(clean, fault)
    assert changed is not None
    waiting = recording.files(fault)
    total = sum(map(len, waiting))
    unreliable: list[str] = []
    ran = _PASSED
    counts = iter(_FIRST_FILES)
    while waiting and not ran.failed:
        count = next(counts, len(waiting))
        files, waiting = waiting[:count], waiting[count:]
        copy.write(fault.module, changed)
        try:
            ran = _run(copy, files)
        finally:
            copy.write(fault.module, clean)
        if ran.failed and not _passes(copy, ran.failed):
            # It says nothing, as it fails without the fault too.
            unreliable.append(ran.failed)
            waiting = [*_without(ran.failed, files), *waiting]
            ran = _PASSED
    seconds = round(time.perf_counter() - started, 1)
    return Search(ran.failed, ran.how, total, seconds, tuple(unreliable))


def _without(
    failed: str, files: Iterable[Sequence[RecordedTest]]
) -> Iterator[Sequence[RecordedTest]]:
    for tests in files:
        if left := [test for test in tests if failed not in (test.name, test.file)]:
            yield left


def _run(copy: Copy, files: Sequence[Sequence[RecordedTest]]) -> Ran:
    # A test that hangs is ended, also on a busy machine.
    tests = {test.name: 60 + 10 * test.seconds for each in files for test in each}
    usual = sum(test.seconds for each in files for test in each)
    return copy.run([each[0].file for each in files], tests, 600 + 5 * usual)


def _passes(copy: Copy, failed: str) -> bool:
    """Whether a test passes, or a file can be collected, without the fault."""
    return not copy.run([failed.partition("::")[0]], {failed: 900}, 1800).failed
