"""What runs inside pytest: writes which test executed which fault, and runs the tests of a plan.

It is copied beside the packages of a copy of the tree, so it imports nothing from there. The plan
is a JSON file with:

    report    the file for one line of JSON for each test
    executed  the file that all processes mark executed faults in; empty if nothing is recorded
    tests     the tests to run, with the seconds that each may take; all if empty
"""

import json
import os
import resource
import sys
import time
from collections.abc import Generator, Iterator
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest

PLAN = "CTX_FAULTS_PLAN"
_MOST_MEMORY = 6 * 1024**3


def pytest_configure(config: pytest.Config) -> None:
    # A fault may fill the memory.
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    plan = json.loads(Path(os.environ.pop(PLAN)).read_text("utf-8"))
    config.pluginmanager.register(_Reporter(plan))
    if plan["executed"]:
        config.pluginmanager.register(_Recorder(plan))


class _Reporter:
    """Runs the tests of the plan, each within its time, and writes those that fail."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._tests: dict[str, float] = plan["tests"]
        self._path = plan["report"]

    def _write(self, **line: object) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests:
            items[:] = [item for item in items if item.nodeid in self._tests]
            for item in items:
                item.add_marker(pytest.mark.timeout(self._tests[item.nodeid]))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(failed=report.nodeid, how=str(report.longrepr)[-300:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(started=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            how = crash.message if crash else str(report.longrepr)
            self._write(failed=report.nodeid, how=how[:300])


class _Recorder:
    """Writes the faults that each test executes, also those of the fixtures that it shares."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._path = plan["report"]
        with open(plan["executed"], "r+b") as file:
            self._memory = mmap(file.fileno(), 0)
        self._shared: dict[object, set[int]] = {}
        self._file: Path | None = None

    def _take(self) -> set[int]:
        content = self._memory[:]
        self._memory[:] = bytes(len(content))
        return {number for number, byte in enumerate(content) if byte}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        before = self._take()
        result = yield
        during = self._take()
        self._shared.setdefault(fixturedef, set()).update(during)
        for number in before | during:
            self._memory[number] = 1
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if item.path != self._file:
            # What another file has computed before would not be executed here.
            self._file = item.path
            _clear_caches()
        self._take()
        started = time.perf_counter()
        result = yield
        executed = self._take()
        for fixtures in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
            for fixture in fixtures:
                executed |= self._shared.get(fixture, set())
        line = {
            "test": item.nodeid,
            "seconds": round(time.perf_counter() - started, 3),
            "executed": sorted(executed),
        }
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return result


def _clear_caches() -> None:
    for value in _values_of_ctx():
        if hasattr(value, "cache_clear") and hasattr(value, "cache_info"):
            value.cache_clear()


def _values_of_ctx() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        if name.startswith("ctx."):
            yield from list(vars(module).values())
