"""The graph of thousands of nodes in a browser without a GPU."""

import os
from pathlib import Path

from playwright.sync_api import Browser, expect

from bench.page import DRAWN, EDGES, make_store
from tests.page.served import Served
from tests.worker.worker_processes import until


def test_5000_nodes_are_drawn_while_they_are_dragged(tmp_path: Path, browser: Browser) -> None:
    """`python -m bench page` has the time that a frame takes."""
    make_store(Path(os.environ["HOME"], ".ctx"), DRAWN)
    folder = tmp_path / "work"
    folder.mkdir()
    with Served(folder) as served:
        with served.program() as program:
            drawn = program.get("/api/v1/graph", params={"limit": DRAWN}).json()
        page = served.open(browser)
        page.goto(page.url.replace("/now", f"/graph?limit={DRAWN}"))
        expect(page.locator(".stage[data-painted]")).to_be_attached()
        stage = page.locator(".stage")
        before, box = stage.screenshot(), stage.bounding_box()
        assert box is not None
        # A corner without a node, so that the drawing is moved and not a node.
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 185, box["y"] + 95, steps=10)
        until(lambda: stage.screenshot() != before)
        page.mouse.up()
        page.context.close()
    assert len(drawn["vertices"]) == DRAWN
    assert len(drawn["edges"]) >= EDGES
