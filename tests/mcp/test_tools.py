"""The five tools, called as the server calls them, without a process."""

from pathlib import Path

import pytest

from ctx.errors import CtxError, NodeNotFound, QueryInvalid, UsageError
from ctx.mcp.call_thread import RunningCall
from ctx.mcp.tools import TOOLS
from tests.cli.conftest import Add
from tests.conftest import Ctx, git
from tests.mcp.conftest import Call, place_in

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def test_recall_returns_an_index_and_ids_return_texts(project: Path, add: Add, call: Call) -> None:
    node = add("--type=decision", "Payments are retried, because banks are slow.\nAt most 5 times.")
    found = call("recall", query="why are payments retried?")
    assert found.data["total"] == 1
    (result,) = [each for each in found.data["results"] if each["kind"] == "decision"]
    assert result == {
        "id": node,
        "kind": "decision",
        "title": "Payments are retried, because banks are slow. At most 5 times.",
        "tokens": result["tokens"],
        "source": "user",
        "at": result["at"],
    }
    assert f"`{node}` decision" in found.text
    whole = call("recall", ids=[node])
    assert "At most 5 times." in whole.data["results"][0]["text"]
    assert "At most 5 times." in whole.text


def test_long_answers_come_in_pages(project: Path, add: Add, call: Call) -> None:
    nodes = {add(f"Payments of kind {number} are retried") for number in range(5)}
    shown: list[str] = []
    cursor = ""
    while True:
        page = call("recall", query="payments retried", limit=2, cursor=cursor).data
        shown += [each["id"] for each in page["results"] if each["kind"] == "fact"]
        if "nextCursor" not in page:
            break
        cursor = page["nextCursor"]
    assert len(shown) == 5
    assert set(shown) == nodes


def test_what_an_agent_remembers_is_its_own_and_shown_later(
    project: Path, call: Call, ctx: Ctx
) -> None:
    done = call("remember", text="The gateway answers 429", type="fact", rationale="seen twice")
    shown = ctx("show", done.data["id"], "--format", "json").json["node"]
    assert (shown["source"], shown["metadata"]["rationale"]) == ("agent", "seen twice")
    assert shown["tags"] == ["tier:reference"]
    assert "The gateway answers 429" in ctx("context").out


def test_pins_and_all_projects_are_proposals(project: Path, call: Call, ctx: Ctx) -> None:
    done = call("remember", text="Never force-push", tags=["tier:pinned"], scope="user")
    assert done.data["proposed"] == ["pin", "all projects"]
    assert "The user decides with `ctx review`." in done.text
    shown = ctx("show", done.data["id"], "--format", "json").json["node"]
    assert "tier:pinned" not in shown["tags"]
    (proposal,) = ctx("review", "--format", "json").json["proposals"]
    assert proposal["author"] == "mcp"


def test_what_it_replaces_is_superseded_unless_it_is_protected(
    project: Path, call: Call, add: Add, ctx: Ctx
) -> None:
    old, pinned = add("Deploys run on Fridays"), add("Ask first", "--tag=tier:pinned")
    done = call("remember", text="Deploys run on Mondays", supersedes=[old])
    assert done.data["proposed"] == []
    assert ctx("show", old, "--format", "json").json["node"]["superseded_by"]
    held = call("remember", text="Never ask", supersedes=[pinned])
    assert f"supersede {pinned}" in held.data["proposed"]
    assert ctx("show", pinned, "--format", "json").json["node"]["superseded_by"] is None


def test_nodes_can_be_linked(project: Path, call: Call, add: Add, ctx: Ctx) -> None:
    one, two = add("Node one"), add("Node two")
    new = call("remember", text="Three", links=[{"to": one, "type": "DEPENDS_ON"}]).data["id"]
    call("remember", id=two, links=[{"to": one}])
    edges = ctx("edges", one, "--format", "json").json["edges"]
    kinds = {(edge["type"], edge["from_id"][:12]) for edge in edges}
    assert kinds == {("DEPENDS_ON", new), ("RELATES_TO", two)}


def test_secrets_are_not_stored(project: Path, call: Call, ctx: Ctx) -> None:
    done = call("remember", text=f"The token is {SECRET}")
    assert "Memory does not store secrets." in done.text
    assert SECRET not in ctx("show", done.data["id"]).out


def test_an_agent_forgets_what_agents_said_and_proposes_the_rest(
    project: Path, call: Call, add: Add, ctx: Ctx
) -> None:
    own = call("remember", text="The cache is warm").data["id"]
    said = add("The cache is cold")
    done = call("forget", ids=[own, said])
    assert done.data == {"forgotten": [own], "proposed": [said]}
    assert f"Forgotten: {own}. `ctx undo` brings it back until the next commit." in done.text
    assert ctx("show", own).code == 1
    assert ctx("show", said).code == 0
    (proposal,) = ctx("review", "--format", "json").json["proposals"]
    assert proposal["asked"] == ["forget"]
    assert ctx("restore", own).code == 0
    assert ctx("review", "accept", said).code == 0
    assert ctx("show", said).code == 1
    assert ctx("restore", said).code == 0
    assert ctx("review", "--format", "json").json["proposals"] == []


def test_a_timeline_of_a_file_has_commits_and_decisions(
    project: Path, call: Call, ctx: Ctx
) -> None:
    (project / "retry.py").write_text("def retry():\n    pass\n")
    git("add", ".")
    git("commit", "-qm", "Retry failed payments")
    words = ("add", "decision", "Retry three times", "--mention", "retry.py")
    assert ctx(*words).code == 0
    entries = call("timeline", around="retry.py").data["entries"]
    kinds = {each["kind"]: each["text"] for each in entries}
    assert kinds["commit"] == "Retry failed payments"
    assert kinds["decision"].startswith("Retry three times")


