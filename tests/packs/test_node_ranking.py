"""Which nodes answer a question, in which order, and why."""

from collections.abc import Collection, Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.ids import NodeId, derived_ulid
from ctx.memory.changes import changing
from ctx.memory.graph import Graph
from ctx.memory.graphs import Graphs
from ctx.memory.model import Evidence
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse
from ctx.packs import node_ranking
from ctx.packs.node_ranking import Nearness, RankedNode
from tests import effort
from tests.memory.graphs import WHO, graph

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
EVERYWHERE = Scope()


class Store:
    """A graph whose nodes are identified by the order in which they were added."""

    def __init__(self, made: Graph) -> None:
        self.graph = made
        self.ids: list[NodeId] = []

    def add(
        self, *contents: str, tags: str = "", at: str | None = None, type: str = "fact"
    ) -> None:
        with changing(self.graph, "add", WHO) as change:
            for content in contents:
                number = len(self.ids)
                made = clock.parse_iso(at or "") or NOW_MS - MINUTE_MS * (10_000 - number)
                name = NodeId(derived_ulid(made, f"node {number}"))
                times = clock.iso(made), clock.iso(made)
                change.add_node(type, content, node_id=name, times=times)
                for tag in tags.split():
                    change.tag(name, tag)
                self.ids.append(name)

    def replace(self, old: int, new: int) -> None:
        with changing(self.graph, "link", WHO) as change:
            change.link(self.ids[new], self.ids[old], "SUPERSEDES", Evidence("cli"))

    def rank(
        self, question: str, scope: Scope = EVERYWHERE, near: Nearness | None = None
    ) -> list[RankedNode]:
        return node_ranking.rank(Graphs([self.graph]), parse(question), scope, NOW_MS, 10, near)

    def answer(
        self, question: str, scope: Scope = EVERYWHERE, near: Nearness | None = None
    ) -> list[int]:
        return [self.ids.index(each.node.id) for each in self.rank(question, scope, near)]

    def near(self, cosines: Mapping[int, float]) -> Nearness:
        known = {self.ids[number]: cosine for number, cosine in cosines.items()}

        def nearness(node_ids: Collection[NodeId] | None) -> Mapping[NodeId, float]:
            wanted = known if node_ids is None else node_ids
            return {node_id: known[node_id] for node_id in wanted if node_id in known}

        return nearness


@pytest.fixture
def store() -> Iterator[Store]:
    with graph() as made:
        yield Store(made)


def rounded_signals(found: RankedNode) -> dict[str, float]:
    return {name: round(value, 2) for name, value in found.signals}


def test_rare_words_count_more_than_common_ones(store: Store) -> None:
    store.add("The server has a cache", "The server has a queue", "The server sleeps")
    store.add("Redis evicts keys of the cache")
    assert store.answer("which keys does the server evict?")[0] == 3
    assert store.answer("server") == [2, 1, 0]
    assert store.answer("nothing of that") == []


def test_words_at_the_beginning_of_a_long_text_count_more(store: Store) -> None:
    words = " ".join(f"word{number}" for number in range(200))
    store.add(f"{words} deployment", f"Deployment of the shop. {words}", "else")
    first, second = store.rank("deployment")
    assert first.node.id == store.ids[1]
    assert rounded_signals(first) == {"text": 0.33, "beginning": 0.67}
    assert rounded_signals(second) == {"text": 0.33}


def test_a_score_is_the_sum_of_its_signals(store: Store) -> None:
    store.add("Tokens expire", "Tokens are refreshed", tags="session:s1")
    store.add("Nobody knows", "An old token")
    store.replace(3, 0)
    near = store.near({0: 0.8, 1: 0.1, 2: 0.5, 3: 0.1})
    found = store.rank("token", Scope(include_superseded=True), near)
    assert found[0].score == 1
    assert {name for each in found for name, _ in each.signals} == {
        "text", "beginning", "vectors", "beside", "superseded"
    }  # fmt: skip
    for each in found:
        assert each.score == pytest.approx(sum(value for _, value in each.signals))


def test_a_short_node_is_found_by_its_neighbours_in_the_session(store: Store) -> None:
    store.add("Good morning", "What did you paint?", "A sunrise!", "Nice", tags="session:one")
    store.add("It was late", "Paint is expensive", tags="session:two")
    store.add("Good evening")
    assert store.answer("what did she paint") == [5, 1, 4, 2, 0, 3]
    # What is far away, of no session, or long enough to speak for itself is not taken in.
    store.add("Much was said. " * 100, tags="session:two")
    assert 7 not in store.answer("what did she paint")[:4]
    assert 6 not in store.answer("what did she paint")


def test_neighbours_must_fulfil_the_filters_too(store: Store) -> None:
    store.add("What did you paint?", tags="session:one keep:yes")
    store.add("A sunrise!", tags="session:one")
    store.add("And a lake", tags="session:one keep:yes project:other")
    assert store.answer("tag:keep:yes paint") == [0, 2]
    assert store.answer("tag:keep:yes paint", Scope(project="this")) == [0]


