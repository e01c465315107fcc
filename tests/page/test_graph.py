"""The graph: as a drawing, as a picture, as tables, and through the API."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import Ctx
from tests.page.served import Served
from tests.page.visits import HOSTILE, base_of, watch
from tests.worker.worker_processes import until


@pytest.fixture
def graph(served: Served, ctx: Ctx, project: Path) -> Served:
    """Two decisions that depend on each other, a fact about a file, and a file that is imported."""
    (project / "app.py").write_text("import store\n\ndef run():\n    store.save()\n")
    (project / "store.py").write_text("def save():\n    pass\n")
    one = ctx("add", "--type=decision", "Use sockets", "--format=json").json["node"]["id"]
    other = ctx("add", "--type=decision", "Use threads", "--format=json").json["node"]["id"]
    ctx("link", one, other, "--type=DEPENDS_ON")
    ctx("link", other, one, "--type=DEPENDS_ON")
    ctx("add", "--type=fact", HOSTILE, "--tag=topic:hostile")
    assert ctx("code", "index").code == 0
    return served


@pytest.fixture
def visitor(graph: Served) -> Iterator[httpx.Client]:
    with graph.visitor() as client:
        client.base_url = client.base_url.join(base_of(client))
        yield client


def read(graph: Served, **parameters: str) -> Any:
    with graph.program() as program:
        answer = program.get("/api/v1/graph", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()


def labels(drawn: Any) -> set[str]:
    return {vertex["label"] for vertex in drawn["vertices"]}


def test_what_is_drawn(graph: Served) -> None:
    drawn = read(graph)
    vertices = drawn["vertices"]
    edges = {
        (vertices[edge["source"]]["label"], edge["type"], vertices[edge["target"]]["label"])
        for edge in drawn["edges"]
    }
    assert ("app.py", "IMPORTS", "store.py") in edges
    assert ("Use sockets", "DEPENDS_ON", "Use threads") in edges
    assert drawn["cycles"] == 1
    assert {each["label"] for each in vertices if each["cycle"]} == {"Use sockets", "Use threads"}
    assert {each["type"] for each in drawn["edges"] if each["in_cycle"]} == {"DEPENDS_ON"}
    assert len({(each["x"], each["y"]) for each in vertices}) == len(vertices)
    assert drawn == read(graph)

    (label,) = labels(read(graph, tag="topic:hostile"))
    assert "\u202e" not in label
    assert labels(read(graph, type="decision")) == {"Use sockets", "Use threads"}
    assert "Use sockets" in labels(read(graph, days="7"))
    assert len(read(graph, limit="1")["vertices"]) == 1
    with graph.program() as program:
        for wrong in ({"type": "x"}, {"limit": "0"}, {"depth": "99"}, {"nope": "1"}):
            assert program.get("/api/v1/graph", params=wrong).status_code == 400, wrong
        assert program.get("/api/v1/graph", params={"node": "nowhere"}).status_code == 404

    (node,) = [each["node"] for each in vertices if each["label"] == "Use sockets"]
    assert labels(read(graph, node=node, depth="1")) == {"Use sockets", "Use threads"}
    around = read(graph, node="app.py", depth="1")
    assert around["start"] == "file:app.py"
    assert {"app.py", "store.py", "app.run"} <= labels(around)


def test_what_the_newest_nodes_mention_is_drawn_too(graph: Served, ctx: Ctx) -> None:
    for number in range(20):
        made = ctx("add", "--type=fact", f"Fact {number}", "--format=json").json["node"]["id"]
        ctx("relate", made, "MENTIONS", "app.py" if number % 2 else "store.py")
    drawn = read(graph, limit="10")
    assert len(drawn["vertices"]) == 10
    assert {"app.py", "store.py", "Fact 19"} <= labels(drawn)


def test_the_picture_is_svg_without_script(visitor: httpx.Client) -> None:
    answer = visitor.get("graph.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "attachment" in answer.headers["content-disposition"]
    root = ElementTree.fromstring(answer.content)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names <= {"svg", "title", "rect", "path", "circle", "text"}
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on")]
    assert "Use sockets" in "".join(root.itertext())
    assert "\u202e" not in answer.text


def test_without_javascript_there_are_tables_and_a_picture(visitor: httpx.Client) -> None:
    page = visitor.get("graph").text
    assert re.search(r'<noscript>\s*<a href="../../p/[^"]+/graph\.svg\?"><img', page)
    assert page.count("<th scope=") == 7
    assert "Use sockets</a>" in page
    assert "DEPENDS_ON" in page
    assert "<script>alert" not in page
    assert "onerror=alert(2)>" not in page.replace("&gt;", "")
    filtered = visitor.get("graph", params={"type": "decision"}).text
    assert "app.py" not in filtered
    assert "2 nodes" in filtered
    for wrong, status in (({"node": "nowhere"}, 404), ({"type": "nonsense"}, 400)):
        answer = visitor.get("graph", params={**wrong, "tag": "topic:kept"})
        assert answer.status_code == status
        assert 'role="alert"' in answer.text
        assert 'value="topic:kept"' in answer.text, "what was typed stays"


def test_an_empty_graph_says_what_to_do(served: Served) -> None:
    with served.visitor() as client:
        start = base_of(client)
        page = client.get(f"{start}/graph").text
    assert "nothing to draw yet" in page
    assert "ctx add" in page


def open_graph(served: Served, browser: Browser, query: str = "") -> tuple[Page, list[str]]:
    page = served.open(browser)
    problems = watch(page)
    page.goto(page.url.replace("/now", f"/graph{query}"))
    expect(page.locator(".stage[data-painted]")).to_be_attached()
    return page, problems


def test_the_drawing_is_used_with_the_keyboard(graph: Served, browser: Browser) -> None:
    page, problems = open_graph(graph, browser)
    stage = page.locator(".stage")
    stage.focus()
    before = stage.screenshot()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    until(lambda: stage.screenshot() != before)
    page.locator("#graph-find").fill("sockets")
    expect(page.locator(".graph-list button")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    chosen = page.locator(".chosen-node")
    expect(chosen.locator("h2")).to_have_text("Use sockets")
    expect(chosen).to_contain_text("depends on: Use threads")
    chosen.get_by_role("link", name="Open").click()
    expect(page).to_have_url(re.compile(r"/node/"))
    assert problems == []
    page.context.close()


def test_a_node_can_be_dragged_and_the_drawing_moved(graph: Served, browser: Browser) -> None:
    page, problems = open_graph(graph, browser, "?type=decision")
    box = page.locator(".stage").bounding_box()
    assert box is not None
    listed = page.locator(".graph-list button", has_text="Use sockets")
    place = listed.bounding_box()
    listed.click()
    expect(page.locator(".chosen-node h2")).to_have_text("Use sockets")
    assert listed.bounding_box() == place, "it stays below the pointer"
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 120, middle[1] + 60, steps=4)
    page.mouse.up()
    page.mouse.click(box["x"] + 10, box["y"] + 10)
    expect(page.locator(".chosen-node")).to_contain_text("Choose a node")
    page.mouse.click(middle[0] + 120, middle[1] + 60)
    expect(page.locator(".chosen-node h2")).to_have_text("Use sockets")
    assert problems == []
    page.context.close()


def test_the_drawing_follows_memory(graph: Served, ctx: Ctx, browser: Browser) -> None:
    page, problems = open_graph(graph, browser)
    page.locator("#graph-find").fill("Queue the mail")
    expect(page.locator(".graph-list")).to_contain_text("No node matches")
    page.locator("#graph-find").fill("")
    page.locator(".stage").focus()
    ctx("add", "--type=decision", "Queue the mail")
    expect(page.locator(".graph-list")).to_contain_text("Queue the mail")
    assert problems == []
    page.context.close()