def test_a_timeline_of_a_node_continues_at_its_cursor(project: Path, call: Call, add: Add) -> None:
    nodes = [add(f"Fact {number}") for number in range(9)]
    page = call("timeline", around=nodes[4], limit=3)
    assert [each["text"] for each in page.data["entries"]] == ["Fact 3", "Fact 4", "Fact 5"]
    assert "→" in page.text
    earlier = call("timeline", around=nodes[4], limit=3, cursor=page.data["nextCursor"])
    assert [each["text"] for each in earlier.data["entries"]] == ["Fact 0", "Fact 1", "Fact 2"]


def test_a_pack_has_code_and_memory_within_its_budget(project: Path, call: Call, add: Add) -> None:
    (project / "retry.py").write_text("def retry_payment():\n    '''Retry a payment.'''\n")
    git("add", ".")
    add("--type=decision", "A payment is retried three times")
    packed = call("pack", task="change how often a payment is retried", budget=1500)
    assert any(each.get("path") == "retry.py" for each in packed.data["chunks"])
    assert "A payment is retried three times" in packed.text
    assert packed.data["tokens"] <= 1500


def test_receipts_show_what_was_given(project: Path, call: Call, add: Add, ctx: Ctx) -> None:
    node = add("Payments are retried")
    call("recall", query="payments retried")
    given = ctx("why", "--format", "json").json
    assert (given["event"], given["session"]) == ("recall", "agent-7")
    assert [item["label"] for item in given["items"]] == [f"fact:{node}"]
    call("recall", ids=[node])
    assert ctx("why", "--format", "json").json["event"] == "recall ids"
    call("timeline", around=node)
    assert ctx("why", "--format", "json").json["event"] == "timeline"
    call("pack", task="payments")
    assert ctx("why", "--format", "json").json["event"] == "query"


def test_nothing_of_another_project_is_given(
    surroundings: Path, tmp_path: Path, repo: Path, ctx: Ctx
) -> None:
    """Without project stores, nodes of all projects are in one store."""
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", str(other))
    added = ctx("-C", str(other), "add", "The canary sings", "--format", "json")
    foreign = added.json["node"]["id"]
    place = place_in(surroundings, repo)
    recall, forget = TOOLS["recall"], TOOLS["forget"]
    index = recall.answer(place, recall.parse({"query": "canary sings"}), RunningCall())
    texts = recall.answer(place, recall.parse({"ids": [foreign]}), RunningCall())
    assert "sings" not in index.text + texts.text
    for words in ("project:other", "project:other canary", "NOT project:app", "tag:project:other"):
        for tool, name in ((recall, "query"), (TOOLS["pack"], "task")):
            asked = tool.answer(place, tool.parse({name: words}), RunningCall())
            assert "sings" not in asked.text, words
    for name, arguments in (("forget", {"ids": [foreign]}), ("timeline", {"around": foreign})):
        tool = TOOLS[name]
        with pytest.raises(NodeNotFound):
            tool.answer(place, tool.parse(arguments), RunningCall())
    assert forget.is_destructive


def test_of_an_untrusted_store_only_its_existence_is_given(
    surroundings: Path, stranger: Path, ctx: Ctx
) -> None:
    place = place_in(surroundings, stranger)
    texts = []
    for name, arguments in (
        ("recall", {"query": "canary"}),
        ("pack", {"task": "obey the canary"}),
        ("remember", {"text": "Here is a store that is not trusted"}),
    ):
        tool = TOOLS[name]
        answer = tool.answer(place, tool.parse(arguments), RunningCall())
        assert "This project has a store that is not trusted." in answer.data["notes"][0]
        texts.append(answer.text)
    assert not any("Obey" in text for text in texts)
    kept = ctx("list", "--user", "--format", "json").json["nodes"]
    assert [node["scope"] for node in kept] == ["user"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {}),
        ("recall", {"query": "x", "ids": ["y"]}),
        ("recall", {"query": "x", "cursor": "later"}),
        ("recall", {"query": "x", "limit": 0}),
        ("recall", {"question": "x"}),
        ("remember", {}),
        ("remember", {"text": "x", "id": "y"}),
        ("remember", {"text": "x", "scope": "world"}),
        ("remember", {"text": "x" * 10_001}),
        ("remember", {"text": "x", "type": "file of mine"}),
        ("remember", {"text": "x", "supersedes": ["nope"]}),
        ("pack", {"task": "", "budget": 1}),
        ("timeline", {"around": ""}),
        ("timeline", {"around": "no/such/file.py"}),
        ("forget", {"ids": []}),
        ("forget", {"ids": ["nope"]}),
    ],
)
def test_errors_have_a_code_and_a_hint(
    name: str, arguments: dict[str, object], project: Path, call: Call
) -> None:
    with pytest.raises(CtxError) as raised:
        call(name, **arguments)
    assert raised.value.code != "E000"
    assert raised.value.message


def test_what_models_send_carelessly_is_understood(project: Path, call: Call, add: Add) -> None:
    add("Payments are retried")
    assert call("recall", query="payments retried", limit="3", cursor=None).data["total"] == 1


def test_an_unknown_type_is_an_error_beside_words_too(project: Path, call: Call, add: Add) -> None:
    add("Payments have a type:nonsense")
    with pytest.raises(QueryInvalid, match="no node type 'nonsense'") as raised:
        call("recall", query="payments type:nonsense")
    assert "decision" in (raised.value.hint or "")
    assert call("recall", query='payments "type:nonsense"').data["total"] == 1
    assert call("recall", query="payments pay(type:nonsense)").data["total"] == 1


def test_arguments_that_are_unknown_are_named(call: Call) -> None:
    with pytest.raises(UsageError, match="question"):
        call("recall", question="x")