def test_vectors_find_nodes_without_common_words(store: Store) -> None:
    store.add("We authenticate with OAuth", "Login needs a form", "The moon", tags="kind:x")
    near = store.near({0: 0.9, 1: 0.6, 2: 0.1})
    assert store.answer("login") == [1]
    found = store.rank("login", near=near)
    assert [store.ids.index(each.node.id) for each in found] == [1, 0, 2]
    assert (found[1].nearness, found[1].coverage) == (0.9, 0.0)
    assert store.answer("type:decision login", near=near) == []


def test_vectors_of_only_some_nodes_do_not_change_the_order(store: Store) -> None:
    store.add("Login needs a form for login", "Login is somewhere", "The moon", tags="kind:x")
    assert store.answer("login") == [0, 1]
    some = store.near({1: 0.9, 2: 0.8})
    assert store.answer("login", near=some) == [0, 1]
    assert store.answer("lunar", near=some) == [1, 2]
    every = store.near({0: 0.1, 1: 0.9, 2: 0.8})
    assert store.answer("login", near=every) == [1, 0, 2]


def test_superseded_nodes_are_left_out_or_come_last(store: Store) -> None:
    store.add("Deploys run on Fridays, deploys", "Deploys run on Mondays")
    store.replace(0, 1)
    assert store.answer("deploys") == [1]
    every = Scope(include_superseded=True)
    assert store.answer("deploys", every) == [1, 0]
    # Nor does a day in the question raise it above its successor.
    store.add("Mail runs on Fridays", "Mail runs on Mondays", at="2023-06-27T10:00:00Z")
    store.replace(2, 3)
    found = store.rank("mail on 27 June 2023", every)
    assert [store.ids.index(each.node.id) for each in found][:2] == [3, 2]
    assert found[1].score == pytest.approx(0.5, abs=0.01)


def test_typing_errors_are_tolerated(store: Store) -> None:
    store.add("Uses TypeScript", "Mongo is the database", "Redis as a cache", "Errors are values")
    for typed, meant in (
        ("typscript", [0]),
        ("typsecript", [0]),
        ("typescripts", [0]),
        ("reedis", [2]),
        ("eror", [3]),
        ("mango", []),
        ("red", []),
    ):
        assert store.answer(typed) == meant, typed


def test_nodes_of_a_day_in_the_question_rank_higher(store: Store) -> None:
    store.add("We went camping", at="2023-06-27T10:00:00Z")
    store.add("We went camping", at="2023-07-10T10:00:00Z")
    store.add("We went camping again", at="2023-08-01T10:00:00Z")
    assert store.answer("when did they go camping in June?")[0] == 0
    assert store.answer("camping on 10 July 2023")[0] == 1
    first = store.rank("camping on 10 July 2023")[0]
    assert rounded_signals(first)["time"] == pytest.approx(0.68, abs=0.01)
    query = parse("What did we do on 27 June 2023?")
    found = node_ranking.rank(Graphs([store.graph]), query, Scope(), NOW_MS, 10, None, ("time",))
    assert "time" not in {name for each in found for name, _ in each.signals}


def test_a_question_with_only_a_day_finds_the_nodes_of_that_day(store: Store) -> None:
    """2027-01-15 is today."""
    store.add("Moved to Postgres because two writers blocked each other", at="2027-01-14T09:00:00Z")
    store.add("Ok", at="2027-01-14T09:01:00Z")
    store.add("What did we do here, and what did we do there?", at="2026-12-01T10:00:00Z")
    store.add("Tokens expire after a day", at="2027-01-10T10:00:00Z")
    assert store.answer("What did we do yesterday?")[:2] == [0, 1]
    found = node_ranking.relevant(store.rank("What did we do yesterday?"))
    assert [store.ids.index(each.node.id) for each in found] == [0, 1]
    assert {each.coverage for each in found} == {1.0}
    assert store.answer("What happened last week?")[:1] == [3]
    # The only nodes near that day are from the day after it.
    assert store.answer("What happened on 13 January 2027?") == []


def test_a_deadline_or_a_current_time_does_not_replace_the_words(store: Store) -> None:
    """2027-01-15 is today."""
    store.add("Saving 4,000 euros is the goal of the savings plan", at="2026-02-01T10:00:00Z")
    store.add("The parser has to be finished by early June", at="2026-03-01T10:00:00Z")
    for number in range(20):
        store.add(f"Talked about the plan of chore {number}", at="2027-01-10T10:00:00Z")
        store.add(f"Talked about the plan of chore {number}", at="2026-06-05T10:00:00Z")
    assert store.answer("What is the goal of my savings plan for this year?")[0] == 0
    assert store.answer("Which part of the plan has to be finished by early June?")[0] == 1
    chores = [each for each in store.rank("chore 7 by early June") if "7" in each.node.content]
    assert chores[0].node.created_at[:7] == "2026-06"
    assert "time" in rounded_signals(chores[0])
    assert store.answer("What did we do this year?")[0] != 0


