"""A task in, a pack out."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx import tokens
from ctx.errors import BudgetExceeded
from ctx.ids import anchor_id
from ctx.memory.changes import changing
from ctx.memory.model import Evidence
from ctx.packs import pack_text
from ctx.packs.prompt_pack import PromptPack
from tests import effort
from tests.memory.graphs import WHO
from tests.packs.packs import Packing, index, packing

CLIENT = '''\
"""Connections to a server."""

from shop.retry import Backoff


class Client:
    """One connection."""

    def __init__(self, address):
        self.address = address
        self.socket = None

    def connect(self):
        """Open the socket, again and again."""
        backoff = Backoff(100)
        while not self.send("hello"):
            if backoff.next_delay() is None:
                raise TimeoutError(self.address)
        return self

    def send(self, text):
        return bool(self.address and text)
''' + "".join(
    f'''

def helper_{number}(value):
    """Nothing of interest number {number}."""
    total = value + {number}
    for each in range(total):
        total -= each
    return total
'''
    for number in range(12)
)
RETRY = '''\
"""How long to wait."""


class Backoff:
    """Delays that double."""

    def __init__(self, delay):
        self.delay = delay

    def next_delay(self):
        """The next delay, or None after the last."""
        self.delay *= 2
        return self.delay
'''
TEST = """\
from shop.client import Client


def test_connect_raises_after_the_last_try():
    Client("").connect()
