"""The graph of thousands of nodes in a browser without a GPU."""

import os
from pathlib import Path

from playwright.sync_api import Browser

from bench.page import DRAWN, EDGES, frames, make_store
from tests.page.served import Served

_MOST_S = 0.033


def test_panning_5000_nodes_leaves_the_main_thread_free(tmp_path: Path, browser: Browser) -> None:
    """The browser's own trace has the CPU time of its main thread for each frame."""
    make_store(Path(os.environ["HOME"], ".ctx"), DRAWN)
    folder = tmp_path / "work"
    folder.mkdir()
    with Served(folder) as served:
        with served.program() as program:
            drawn = program.get("/api/v1/graph", params={"limit": DRAWN}).json()
        page = served.open(browser)
        base, state = page.url.removesuffix("/now"), page.context.storage_state()
        page.context.close()
        spent = frames(browser, state, f"{base}/graph?limit={DRAWN}")
    assert len(drawn["vertices"]) == DRAWN
    assert len(drawn["edges"]) >= EDGES
    assert len(spent) > 20
    assert max(spent) < _MOST_S
