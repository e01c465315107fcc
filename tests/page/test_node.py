"""The view of one node, and what can be changed there."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ctx.page.node_history import difference
from ctx.page.requests import path_below
from ctx.synthesis.session_writer import synthesise
from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.page.form_visitor import FormVisitor, field
from tests.page.served import Served
from tests.page.visits import HOSTILE, base_of, press, watch
from tests.synthesis.test_session_writer import add_steps, open_writable


def test_a_node_is_edited_and_the_edit_undone(served: Served, add: Add, ctx: Ctx) -> None:
    node = add("--type=fact", "Retries wait *one* second.", "--tag=area:net")
    with FormVisitor(served) as visitor:
        page = visitor.get(f"/node/{node}").text
        assert "Retries wait <em>one</em> second." in page
        base_text = field(page, "base_text")
        edited = visitor.follow(
            f"/node/{node}/edit",
            base_text=base_text,
            content="Retries wait *two* seconds.",
            summary="Wait.",
            type="decision",
        )
        assert "Changed: type, content, summary." in edited
        page = visitor.get(f"/node/{node}").text
        assert "<del>one* second</del><ins>two* seconds</ins>" in page
        change = field(page, "change")
        undone = visitor.follow("/undo", change=change, back=f"/node/{node}")
        assert "Undone:" in undone
        assert "Retries wait one second." in undone
        assert "fact" in undone
        assert "undone" in visitor.text(f"/node/{node}")


def test_a_concurrent_edit_is_refused_with_both_texts(served: Served, add: Add, ctx: Ctx) -> None:
    node = add("--type=fact", "One.")
    with FormVisitor(served) as visitor:
        base_text = field(visitor.get(f"/node/{node}").text, "base_text")
        assert ctx("update", node, "--content", "Two, from the command line.").code == 0
        fields = {"content": "Three, from the page.", "summary": "", "type": "fact"}
        refused = visitor.send(f"/node/{node}/edit", base_text=base_text, **fields)
        assert refused.status_code == 409
        assert "was changed while you edited it" in refused.text
        assert "Two, from the command line." in refused.text
        assert "Three, from the page.</textarea>" in refused.text
        assert ctx("show", node, "--format=json").json["node"]["content"].startswith("Two")
        again = field(refused.text, "base_text")
        visitor.follow(f"/node/{node}/edit", base_text=again, **fields)
    assert ctx("show", node, "--format=json").json["node"]["content"] == "Three, from the page."


def test_tags_pins_links_and_supersession(served: Served, add: Add, ctx: Ctx) -> None:
    node = add("--type=decision", "Use XML.", "--tag=area:net")
    other = add("--type=fact", "Clients send XML.")
    with FormVisitor(served) as visitor:
        at = f"/node/{node}"
        assert "Added area:http, x." in visitor.follow(f"{at}/tags", tags="area:http, x")
        assert "Removed the tag area:net." in visitor.follow(f"{at}/tags", remove="area:net")
        refused = visitor.send(f"{at}/tags", tags="tier:nothing")
        assert refused.status_code == 400
        assert 'value="tier:nothing"' in refused.text
        assert "Pinned. Undo" in visitor.follow(f"{at}/pin", pinned="1")
        assert "Pinned. Undo" not in visitor.follow(f"{at}/pin", pinned="1"), "it was before"
        assert "tier:pinned" in ctx("show", node).out
        assert "Unpinned. Undo" in visitor.follow(f"{at}/pin", pinned="0", back="/search")
        for tier, has in (("pinned", ["pinned"]), ("working", ["working"]), ("none", [])):
            assert f"Tier: {tier}. Undo" in visitor.follow(f"{at}/tier", tier=tier)
            tags = ctx("show", node, "--format=json").json["node"]["tags"]
            assert [each for each in tags if "tier:" in each] == [f"tier:{each}" for each in has]
        assert visitor.send(f"{at}/tier", tier="nothing").status_code == 400

        link = {"type": "DEPENDS_ON", "other": other, "direction": "out", "reason": "They do."}
        linked = visitor.follow(f"{at}/link", **link)
        assert "DEPENDS_ON → 1" in linked
        assert "Clients send XML." in linked
        assert "They do." in linked
        assert "← DEPENDS_ON 1" in visitor.text(f"/node/{other}")
        assert "1 node depends on it or was made from it" in visitor.text(f"/node/{other}")
        removed = visitor.follow(f"{at}/link", **link, remove="1")
        assert "No edges." in removed
        lost = visitor.send(f"{at}/link", type="RELATES_TO", other="nothing", direction="out")
        assert lost.status_code == 400
        assert 'value="nothing"' in lost.text

        made = visitor.follow(f"{at}/supersede", content="Use JSON.")
        assert "This node supersedes the other." in made
        assert "Use JSON." in made
        assert "Superseded by decision Use JSON." in visitor.text(at)


def test_a_deleted_node_can_be_restored(served: Served, add: Add, ctx: Ctx) -> None:
    node = add("--type=fact", "Tea is hot.")
    derived = add("--type=summary", "Hot tea.")
    assert ctx("link", derived, node, "--type=DERIVED_FROM").code == 0
    with FormVisitor(served) as visitor:
        assert "Also delete the 1 node that was derived" in visitor.text(f"/node/{node}")
        assert "Deleted. Undo" in visitor.follow(f"/node/{node}/delete")
        assert visitor.get(f"/node/{node}").status_code == 404
        assert "This node was deleted. Restore" in visitor.text(f"/node/{node}")
        late = visitor.send(f"/node/{node}/edit", content="Tea is cold.", base_text="x")
        assert late.status_code == 404
        assert "<pre>Tea is cold.</pre>" in late.text, "what was typed is not lost"
        assert "Restored. Undo" in visitor.follow(f"/node/{node}/restore")
        assert "Deleted 2 nodes." in visitor.follow(f"/node/{node}/delete", cascade="1")
        restored = visitor.follow("/undo", change="", back="/search")
        assert "2 nodes, newest first." in restored
        for unknown in ("/node/01NOTHING", "/node/x", "/node/%00"):
            assert visitor.get(unknown).status_code == 404


def test_a_node_names_the_message_that_it_comes_from(
    served: Served, surroundings: Path, project: Path
) -> None:
    rule = "Never commit to main, because the release job runs from it."
    with open_writable(surroundings, project) as memory:
        add_steps(memory, f"prompt: Look at the job. {rule}\nsay: OK, I leave it alone.\n", "s1")
        synthesise(memory, "s1", is_over=True)
    with FormVisitor(served) as visitor:
        page = visitor.get("/search?q=session:s1+AND+tag:kind:decision").text
        found = re.search(r"/node/(\w{26})", page)
        assert found is not None
        page = visitor.get(f"/node/{found.group(1)}").text
        assert f"<blockquote>{rule}</blockquote>" in page
        assert f'href="../../../{visitor.base}/sessions/s1#step-' in page


def test_undo_goes_back_below_the_folder_only(served: Served, add: Add) -> None:
    node = add("--type=fact", "Tea.")
    with FormVisitor(served) as visitor:
        for back in ("//evil.example", "https://evil.example/", "/\\evil.example", "/../../x", ""):
            visitor.send(f"/node/{node}/pin", pinned="1")
            answer = visitor.send("/undo", change="", back=back)
            assert answer.headers["location"] == f"../../{visitor.base}/now", back
        visitor.send(f"/node/{node}/pin", pinned="1")
        answer = visitor.send("/undo", change="", back=f"/node/{node}?x=1")
        assert answer.headers["location"] == f"../../{visitor.base}/node/{node}?x=1"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/search?q=a//b", "/search?q=a//b"),
        ("/node/01", "/node/01"),
        ("//evil.example", "/now"),
        ("///evil.example", "/now"),
        ("/a//evil.example", "/now"),
        ("http://evil.example", "/now"),
        ("javascript:alert(1)", "/now"),
        ("/\\evil.example", "/now"),
        ("/a/../../b", "/now"),
        ("/a\nSet-Cookie: x", "/now"),
        ("/a\tb", "/now"),
        ("evil", "/now"),
        ("/" + "a" * 10_000, "/now"),
    ],
)
def test_addresses_of_forms(text: str, path: str) -> None:
    assert path_below(text) == path


def test_differences() -> None:
    def shown(before: str, after: str) -> str:
        signs = {"same": "", "added": "+", "removed": "-"}
        return "".join(
            f"[{signs[part.kind]}{part.text}]" if part.kind != "same" else part.text
            for part in difference(before, after)
        )

    assert shown("", "New text.") == "[+New text.]"
    assert shown("one b two", "one x two") == "one [-b][+x] two"
    assert shown("one b, c two", "one x, y two") == "one [-b, c][+x, y] two"
    assert shown("same", "same") == "same"
    assert shown("gone", "") == "[-gone]"
    long = "word " * 100
    assert len(shown(long + "a", long + "b")) < 120


def test_hostile_text_is_shown_and_runs_nothing(
    served: Served, add: Add, ctx: Ctx, browser: Browser
) -> None:
    fields = [f"--summary={HOSTILE}", f"--meta=note={HOSTILE}", "--tag=<img/src=x/onerror=alert>"]
    node = add("--type=fact", HOSTILE, *fields)
    other = add("--type=fact", "Harmless.")
    assert ctx("link", node, other, "--type=RELATES_TO", f"--reason={HOSTILE}").code == 0
    assert ctx("update", node, "--content", f"{HOSTILE} changed").code == 0
    page = served.open(browser)
    base = page.url.removesuffix("/now")
    seen = watch(page)
    for path in ("/search", "/search?q=alert", f"/node/{node}", f"/node/{other}"):
        page.goto(base + path)
        assert "<script>alert(1)</script>" in page.inner_text("main"), path
        assert "\\u202e" in page.inner_text("main"), "hidden characters are visible"
        assert page.locator("main img, main script, main svg, main [onerror]").count() == 0
        assert page.locator("main a[href^='javascript']").count() == 0
    page.goto(f"{base}/search?q=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert page.input_value("#query") == '"><script>alert(1)</script>'
    page.goto(f"{base}/node/{node}")
    # A field has the text as it is, so that saving it changes nothing.
    assert page.input_value("#edit textarea[name=content]") == f"{HOSTILE} changed"
    assert seen == []
    page.context.close()


def test_editing_with_the_keyboard(served: Served, add: Add, ctx: Ctx, browser: Browser) -> None:
    node = add("--type=fact", "Tea is cold.")
    page = served.open(browser)
    page.goto(page.url.removesuffix("/now") + f"/node/{node}")
    page.keyboard.press("e")
    expect(page.locator("#edit textarea[name=content]")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Tea is hot.")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message")
    assert page.inner_text(".node > .content") == "Tea is hot."
    # Also when the message about the change is gone.
    page.reload()
    press(page, "u")
    expect(page.locator(".node > .content")).to_have_text("Tea is cold.")
    assert f"/node/{node}" in page.url
    page.goto(page.url.partition("/node/")[0] + "/search")
    press(page, "u")
    expect(page.locator(".messages")).to_contain_text("Undone: ")
    press(page, "u")
    expect(page.locator(".messages")).to_contain_text("Not undone. The session cli has nothing")
    expect(page.locator(".messages")).to_contain_text(
        "The change: content: Tea is hot., already undone."
    )
    page.context.close()


def test_a_node_without_a_tier_says_when_it_is_given(served: Served, add: Add) -> None:
    stated = add("--type=fact", "--no-tier", "Clients send XML.")
    captured = add("--type=observation", "--no-tier", "--tag=kind:bugfix", "Fixed the retries.")
    with served.visitor() as visitor:
        texts = [visitor.get(f"{base_of(visitor)}/node/{node}").text for node in (stated, captured)]
    assert "no tier: given with prompts about it, not at the start" in texts[0]
    assert "captured: given at the start while it is new, and with prompts about it" in texts[1]
