"""The graph of thousands of nodes in a browser without a GPU."""

import os
from pathlib import Path

from playwright.sync_api import Browser

from bench.page import DRAWN, EDGES, frames, make_store
from tests.page.served import Served


def test_5000_nodes_are_drawn_while_they_are_dragged(tmp_path: Path, browser: Browser) -> None:
    """`python -m bench page` has the time that a frame takes."""
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
    assert spent
