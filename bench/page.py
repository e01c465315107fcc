"""The page in a real browser: first paint and bytes of each view, and the frames of the graph.

The store has 10,000 nodes; the graph draws 5,000 of them with 10,000 edges. There is no GPU.

First paint: from the start of the navigation, and all bytes that the server sends for it, without
those in the cache of the browser. Frames: the graph is dragged with the mouse, and the browser's
own trace has the CPU time of its main thread for each frame.

    python -m bench page [ROUNDS]
"""

import json
import random
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench import report, scale_stores
from bench.mcp import environment
from bench.timing import Figure, ms
from ctx import ids
from ctx.ids import NodeId, Ulid
from ctx.memory import records
from ctx.memory.records import Record
from ctx.page import layout_process
from ctx.page.views import NAVIGATION, ROUTES
from tests.installed import program
from tests.page.served import Served

NODES = 10_000
DRAWN = 5_000
EDGES = 10_000
ROUNDS = 9
STEPS = 90
PAINT_LIMIT = "300 ms"
BYTES_LIMIT = "150 KB"
FRAME_LIMIT = "33 ms"
FRAME = "main thread for one frame while panning, CPU"
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
# The policy of the page forbids to wait for an expression.
_FIRST_PAINT = """
() => new Promise((resolve) =>
  new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
    .observe({ type: "paint", buffered: true }))
"""
_CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]


def make_store(home: Path, nodes: int = NODES) -> None:
    """A store in which the newest nodes have as many edges as are drawn."""
    made = list(scale_stores.statements(nodes, nodes))
    newest = [each.subject for each in made if each.kind == "node.put"][-DRAWN:]
    drawn = set(newest)
    pairs = {
        (each.subject, each.target)
        for each in made
        if each.kind == "edge.put" and each.subject in drawn and each.target in drawn
    }
    rng = random.Random(9)
    while len(pairs) < EDGES:
        # Most neighbours are near each other, as nodes of one session are.
        here = rng.randrange(DRAWN)
        there = max(0, min(DRAWN - 1, here + int(rng.gauss(0, 60))))
        pair = newest[here], newest[there]
        if here != there and pair not in pairs:
            pairs.add(pair)
            key = records.edge_key("RELATES_TO", NodeId(Ulid(pair[1])))
            stamp, change = made[-1].stamp, made[-1].change
            edge = "import", "edge.put", pair[0], key, pair[1]
            made.append(Record(ids.new_ulid(), stamp, change, *edge, {}, "", "bench"))
    scale_stores.build_store(home / "store.db", made)


class Load(NamedTuple):
    paint: float
    """In seconds."""
    bytes: int


@contextmanager
def cold_page(browser: Browser) -> Iterator[tuple[Page, CDPSession]]:
    """A tab with nothing in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    yield page, session
    context.close()


def load(browser: Browser, address: str) -> Load:
    with cold_page(browser) as (page, session):
        sizes: dict[str, int] = {}

        def finished(event: dict[str, Any]) -> None:
            sizes[event["requestId"]] = event["encodedDataLength"]

        session.on("Network.loadingFinished", finished)
        page.goto(address, wait_until="load")
        return Load(page.evaluate(_FIRST_PAINT) / 1000, sum(sizes.values()))


def frames(browser: Browser, address: str) -> list[float]:
    """The time of the main thread for each frame while the graph is dragged, in seconds."""
    with cold_page(browser) as (page, _):
        page.goto(address)
        page.locator(".stage[data-painted]").wait_for(timeout=60_000)
        page.wait_for_timeout(500)
        box = page.locator(".stage").bounding_box()
        assert box is not None
        for _ in range(4):
            page.get_by_role("button", name="Zoom in").click()
        page.wait_for_timeout(800)
        browser.start_tracing(page=page, categories=_CATEGORIES)
        # A corner without a node, so that the drawing is moved and not a node.
        x, y = box["x"] + 5, box["y"] + 5
        page.mouse.move(x, y)
        page.mouse.down()
        for step in range(STEPS):
            page.mouse.move(x + 6 * step, y + 3 * step)
            page.wait_for_timeout(10)
        page.mouse.up()
        trace = json.loads(browser.stop_tracing())
    return _frame_times(trace["traceEvents"])


def _frame_times(events: list[dict[str, Any]]) -> list[float]:
    """For each frame the CPU time of the main thread that drew the most."""
    by_thread: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events:
        by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    mains = [
        by_thread[event["pid"], event["tid"]]
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    ]
    own = max(mains, key=len)
    ends = sorted(event["ts"] for event in own if event["name"] == "Commit")
    spent = [0.0] * (len(ends) + 1)
    for event in own:
        if event["name"] == "RunTask" and "tdur" in event:
            spent[bisect(ends, event["ts"])] += event["tdur"] / 1_000_000
    return spent


def layout_time() -> float:
    rng = random.Random(4)
    pairs = []
    for _ in range(EDGES):
        here = rng.randrange(DRAWN)
        pairs.append((here, max(0, min(DRAWN - 1, here + int(rng.gauss(0, 60))))))
    began = time.perf_counter()
    layout_process.layout(DRAWN, layout_process.edge_set(pairs))
    return time.perf_counter() - began


def figures(browser: Browser, served: Served, rounds: int) -> list[Figure]:
    first = served.open(browser)
    base = first.url.removesuffix("/now")
    routes = {route.path for route in ROUTES if route.method == "GET"}
    views = [(entry.label, entry.path) for entry in NAVIGATION if entry.path in routes]
    lines = []
    for name, path in [*views, (f"Graph of {DRAWN:,} nodes", f"/graph?limit={DRAWN}")]:
        loads = [load(browser, f"{base}{path}") for _ in range(rounds + 1)][1:]
        paint, size = median(each.paint for each in loads), max(each.bytes for each in loads)
        limits = (PAINT_LIMIT, BYTES_LIMIT) if (name, path) in views else ("", "")
        lines.append(Figure(f"first paint: {name}", f"{1000 * paint:.0f} ms", limit=limits[0]))
        lines.append(Figure(f"bytes: {name}", f"{size / 1000:.0f} KB", limit=limits[1]))
    spent = [each for _ in range(rounds) for each in frames(browser, f"{base}/graph?limit={DRAWN}")]
    worst = quantiles(spent, n=100)
    lines += [
        Figure("lay out the graph on the server", f"{layout_time():.1f} s", limit="5 s"),
        Figure(f"{FRAME}, median of {len(spent)}", ms(median(spent)), limit=FRAME_LIMIT),
        Figure(f"{FRAME}, 99 %", ms(worst[98]), limit=FRAME_LIMIT),
        Figure(f"{FRAME}, longest", ms(max(spent)), limit=FRAME_LIMIT),
    ]
    first.context.close()
    return sorted(lines, key=lambda line: line.name.partition(":")[0] == "bytes")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as space, sync_playwright() as playwright:
        make_store(Path(space, ".ctx"))
        folder = Path(space, "work")
        folder.mkdir()
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=_OPTIONS)
        with Served(folder, **environment(space)) as served:
            lines = figures(browser, served, rounds)
        browser.close()
    note = f"Chromium without a GPU, a store of {NODES:,} nodes; the graph of {DRAWN:,} nodes has"
    report.show("page", lines, f"{note} {EDGES:,} edges; medians of {rounds} rounds")


if __name__ == "__main__":
    main()
