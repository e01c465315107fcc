import math
import sqlite3
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import terms
from ctx.code import file_roles, file_words, postings
from ctx.code.bm25 import Bm25Collection
from ctx.code.file_words import BODY, NAMES, PATH, SUBJECT
from ctx.code.postings import COMMITS, FILES, SCHEMA
from ctx.sqlite.connection import execute_script
from tests import effort

WORDS = "retry token cache socket render parse flush merge".split()
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def empty_index() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    execute_script(connection, SCHEMA)
    return connection


def scored(
    connection: sqlite3.Connection, collection: int, field: str, weights: Mapping[str, float]
) -> dict[int, float]:
    scores = Bm25Collection(connection, collection).scores({field: 1.0}, weights)
    found = {}
    for segment, totals, fields in scores:
        for position, (id, score) in enumerate(zip(segment.ids, totals, strict=True)):
            if score:
                found[id] = score
                assert fields[field][position] == score
    return found


def plain_bm25(texts: Mapping[int, str], weights: Mapping[str, float]) -> dict[int, float]:
    """The textbook formula of BM25."""
    said = {id: Counter(terms.extract(text)) for id, text in texts.items()}
    mean = sum(map(Counter.total, said.values())) / len(said) if said else 0.0
    found: dict[int, float] = {}
    for term, weight in weights.items():
        having = [id for id in said if said[id][term]]
        rare = math.log(1 + (len(said) - len(having) + 0.5) / (len(having) + 0.5))
        for id in having:
            times = said[id][term]
            norm = 1.2 * (0.25 + 0.75 * said[id].total() / mean)
            found[id] = found.get(id, 0.0) + weight * rare * 2.2 * times / (times + norm)
    return found


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 9), TEXTS),
            st.tuples(st.just("remove"), st.integers(1, 9), st.just("")),
            st.tuples(st.just("settle"), st.just(0), st.just("")),
            st.tuples(st.just("merge"), st.just(0), st.just("")),
        ),
        max_size=40,
    ),
    asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=effort.times(80), deadline=None)
def test_scores_equal_the_textbook_formula(
    steps: list[tuple[str, int, str]], asked: list[str]
) -> None:
    connection, texts = empty_index(), dict[int, str]()
    for step, id, text in steps:
        if step == "put":
            postings.put(connection, COMMITS, id, 1, file_words.of_message(text))
            texts[id] = text
        elif step == "remove":
            postings.remove(connection, COMMITS, [id])
            texts.pop(id, None)
        elif step == "settle":
            postings.settle(connection, COMMITS)
        else:
            postings._merge(connection, COMMITS)
    weights = {terms.extract(word)[0]: 1.0 + place for place, word in enumerate(asked)}
    expected = plain_bm25(texts, weights)
    assert scored(connection, COMMITS, SUBJECT, weights) == pytest.approx(expected)


@given(before=TEXTS, after=TEXTS, settled=st.booleans())
@settings(max_examples=effort.times(50), deadline=None)
def test_a_replaced_text_is_not_found(before: str, after: str, settled: bool) -> None:
    connection = empty_index()
    postings.put(connection, COMMITS, 1, 1, file_words.of_message(before))
    postings.put(connection, COMMITS, 2, 1, file_words.of_message("other things"))
    postings.settle(connection, COMMITS)
    postings.put(connection, COMMITS, 1, 1, file_words.of_message(after))
    if settled:
        postings.settle(connection, COMMITS)
    for word in WORDS:
        found = scored(connection, COMMITS, SUBJECT, {terms.extract(word)[0]: 1.0})
        assert set(found) == ({1} if word in after.split() else set())


def test_many_segments_are_merged() -> None:
    connection = empty_index()
    for number in range(20):
        postings.put(
            connection, FILES, number, 0, file_words.of_file(f"src/f{number}.py", "flush", ())
        )
        postings.settle(connection, FILES)
    assert connection.execute("SELECT count(*) FROM segments").fetchone()[0] <= 9
    assert set(scored(connection, FILES, BODY, {"flush": 1.0})) == set(range(20))


def test_fields_and_collections_do_not_mix() -> None:
    connection = empty_index()
    postings.put(connection, FILES, 1, 0, file_words.of_file("net/retry.py", "socket", ["Cache"]))
    postings.put(connection, COMMITS, 1, 1, file_words.of_message("token"))
    for is_settled in (False, True):
        if is_settled:
            postings.settle(connection, FILES)
            postings.settle(connection, COMMITS)
        assert set(scored(connection, FILES, BODY, {"socket": 1.0})) == {1}
        assert set(scored(connection, FILES, PATH, {"retry": 1.0})) == {1}
        assert set(scored(connection, FILES, NAMES, {terms.stem("cache"): 1.0})) == {1}
        assert set(scored(connection, COMMITS, SUBJECT, {"token": 1.0})) == {1}
        assert scored(connection, FILES, BODY, {"retry": 1.0, "token": 1.0, "py": 1.0}) == {}
    postings.clear(connection, FILES)
    assert scored(connection, FILES, BODY, {"socket": 1.0}) == {}
    assert set(scored(connection, COMMITS, SUBJECT, {"token": 1.0})) == {1}


def test_an_empty_index_or_query_gives_no_scores() -> None:
    connection = empty_index()
    assert scored(connection, FILES, BODY, {"socket": 1.0}) == {}
    postings.put(connection, FILES, 1, 0, file_words.of_file("", "", ()))
    assert scored(connection, FILES, BODY, {"socket": 1.0}) == {}
    postings.settle(connection, FILES)
    assert scored(connection, FILES, BODY, {}) == {}


ROLES = {
    file_roles.SOURCE: "src/net/client.py src/testament/client.py src/latest/contest.py"
    " src/audit.java app/migrations/first/models.py",
    file_roles.BESIDE: "tests/test_client.py pkg/client_test.go src/Button.stories.tsx docs/conf.py"
    " packages/core/__tests__/a.spec.ts src/main/java/ClientTest.java README.md src/tests/a.py",
    file_roles.AUXILIARY: "setup.py app/migrations/0001_initial.py .github/scripts/a.py"
    " vendor/a/b.go migrations/0001_initial.py",
}


def test_the_role_of_a_file_follows_from_its_path() -> None:
    for role, paths in ROLES.items():
        assert {path: file_roles.role_of(path) for path in paths.split()} == dict.fromkeys(
            paths.split(), role
        )
