"""The HTTP API for nodes, searching, views and observing."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.page.served import Served
from tests.page.visits import base_of


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.program() as program:
        yield program


def api(client: httpx.Client, method: str, path: str, **options: object) -> httpx.Response:
    return client.request(method, f"/api/v1{path}", **options)  # type: ignore[arg-type]


def new(client: httpx.Client, content: str, **fields: object) -> str:
    answer = api(client, "POST", "/nodes", json={"content": content, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["node"]["id"])


def test_a_node_from_birth_to_death(client: httpx.Client) -> None:
    node = new(client, "Retries need a backoff.", type="decision", tags=["area:net"])
    shown = api(client, "GET", f"/nodes/{node}").json()
    assert shown["node"]["type"] == "decision"
    assert "area:net" in shown["node"]["tags"]
    assert not [tag for tag in shown["node"]["tags"] if tag.startswith("tier:")]
    assert shown["node"]["source"] == "agent", "a program is not the user"

    answer = api(client, "PATCH", f"/nodes/{node}", json={"summary": "Back off."})
    assert answer.json()["changed"] == ["summary"]
    tagged = api(
        client, "POST", f"/nodes/{node}/tags", json={"add": ["area:http"], "remove": ["area:net"]}
    ).json()
    assert (tagged["added"], tagged["removed"]) == (["area:http"], ["area:net"])

    other = new(client, "Calls fail now and then.")
    linked = api(
        client, "POST", f"/nodes/{node}/links", json={"to": other, "type": "depends-on"}
    ).json()
    assert linked["edge"]["type"] == "DEPENDS_ON"
    deleted = api(client, "DELETE", f"/nodes/{other}").json()
    assert [each["id"] for each in deleted["dependents"]] == [node]
    assert api(client, "GET", f"/nodes/{other}").status_code == 404
    assert api(client, "POST", f"/nodes/{other}/restore").json()["nodes"][0]["id"] == other
    undone = api(client, "POST", "/undo", json={}).json()
    assert undone["change"]["action"] == "restore"
    assert api(client, "GET", f"/nodes/{other}").status_code == 404


def test_superseding(client: httpx.Client) -> None:
    old = new(client, "Use XML.", type="decision")
    younger = new(client, "Use JSON.", supersedes=[old])
    shown = api(client, "GET", f"/nodes/{old}").json()["node"]
    assert shown["superseded_by"] == younger
    listed = api(client, "GET", "/nodes").json()["nodes"]
    assert old not in [each["id"] for each in listed]


def test_a_change_is_refused_if_the_node_has_changed(client: httpx.Client) -> None:
    node = new(client, "One.")
    tag = api(client, "GET", f"/nodes/{node}").headers["etag"]
    known = {"If-None-Match": tag}
    assert api(client, "GET", f"/nodes/{node}", headers=known).status_code == 304

    body = {"content": "Two."}
    headers = {"If-Match": tag}
    assert api(client, "PATCH", f"/nodes/{node}", json=body, headers=headers).status_code == 200
    refused = api(client, "PATCH", f"/nodes/{node}", json={"content": "X."}, headers=headers)
    assert refused.status_code == 412
    assert refused.json()["error"]["message"] == "It was changed since you read it."

    late = {"content": "Three.", "based_on": "One."}
    assert api(client, "PATCH", f"/nodes/{node}", json=late).status_code == 409
    late["based_on"] = "Two."
    assert api(client, "PATCH", f"/nodes/{node}", json=late).status_code == 200


def test_search_says_why(client: httpx.Client) -> None:
    new(client, "The gateway refuses connections after ten retries.")
    new(client, "Tea is better than coffee.")
    found = api(client, "GET", "/search", params={"q": "connection retry"}).json()
    assert found["order"] == "answers"
    [hit] = found["hits"]
    assert hit["words"] == ["connections", "retries"]
    assert [part["text"] for part in hit["excerpt"] if part["is_match"]] == hit["words"]
    assert hit["signals"]
    newest = api(client, "GET", "/search", params={"limit": 1}).json()
    assert (newest["order"], newest["total"], len(newest["hits"])) == ("newest", 2, 1)
    older = api(client, "GET", "/search", params={"limit": 1, "offset": 1}).json()
    assert older["hits"][0]["rank"] == 2
    assert older["hits"][0]["node"]["id"] < newest["hits"][0]["node"]["id"]


def test_a_mistake_in_a_query_has_its_position(client: httpx.Client) -> None:
    refused = api(client, "GET", "/search", params={"q": "typ:fact"})
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["code"] == "E022"
    assert error["detail"] == "  typ:fact\n  ^^^"


def test_completions(client: httpx.Client) -> None:
    new(client, "A fact.", tags=["area:login"])

    def offered(text: str) -> list[str]:
        answer = api(client, "GET", "/completions", params={"q": text, "at": len(text)}).json()
        return [each["value"] for each in answer["candidates"]]

    assert offered("ty") == ["type:"]
    assert offered("type:de") == ["decision"]
    assert offered("type:fact tag:ar") == ["area:login"]
    assert offered("defa") == ["tag:tier:pinned OR tag:tier:reference OR tag:tier:working"]


def test_views(client: httpx.Client) -> None:
    body = {"name": "login", "query": "tag:area:login"}
    assert api(client, "POST", "/views", json=body).json()["changed"]
    other = {**body, "query": "type:fact"}
    assert api(client, "POST", "/views", json=other).status_code == 400
    assert api(client, "POST", "/views", json={**other, "replace": True}).json()["changed"]
    names = [each["name"] for each in api(client, "GET", "/views").json()["views"]]
    assert names == ["default", "login"]
    assert api(client, "DELETE", "/views/login").status_code == 200
    assert api(client, "DELETE", "/views/login").status_code == 404


def test_observing(client: httpx.Client, project: Path) -> None:
    (project / "main.py").write_text("print('hello')\n")
    events = [
        {"kind": "file_read", "path": "main.py"},
        {"kind": "file_write", "path": "new.py", "content": "x = 1\n"},
        {"kind": "file_read", "path": "../../etc/passwd"},
        {"kind": "command", "command": "pytest -q", "output": "1 passed", "exit_code": 0},
        {"kind": "note", "text": "The tests need a network."},
    ]
    nowhere = {"kind": "file_read", "path": "\0"}
    for refused in ([], [{"kind": "shout"}], [{"kind": "note"}], [nowhere]):
        assert api(client, "POST", "/events", json={"events": refused}).status_code == 400
    answer = api(client, "POST", "/events", json={"events": events[:2], "session": "mine"})
    assert answer.status_code == 200, answer.text
    kept = answer.json()
    assert (kept["session"], kept["files"]) == ("mine", ["main.py", "new.py"])
    kept = api(client, "POST", "/events", json={"events": events[3:]}).json()
    assert len(kept["nodes"]) == 2
    outside = api(client, "POST", "/events", json={"events": events[2:3]})
    assert outside.status_code == 400 or outside.json()["not_kept"], outside.text
    notes = api(client, "GET", "/search", params={"q": "tag:note"}).json()["hits"]
    assert [hit["node"]["source"] for hit in notes] == ["agent"]


REFUSED: list[tuple[str, str, object]] = [
    ("POST", "/nodes", {"content": ""}),
    ("POST", "/nodes", {"content": "x", "more": 1}),
    ("POST", "/nodes", {"content": "x", "type": "poem"}),
    ("POST", "/nodes", {"content": "\x00"}),
    ("POST", "/nodes", {"content": "x", "tags": ["a b"]}),
    ("POST", "/nodes", {"content": "x", "supersedes": ["nothing"]}),
    ("PATCH", "/nodes/01", {"content": "x"}),
    ("GET", "/nodes?limit=0", None),
    ("GET", "/nodes?type=poem", None),
    ("GET", "/search?offset=-1", None),
    ("GET", "/completions?at=x", None),
    ("POST", "/views", {"name": "a b", "query": "x"}),
    ("POST", "/views", {"name": "a", "query": "typ:x"}),
    ("DELETE", "/views/default", None),
]


def test_what_is_refused(client: httpx.Client) -> None:
    for method, path, body in REFUSED:
        answer = api(client, method, path, json=body)
        assert answer.status_code in (400, 404), (path, body, answer.text)
        assert answer.json()["error"]["message"]


def test_a_program_is_no_person(served: Served) -> None:
    """What only a person may do: pin, write for all projects, and say who said something."""
    with served.program() as program, served.visitor() as visitor:
        made = program.post("/api/v1/nodes", json={"content": "A fact."}).json()["node"]
        assert made["source"] == "agent"
        node = f"/api/v1/nodes/{made['id']}"
        for answer in (
            program.post("/api/v1/nodes", json={"content": "A rule.", "everywhere": True}),
            program.post("/api/v1/nodes", json={"content": "A rule.", "tags": ["tier:pinned"]}),
            program.post(f"{node}/tags", json={"add": ["tier:pinned"]}),
            program.patch(node, json={"metadata": {"source": "user"}}),
            program.patch(node, json={"metadata": {"": "x"}}),
            program.patch(node, json={"metadata": {"a\0": "x"}}),
            program.post(f"{node}/tags", json={"remove": ["a:b"], "add": ["bad tag\n"]}),
        ):
            assert answer.status_code == 400, answer.text
        assert program.get(node).json()["node"]["source"] == "agent"
        base = base_of(visitor)
        assert program.post(f"{base}/now", data={"do": f"pin {made['id']}"}).status_code == 403
        assert program.get("/api/v1/nodes", params={"project": "/no/where"}).status_code == 400
        program.get("/api/v1/nodes", params={"project": "/usr"})
        assert ">/usr<" not in visitor.get(f"{base}/now").text