def test_of_several_sessions_the_one_that_says_most_about_a_question_comes_first(
    store: Store,
) -> None:
    store.add("The encoder fails on surrogates", *["Done"] * 3, tags="session:fixed")
    store.add("Surrogates are written to pipes as they are", tags="session:fixed")
    store.add("The encoder fails on surrogates", *["Done"] * 3, tags="session:other")
    question = "The encoder fails on surrogates in pipes"
    assert store.answer(question)[:3] == [0, 5, 4]
    found = node_ranking.rank(
        Graphs([store.graph]), question, EVERYWHERE, NOW_MS, 10, without=["session"]
    )
    assert store.ids.index(found[0].node.id) == 5


def test_a_date_in_the_text_of_a_node_counts(store: Store) -> None:
    store.add("The cache was cleared", "The cache was cleared yesterday", at="2023-05-08T10:00:00Z")
    assert store.answer("What happened to the cache on 7 May 2023?")[0] == 1
    assert store.answer("the cache on 7 May 2023 tag:other") == []


def test_before_and_after_an_event_are_understood(store: Store) -> None:
    store.add("Chose the schema for orders", at="2026-03-01T10:00:00Z")
    store.add("The migration to Postgres is done", at="2026-04-01T10:00:00Z")
    store.add("Dropped the old tables", at="2026-04-20T10:00:00Z")
    for number in range(40):
        store.add(f"We did chore {number}", at=f"2025-{1 + number % 12:02}-01T10:00:00Z")
    assert store.answer("What did we do before the migration?")[0] == 0
    after = store.answer("What did we do after the migration?")
    assert 2 in after
    assert 0 not in after
    # Other words than common ones describe the answer better than its time.
    assert "time" not in rounded_signals(store.rank("Who dropped tables before the migration?")[0])


def test_several_stores_are_ranked_together_and_only_relevant_nodes_kept(store: Store) -> None:
    store.add("Kubernetes runs on EKS, k8s", "Ship Vitest", "Ship Helm", *["Ship it"] * 5)
    with graph() as second:
        other = Store(second)
        other.add("We need k8s", "Dogs")
        graphs = Graphs([second, store.graph])
        found = node_ranking.rank(graphs, parse("k8s"), Scope(), NOW_MS, 10)
        assert {each.node.id for each in found} == {store.ids[0], other.ids[0]}
    found = store.rank("what do we ship k8s for?")
    assert len(found) == 8
    assert [each.node.id for each in node_ranking.relevant(found)] == [store.ids[0]]
    assert node_ranking.relevant([]) == []


def test_a_question_with_only_weak_matches_is_not_answered(store: Store) -> None:
    question = "Which vet treats the fever of the zebras that we ship to Nairobi?"
    connections = [store.graph.connection]
    store.add("Zebras are in the fixtures of the parser")
    assert node_ranking.is_answered(connections, store.rank(question))
    store.add(*(f"Ship version {number} of the parser" for number in range(300)))
    found = store.rank(question)
    assert found
    assert not node_ranking.is_answered(connections, found)
    assert not node_ranking.is_answered(connections, [])
    assert node_ranking.is_answered(connections, store.rank("zebras"))
    near = [each._replace(nearness=0.45) for each in found]
    assert node_ranking.is_answered(connections, near)
    store.add("Moved to Postgres", at="2027-01-14T09:00:00Z")
    of_the_day = store.rank("Which meetings did the team have yesterday?")
    assert store.ids.index(of_the_day[0].node.id) == 301
    assert node_ranking.is_answered(connections, of_the_day), "it is from that day"


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("リフレッシュトークンはサーバーに保存する", "トークンはどこ"),
        ("更新令牌存放在服务器上", "令牌在哪里"),
        ("更新令牌存放在服务器上", "更"),
        ("what is it", "what is it"),
        ('He said "AND OR NOT" (NEAR)', 'NEAR(a b, 2) AND "said'),
    ],
)
def test_any_script_and_punctuation_is_accepted(store: Store, content: str, question: str) -> None:
    store.add("Something else altogether", content)
    assert store.answer(question)[:1] == [1]


@pytest.mark.slow
def test_long_questions_are_ranked(store: Store) -> None:
    store.add("The socket was closed", "The queue is full")
    trace = "\n".join(f'  File "a{number}.py", line {number}, in run' for number in range(2_000))
    assert store.answer(f"socket closed\n{trace}")[0] == 0
    many = " ".join(f"word{number}" for number in range(10_000))
    assert store.answer(f"{many} socket") == []
    assert store.answer(f"socket\n{many}") == [0]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=effort.times(30),
    deadline=None,
)
@given(question=st.text(max_size=60), limit=st.integers(1, 4))
def test_any_question_is_accepted(store: Store, question: str, limit: int) -> None:
    if not store.ids:
        store.add("Ein Café in 東京", "a b c", "NOT (x OR y)*", tags="session:s")
    if not question.strip():
        return
    query = parse(f"x {question}")
    found = node_ranking.rank(Graphs([store.graph]), query, Scope(), NOW_MS, limit)
    assert len(found) <= limit
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert node_ranking.relevant(found) == found[: len(node_ranking.relevant(found))]
