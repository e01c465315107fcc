"""The code: folders, files, and what memory knows about them."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import Ctx
from tests.page.served import Served
from tests.page.visits import HOSTILE, base_of, press, watch

HOSTILE_NAME = '"><img src=x onerror=alert(5)>.py'


@pytest.fixture
def filled(ctx: Ctx, project: Path) -> Path:
    """A project with two files, one of which memory warns about, and files that are not shown."""
    (project / "src").mkdir(exist_ok=True)
    (project / "src" / "app.py").write_text(
        'import store\n\ndef run(value):\n    """Run it."""\n    return store.save(value)\n'
    )
    (project / "src" / "store.py").write_text("def save(value):\n    return '</td><b>' + value\n")
    (project / "src" / HOSTILE_NAME).write_text("pass\n")
    (project / "src" / "long.py").write_text("".join(f"line_{n} = {n}\n" for n in range(1, 1001)))
    (project / ".env").write_text("PASSWORD=hunter2\n")
    (project / "ignored.txt").write_text("ignored secret\n")
    (project / ".gitignore").write_text("ignored.txt\n")
    os.symlink("/etc/passwd", project / "src" / "link.py")
    assert ctx("code", "index").code == 0
    added = ctx("add", "--type=observation", "--tag=kind:failure", HOSTILE, "--format=json")
    failure = added.json["node"]["id"]
    assert ctx("relate", failure, "MENTIONS", "src/store.py").code == 0
    rule = ctx(
        "add", "--type=observation", "--tag=kind:rule", "Never save twice", "--format=json"
    ).json["node"]["id"]
    assert ctx("relate", rule, "MENTIONS", "store.save").code == 0
    return project


@pytest.fixture
def code(filled: Path) -> Iterator[Served]:
    with Served(filled) as serving:
        yield serving


@pytest.fixture
def visitor(code: Served) -> Iterator[httpx.Client]:
    with code.visitor() as client:
        client.base_url = client.base_url.join(base_of(client))
        yield client


def test_a_folder_lists_files_and_trouble(visitor: httpx.Client) -> None:
    root = visitor.get("code").text
    assert ">src/</a>" in root
    page = visitor.get("code", params={"path": "src"}).text
    assert ">app.py</a>" in page
    assert page.count("<h1") == 1
    assert "Most trouble" in page
    assert 'class="heat-map"' in page
    assert "1 failures and fixes, 1 rules" in page
    assert "onerror=alert(5)&gt;" in page
    assert "<img" not in page


def test_a_file_has_callers_source_and_memory(visitor: httpx.Client) -> None:
    page = visitor.get("code/file", params={"path": "src/store.py"}).text
    assert "1 caller" in page
    assert "src/app.py:5" in page
    assert 'id="L2"' in page
    assert "&lt;/td&gt;&lt;b&gt;" in page
    assert "Never save twice" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    # It comes before the failure: rules are first.
    assert page.index("Never save twice") < page.index("&lt;script&gt;alert(1)")
    assert "src/app.py</a>" in page


def test_long_files_are_shown_in_parts(visitor: httpx.Client) -> None:
    first = visitor.get("code/file", params={"path": "src/long.py"}).text
    assert 'id="L200"' in first
    assert 'id="L201"' not in first
    second = visitor.get("code/file", params={"path": "src/long.py", "from": "201"}).text
    assert 'id="L201"' in second
    assert 'id="L200"' not in second
    assert len(first) < 120_000


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "/etc/passwd",
        "src/../../outside.txt",
        "src/link.py",
        "ignored.txt",
        ".git/config",
        ".ctx/config.toml",
        "src",
        "",
        "~/.bashrc",
        "src/app.py\0.txt",
        "src/" + "x" * 5000,
    ],
)
def test_only_files_of_the_index_are_read(visitor: httpx.Client, code: Served, path: str) -> None:
    (code.folder.parent / "outside.txt").write_text("outside")
    answer = visitor.get("code/file", params={"path": path})
    assert answer.status_code == 404, answer.text
    assert "root:" not in answer.text
    with code.program() as program:
        assert program.get("/api/v1/code/file", params={"path": path}).status_code == 404


def test_a_secret_file_and_a_folder_that_became_a_link_are_not_read(
    visitor: httpx.Client, code: Served
) -> None:
    page = visitor.get("code/file", params={"path": ".env"})
    assert "hunter2" not in page.text
    if page.status_code == 200:
        assert "usually hold secrets" in page.text
    outside = code.folder.parent / "elsewhere"
    os.rename(code.folder / "src", outside)
    os.symlink(outside, code.folder / "src")
    page = visitor.get("code/file", params={"path": "src/store.py"})
    assert "&lt;/td&gt;" not in page.text


def test_unknown_folders(visitor: httpx.Client) -> None:
    for path in ("nowhere", "../..", "/etc", "src/app.py"):
        assert visitor.get("code", params={"path": path}).status_code == 404, path
    assert visitor.get("code", params={"path": "/src/"}).status_code == 200
    assert "No more files" in visitor.get("code", params={"path": "src", "page": "9"}).text


def test_the_api_has_the_same(code: Served) -> None:
    with code.program() as program:
        folder = program.get("/api/v1/code/files", params={"path": "src"}).json()
        file = program.get("/api/v1/code/file", params={"path": "src/store.py"}).json()
    by_name = {each["name"]: each for each in folder["entries"]}
    assert by_name["store.py"]["trouble"]["failures"] == 1
    assert by_name["store.py"]["trouble"]["rules"] == 1
    assert by_name["app.py"]["trouble"]["heat"] == 0
    assert folder["warmest"][0]["path"] == "src/store.py"
    assert file["items"][0]["callers"][0]["path"] == "src/app.py"
    assert [node["kind"] for node in file["nodes"]] == ["rule", "failure"]
    assert file["source"]["lines"][0] == "def save(value):"


def test_without_an_index_the_page_says_so(ctx: Ctx, project: Path) -> None:
    (project / "main.py").write_text("pass\n")
    with Served(project) as serving, serving.visitor() as client:
        start = base_of(client)
        answer = client.get(f"{start}/code")
        assert answer.status_code == 200
        assert "ctx code index" in answer.text


def test_nothing_runs_in_the_browser(code: Served, browser: Browser) -> None:
    page = code.open(browser)
    problems = watch(page)
    base = page.url.removesuffix("/now")
    page.goto(f"{base}/code?path=src")
    page.get_by_role("link", name="store.py", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("store.py")
    press(page, "j")
    expect(page.locator("[data-item].chosen")).to_have_count(1)
    page.locator("summary", has_text="save").click()
    page.get_by_role("link", name="app.run").click()
    expect(page.locator("h1")).to_have_text("app.py")
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("code?path=src", "code/file?path=src/long.py"):
        page.goto(f"{base}/{path}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, path
    assert problems == []
    page.context.close()