"""
FILES = {
    "shop/__init__.py": "",
    "shop/client.py": CLIENT,
    "shop/retry.py": RETRY,
    "shop/page.py": "def render(page):\n    return page.title\n",
    "tests/test_client.py": TEST,
    "README.md": "# Shop\n\nA client that can connect to a socket.\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packing]:
    with packing(tmp_path_factory.mktemp("packs") / "app", FILES) as made:
        yield made


@pytest.fixture
def remembering(tmp_path: Path) -> Iterator[Packing]:
    with packing(tmp_path / "app", FILES) as made:
        yield made


def titles_and_labels(pack: PromptPack) -> list[tuple[str, ...]]:
    """The titles in a pack, and the names of related items with the edge that led to them."""
    return [
        *((chunk.title, *chunk.via[-2:-1]) for chunk in pack.retrieved),
        *((each.name, each.via[-2]) for each in pack.related),
    ]


def test_a_method_is_shown_in_its_class_with_what_it_calls(shop: Packing) -> None:
    pack = shop.build("Client.connect raises TimeoutError too early")
    first = pack.retrieved[0]
    assert (first.title, first.first_line, first.last_line) == (
        "shop/client.py: Client.connect",
        13,
        19,
    )
    method = CLIENT[CLIENT.index("    def connect") : CLIENT.index("\n\n    def send")]
    assert first.snippet == f"class Client:\n    … line 13\n{method}"
    assert first.name == "shop.client.Client.connect"
    assert {signal.name for signal in first.signals} >= {"text", "named"}
    found = titles_and_labels(pack)
    assert ("shop/client.py: Client.send",) in found
    assert ("shop.retry.Backoff", "CALLS") in found or ("File: shop/retry.py",) in found
    test = "test_client.test_connect_raises_after_the_last_try"
    assert (test, "<CALLS") in found or ("File: tests/test_client.py",) in found
    assert pack.files[0].path == "shop/client.py"
    assert pack.graph_context.seed_nodes[0] == "shop.client.Client.connect"
    assert pack.graph_context.scc_dag_used
    assert pack.head_commit is None
    assert not any("helper" in title for title, *_ in found)
    scores = [file.score for file in pack.files]
    assert scores == sorted(scores, reverse=True)
    for file in pack.files:
        assert sum(each.value for each in file.signals) == pytest.approx(file.score)
    # Without expansion, only what matches is packed.
    pack = shop.build("Client.connect raises TimeoutError too early", depth=0)
    assert not any(chunk.via for chunk in pack.retrieved)
    assert pack.related == ()
    assert not pack.graph_context.scc_dag_used
    assert pack.graph_context.expanded_nodes == ()


def test_tests_rank_below_the_tested_code_unless_the_task_is_about_them(shop: Packing) -> None:
    pack = shop.build("connect opens the socket again", more=True)
    titles = [chunk.title for chunk in pack.retrieved]
    test = next(title for title in titles if "test_client" in title)
    assert titles.index("shop/client.py: Client.connect") < titles.index(test)
    asked = shop.build("Fix the flaky test test_connect_raises_after_the_last_try")
    assert "test_client" in asked.retrieved[0].title


def test_a_stack_trace_selects_the_innermost_frame(shop: Packing) -> None:
    pack = shop.build(
        "It fails:\n\nTraceback (most recent call last):\n"
        '  File "/srv/other/shop/client.py", line 15, in connect\n    backoff.next_delay()\n'
        '  File "/srv/other/shop/retry.py", line 13, in next_delay\n    self.delay *= 2\n'
        "TypeError: can't multiply\n"
    )
    assert pack.retrieved[0].path == "shop/retry.py"
    assert pack.retrieved[1].title == "shop/client.py: Client.connect"


def test_only_allowed_paths_are_packed_and_edited_ones_rank_higher(shop: Packing) -> None:
    sources = shop.sources._replace(allows=lambda path: path.startswith("shop/retry"))
    pack = Packing(shop.root, shop.memory, sources).build("Client.connect and the Backoff")
    assert {chunk.path for chunk in pack.retrieved} == {"shop/retry.py"}
    assert [file.path for file in pack.files] == ["shop/retry.py"]
    edited = shop.sources._replace(touched=("shop/retry.py",))
    pack = Packing(shop.root, shop.memory, edited).build("the delay")
    assert "touched" in {each.name for each in pack.retrieved[0].signals}


def test_a_decision_and_the_code_it_mentions_are_packed_together(remembering: Packing) -> None:
    decision = remembering.add(
        "decision",
        "Wait exponentially\n\nBecause servers recover slowly.",
        {"shop.retry.Backoff": "item"},
    )
    by_memory = remembering.build("exponentially slow recovery")
    [node, code, *_] = by_memory.retrieved
    assert (node.title, node.chunk_kind, node.object_id) == (
        "Decision: Wait exponentially",
        "Decision",
        decision,
    )
    assert node.snippet == "Because servers recover slowly."
    assert (code.path, code.via) == (
        "shop/retry.py",
        ("Wait exponentially", "MENTIONS", "shop.retry.Backoff"),
    )
    by_code = remembering.build("Backoff")
    assert ("Decision: Wait exponentially", "<MENTIONS") in titles_and_labels(by_code)
    # A superseded decision is left out.
    new = remembering.add("decision", "Backoff doubles its delays")
    with changing(remembering.memory, "link", WHO) as change:
        change.link(new, decision, "SUPERSEDES", Evidence("cli"))
    pack = remembering.build("how does Backoff wait")
    assert decision not in {chunk.object_id for chunk in pack.retrieved}
    assert "superseded" in {each.reason for each in pack.left_out}


def test_a_named_task_or_decision_is_packed(remembering: Packing) -> None:
    with changing(remembering.memory, "add", WHO) as change:
        change.add_node("task", "Shorten it", metadata={"file": "tasks/task_0043-shorten-k3x9.md"})
    pack = remembering.build("go on with task_0043")
    assert pack.retrieved[0].title == "Task: Shorten it"
    # The successor of a superseded decision is packed.
    with changing(remembering.memory, "add", WHO) as change:
        place = {"file": "decisions/0007-wait-k3x9.md"}
        old = change.add_node("decision", "Wait a second", metadata=place)
        new = change.add_node("decision", "Doubling of delays")
        change.link(new, old, "SUPERSEDES", Evidence("cli"))
    pack = remembering.build("is decision_0007 right?", include_narrative=False)
    assert [chunk.title for chunk in pack.retrieved] == ["Decision: Doubling of delays"]
    left_out = [(each.title, each.reason) for each in pack.left_out]
    assert left_out == [("Decision: Wait a second", "superseded")]


def test_the_active_task_is_packed_with_its_reason(remembering: Packing) -> None:
    with changing(remembering.memory, "add", WHO) as change:
        place = {"file": "tasks/task_0043-shorten-k3x9.md"}
        made = change.add_node("task", "Shorten it\nNow", metadata=place)
        anchor = anchor_id("item", "shop.retry.Backoff")
        change.add_node(
            "item", "shop.retry.Backoff", metadata={"name": "shop.retry.Backoff"}, node_id=anchor
        )
        change.link(made, anchor, "MENTIONS", Evidence("cli"))
        change.link(change.add_node("fact", "Of interest"), made, "RELATES_TO", Evidence("cli"))
    [task] = remembering.memory.nodes([made])
    sources = remembering.sources._replace(task=task)
    active = Packing(remembering.root, remembering.memory, sources)
    pack = active.build("zxqv wkrp")
    assert [(chunk.title, chunk.signals[0].name, chunk.via) for chunk in pack.retrieved] == [
        ("Task: Shorten it", "active", ()),
        (
            "File: shop/retry.py",
            "graph",
            ("Shorten it", "MENTIONS", "shop.retry.Backoff"),
        ),
        ("Fact: Of interest", "graph", ("Shorten it", "<RELATES_TO", "Of interest")),
    ]
    context = pack.graph_context
    assert context.seed_nodes == ("task_0043",)
    *items, fact = context.expanded_nodes
    assert items[0] == "shop.client.Client.connect", "it calls what the task mentions"
    assert "shop.retry.Backoff" in items
    assert fact.startswith("fact:")
    # Nothing of what was asked was found.
    assert (pack.confidence, pack.files) == (0.0, ())
    assert "Confidence" not in pack_text.as_markdown(pack)
    # It is told once, and where there is no room for a chunk, below them.
    assert pack.recent_narrative == ""
    assert "## Active task\n\nShorten it" in active.build("connect", limit=1).recent_narrative
    # What filters leave out is not there.
    unseen = sources._replace(in_sight=lambda nodes: [each for each in nodes if each != made])
    there = Packing(remembering.root, remembering.memory, unseen).build("zxqv wkrp")
    assert (there.retrieved, there.graph_context.seed_nodes) == ((), ())


def test_seeds_are_not_listed_as_expanded_nodes(remembering: Packing) -> None:
    first = remembering.add("fact", "Servers recover slowly", {"shop.retry.Backoff": "item"})
    second = remembering.add("fact", "Slowly does it")
    with changing(remembering.memory, "link", WHO) as change:
        change.link(first, second, "RELATES_TO", Evidence("cli"))
    context = remembering.build("servers recover slowly, Backoff").graph_context
    assert "shop.retry.Backoff" in context.seed_nodes
    assert len([name for name in context.seed_nodes if name.startswith("fact:")]) == 2
    assert not set(context.seed_nodes) & set(context.expanded_nodes)


def test_an_empty_file_has_no_chunk(tmp_path: Path) -> None:
    files = {"shop/connect.py": "\n", "shop/other.py": "connect = 1\n"}
    with packing(tmp_path / "app", files) as it:
        pack = it.build("connect")
    assert [file.path for file in pack.files] == ["shop/connect.py", "shop/other.py"]
    assert [chunk.path for chunk in pack.retrieved] == ["shop/other.py"]


def test_connected_files_rank_above_an_isolated_one(
    tmp_path: Path,
) -> None:
    rounding = "    # The rounding of the total on an invoice.\n    return round(value)\n"
    files = {
        "shop/alone.py": f"import decimal\n\n\ndef printed(value):\n{rounding}",
        "shop/cart.py": f"from shop.tax import total\n\n\ndef cart(value=total):\n{rounding}",
        "shop/tax.py": f"import decimal\n\n\ndef total(value):\n{rounding}",
        "shop/page.py": "def page():\n    return 1\n",
    }
    with packing(tmp_path / "app", files) as it:
        task = "The rounding of the invoice is wrong"
        together, each_alone = it.build(task), it.build(task, depth=0)
    alone, cart, tax = "shop/alone.py", "shop/cart.py", "shop/tax.py"
    assert [chunk.path for chunk in each_alone.retrieved] == [alone, tax, cart]
    assert [chunk.path for chunk in together.retrieved] == [tax, cart, alone]
    # How the files are ranked is another matter.
    assert together.files == each_alone.files
    assert together.files[0].path == alone


def test_likely_functions_are_shown_whole(tmp_path: Path) -> None:
    functions = {
        name: f"def {name}(value):\n"
        + "".join(f"    {name[0]}{number}(value)\n" for number in range(lines))
        + "    return round(value)"
        for name, lines in (("round_invoice", 100), ("emit_invoice", 900))
    }
    text = "\n\n\n".join(functions.values())
    with packing(tmp_path / "app", {"shop/tax.py": text}) as it:
        pack = it.build("Round the invoice up in round_invoice and emit_invoice", budget=4_000)
        less = it.build("Round the invoice up in round_invoice", budget=600)
    snippets = {chunk.title: chunk.snippet for chunk in pack.retrieved}
    assert snippets["shop/tax.py: round_invoice"] == functions["round_invoice"]
    # Of what takes more than half of the budget, what matches is shown, with line numbers.
    for excerpt in (snippets["shop/tax.py: emit_invoice"], less.retrieved[0].snippet):
        assert "\n    … line " in excerpt
        assert excerpt.endswith("return round(value)")
    assert less.token_budget.used <= 600


def test_secrets_in_code_are_redacted(tmp_path: Path) -> None:
    key = "AKIA" + "Z7Q3M5X2KJ4T6WN2"
    with packing(tmp_path / "app", {"keys.py": f'def connect():\n    return "{key}"\n'}) as it:
        for budget in (8_000, 60):
            pack = it.build("connect", budget=budget)
            assert pack.retrieved
            assert key not in pack_text.with_reasons(pack)
        assert "[redacted:" in it.build("connect").retrieved[0].snippet.lower()
    files = {
        "net.py": "from keys import sign\n\n\ndef connect():\n    return sign()\n",
        "keys.py": f'def sign(key="{key}"):\n    return key\n',
    }
    with packing(tmp_path / "other", files) as it:
        pack = it.build("connect in net.py returns nothing")
        assert [each.name for each in pack.related] == ["keys.sign"]
        assert key not in f"{pack_text.as_markdown(pack)}{pack}"


def test_confidence_without_a_file_is_limited(remembering: Packing) -> None:
    remembering.add("fact", "Servers recover slowly")
    alone = Packing(remembering.root, remembering.memory, remembering.sources._replace(code=None))
    whole, part = alone.build("servers recover slowly"), alone.build("servers zxqv wkrp plugh")
    assert 0 < part.confidence < whole.confidence <= 0.5


def test_everything_left_out_is_counted(tmp_path: Path) -> None:
    functions = [f"def connect_{n}():\n" + f"    wait({n})\n" * 20 for n in range(80)]
    files = {f"shop/part_{n}.py": "\n".join(functions[n::8]) for n in range(8)}
    with packing(tmp_path / "app", files) as it:
        pack = it.build("connect", budget=16_000, limit=1)
    assert (len(pack.retrieved), len(pack.left_out)) == (1, 30)
    assert pack.more_left_out > 0
    assert f"- and {pack.more_left_out} more" in pack_text.with_reasons(pack)


def test_the_used_tokens_are_those_of_the_text(shop: Packing) -> None:
    for task in ("Client.connect raises TimeoutError too early", "zxqv wkrp"):
        pack = shop.build(task)
        taken = tokens.estimate(pack_text.as_markdown(pack))
        assert taken <= pack.token_budget.used <= taken + len(pack.retrieved) + 3


def test_the_error_about_a_small_budget_names_the_needed_tokens(shop: Packing) -> None:
    with pytest.raises(BudgetExceeded) as error:
        shop.build("Client.connect", budget=20)
    needed = int("".join(c for c in (error.value.hint or "") if c.isdigit()))
    assert len(shop.build("Client.connect", budget=needed).retrieved) == 1
    with pytest.raises(BudgetExceeded):
        shop.build("Client.connect", budget=needed - 1)
    with pytest.raises(BudgetExceeded) as error:
        shop.build("Client.connect", budget=1_000, reserved_for_response=990)
    assert f"needs {needed:,}, and 990 are reserved for the response." in str(error.value)
    assert f"{needed + 990:,} tokens or more" in (error.value.hint or "")


@settings(
    max_examples=effort.times(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(60, 3_000), st.integers(0, 500), st.sampled_from(["connect", "delay", "render"]))
def test_no_pack_is_larger_than_its_budget(
    shop: Packing, budget: int, reserved: int, task: str
) -> None:
    try:
        pack = shop.build(task, budget=budget, reserved_for_response=reserved)
    except BudgetExceeded:
        return
    assert pack.token_budget.used <= budget - reserved


@pytest.mark.parametrize(
    "task",
    [
        *("the and of", "", "\0", "数据库连接超时", "почему падает connect"),
        *('"connect" AND (NOT title:*', "' OR 1=1 --", "[a-z]+(.*)*$", "%_\\"),
        *("../../etc/passwd", "/" * 500, "`" * 999, "\ud800 lone", "connect " * 1_000),
        "".join(f'  File "/x/{n}.py", line {n}, in f{n}\n    g()\n' for n in range(600)),
    ],
    ids=range(15),
)
def test_any_task_gives_a_pack(shop: Packing, task: str) -> None:
    pack = shop.build(task)
    json.dumps(pack.token_budget)
    assert pack.task == task


def test_without_results_a_pack_is_empty(shop: Packing) -> None:
    pack = shop.build("zxqv wkrp")
    assert (pack.retrieved, pack.files, pack.confidence) == ((), (), 0.0)
    assert "Nothing was found" in pack_text.as_markdown(pack)
    assert shop.build("the of a").confidence == 0.0
    alone = Packing(shop.root, shop.memory, shop.sources._replace(code=None))
    assert (alone.build("connect").retrieved, alone.build("connect").confidence) == ((), 0.0)


def test_memory_is_expanded_without_code(remembering: Packing) -> None:
    first = remembering.add("fact", "Servers recover slowly")
    second = remembering.add("decision", "Wait exponentially")
    with changing(remembering.memory, "link", WHO) as change:
        change.link(second, first, "DEPENDS_ON", Evidence("cli"))
    sources = remembering.sources._replace(code=None)
    pack = Packing(remembering.root, remembering.memory, sources).build("slow servers")
    assert titles_and_labels(pack) == [
        ("Fact: Servers recover slowly",),
        ("Decision: Wait exponentially", "<DEPENDS_ON"),
    ]
    assert 0 < pack.confidence <= 0.5


def test_changed_and_deleted_files_are_read_as_they_are_now(remembering: Packing) -> None:
    remembering.write("shop/client.py", "# moved\n" * 3 + CLIENT)
    (remembering.root / "shop/retry.py").unlink()
    pack = remembering.build("Client.connect with Backoff")
    changed = next(chunk for chunk in pack.retrieved if chunk.path == "shop/client.py")
    assert "def connect(self):" in changed.snippet
    assert not any(
        chunk.path == "shop/retry.py" and "self.delay" in chunk.snippet for chunk in pack.retrieved
    )
    index(remembering.root)
    again = remembering.build("Client.connect with Backoff")
    assert again.retrieved[0].first_line == 16
    assert {chunk.path for chunk in again.retrieved} >= {"shop/client.py"}
    assert not any(chunk.path == "shop/retry.py" for chunk in again.retrieved)


def test_unreadable_files_are_handled(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "data.py": b"\x00\x01connect\xff" * 100,
        "app.min.js": "function connect(){}" * 5_000,
        "long.py": "connect = '" + "x" * 200_000 + "'\n",
        "latin.py": "def connect():\n    return 'é'\n".encode("latin-1"),
        "deep.py": "".join("    " * n + f"def connect_{n}():\n" for n in range(60)),
        "odd `name`\n.py": "def connect_odd():\n    pass\n",
    }
    with packing(tmp_path / "app", files) as made:
        pack = made.build("connect")
        assert pack.retrieved
        # What is in a pack stays in its place: every fence that opens is closed.
        text = pack_text.as_markdown(pack)
        assert "\n.py" not in text
        assert pack_text.with_reasons(pack).startswith("# Context for `connect`")
