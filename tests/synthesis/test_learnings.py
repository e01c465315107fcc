"""Statements that recur over sessions become learnings, and others do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import clock
from ctx.memory import learning_confidence
from ctx.memory.learning_confidence import confidence
from ctx.synthesis import learnings
from ctx.synthesis.dedupe import contradicts
from ctx.synthesis.learnings import ObservedStatement, SessionWork, candidates

NOW_MS = 1_780_000_000_000


def day(number: int) -> str:
    return f"2026-03-{number:02d}T10:00:00Z"


def session_work(number: int, **shown: tuple[str, ...]) -> SessionWork:
    return SessionWork(f"s{number}", day(number), **shown)


def statement(kind: str, text: str, number: int, files: tuple[str, ...] = ()) -> ObservedStatement:
    return ObservedStatement(kind, text, (f"s{number}",), day(number), files)


def texts(found: list[learnings.LearningCandidate]) -> list[tuple[str, str, int]]:
    return [(each.category, each.text, len(each.sessions)) for each in found]


def test_a_check_of_several_sessions_is_a_convention() -> None:
    runs = ("make test", "cd /somewhere && make test 2>&1 | tail -5", "make  test || true")
    found = candidates([session_work(n, checks=(run,)) for n, run in enumerate(runs, 1)], [])
    assert texts(found) == [("convention", "Tests are run with `make test`.", 3)]
    assert found[0].last_seen == day(3)


@pytest.mark.parametrize(
    "command", ["pytest tests/test_a.py", "pytest -k x::y", "cargo test -- " + "x" * 200]
)
def test_a_check_of_one_file_is_not_a_convention(command: str) -> None:
    assert candidates([session_work(n, checks=(command,)) for n in range(1, 5)], []) == []


def test_notations_of_a_check_are_one_convention() -> None:
    runs = ("pytest -q", "timeout 60 pytest -q", "uv run pytest", "pytest -q -x", "pytest tests/a")
    one = ("pytest -q -k cart", "cargo test expires", "ruff check && pytest")
    found = candidates([session_work(n, checks=(*runs, *one)) for n in (1, 2, 3)], [])
    assert texts(found) == [
        ("convention", "Tests are run with `pytest -q`.", 3),
        ("convention", "The code is checked with `ruff check`.", 3),
    ]


def test_a_formatter_is_not_a_check() -> None:
    found = candidates([session_work(n, checks=("mise run fmt",)) for n in (1, 2, 3)], [])
    assert texts(found) == [("convention", "The code is formatted with `mise run fmt`.", 3)]


def test_two_sessions_are_not_enough_for_a_convention() -> None:
    assert candidates([session_work(n, checks=("make test",)) for n in (1, 2)], []) == []


def test_a_repeatedly_installed_package_is_a_dependency() -> None:
    sessions = [
        session_work(1, ran=("pip install -q httpx",)),
        session_work(2, ran=("pip install httpx",)),
    ]
    assert texts(candidates(sessions, [])) == [
        ("dependency", "It needs httpx (`pip install httpx`).", 2)
    ]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("pip install -r requirements.txt", []),
        ("pip install --upgrade pip", []),
        ("pip install -e . -c pins.txt", []),
        ("pip install src/app", []),
        ("go get github.com/x/y@v1", ["It needs github.com/x/y (`go get github.com/x/y`)."]),
        ("npm install 2>/dev/null", []),
        ("npm install --registry https://r.example", []),
        ("npm install --save-dev jest@29", ["It needs jest (`npm install jest`)."]),
        ("npm i @types/node", ["It needs @types/node (`npm i @types/node`)."]),
        ("cargo add serde --features derive", ["It needs serde (`cargo add serde`)."]),
        ("pip install -q flask # for test", ["It needs flask (`pip install flask`)."]),
        ('pip install "pydantic>=2,<3"', ["It needs pydantic (`pip install pydantic`)."]),
        ("pip install 'unclosed", []),
    ],
)
def test_only_packages_are_dependencies(command: str, found: list[str]) -> None:
    sessions = [session_work(n, ran=(command,)) for n in (1, 2)]
    assert [each.text for each in candidates(sessions, [])] == found


def test_files_that_change_together_are_a_pattern() -> None:
    both = ("src/schema.sql", "src/migrations.py")
    sessions = [session_work(n, edited=(*both, f"src/x{n}.py")) for n in (1, 2, 3)]
    assert texts(candidates(sessions, [])) == [
        ("pattern", "`src/migrations.py` and `src/schema.sql` are changed together.", 3)
    ]
    alone = [session_work(n, edited=("src/schema.sql",)) for n in range(4, 9)]
    assert candidates([*sessions, *alone], []) == []


def test_many_files_that_change_together_are_one_learning() -> None:
    code = tuple(f"src/{name}.py" for name in "abcde")
    beside = ("CHANGELOG.md", "README.md", "package-lock.json", "uv.lock", "tests/test_a.py")
    sessions = [session_work(n, edited=(*code, *beside)) for n in (1, 2, 3)]
    named = "`src/a.py`, `src/b.py`, `src/c.py`, `src/d.py` and 1 more are changed together."
    assert texts(candidates(sessions, [])) == [("pattern", named, 3)]
    own = [session_work(n, edited=("src/a.py", "tests/test_a.py")) for n in (1, 2, 3)]
    assert candidates(own, []) == []


def test_similar_short_rules_are_one_learning() -> None:
    said = [
        statement("decision", "Never use floats for money", 1)._replace(human=True),
        statement("decision", "Money must never be a float", 2)._replace(human=True),
    ]
    assert [each.text for each in candidates([], said)] == ["Money must never be a float"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use httpx instead of requests", "Use requests instead of httpx"),
        ("Keep retries at 3 everywhere here", "Keep retries at 5 everywhere here"),
        ("The N+1 query in `report` is slow", "The N+1 query in `export` is slow"),
    ],
)
def test_similar_words_with_another_meaning_are_not_a_repetition(one: str, other: str) -> None:
    for kind in ("decision", "discovery"):
        assert candidates([], [statement(kind, one, 1), statement(kind, other, 2)]) == []


def test_a_repeated_decision_becomes_a_learning() -> None:
    said = [
        statement("decision", "Use tabs for indentation in Makefiles", 1),
        statement("decision", "Tabs are used for indentation in the Makefiles", 2),
        statement("decision", "Ship on Fridays", 2),
    ]
    # Two sessions are enough for what a person says, agents repeat each other's documents.
    assert candidates([], said) == []
    said.append(statement("decision", "Tabs are used for the indentation in Makefiles", 3))
    found = candidates([], said)
    assert texts(found) == [("convention", "Tabs are used for the indentation in Makefiles", 3)]
    in_one = [each._replace(sessions=("s1",)) for each in said]
    assert candidates([], in_one) == []


def fix(text: str, number: int, *files: str) -> ObservedStatement:
    return statement("bugfix", text, number, files)._replace(is_verified=True)


def test_a_test_that_broke_again_becomes_a_learning() -> None:
    fixes = [
        fix("Fixed `test_retry` in src/net.py: TimeoutError", 1, "src/net.py"),
        fix("Fixed `test_other` in src/net.py: KeyError", 2, "src/net.py"),
        fix(
            "Fixed `test_a` and `test_retry` in src/net.py: no backoff", 4, "src/net.py", "src/a.py"
        ),
    ]
    (found,) = candidates([], fixes)
    assert found.text == (
        "`test_retry` broke in 2 sessions, fixed in `src/net.py` and `src/a.py`;"
        " the last time: no backoff"
    )
    assert (found.sessions, found.files) == (("s1", "s4"), ("src/net.py", "src/a.py"))


def test_a_file_that_changes_often_is_not_a_problem() -> None:
    # Different checks failed, and what an agent calls a fix was never checked.
    other = [fix(f"Fixed `test_{n}` in src/net.py: KeyError", n, "src/net.py") for n in (1, 2, 3)]
    said = [
        statement("bugfix", "Fixed `btn-primary` in src/net.py", n, ("src/net.py",)) for n in (4, 5)
    ]
    assert candidates([], [*other, *said]) == []


def test_answers_to_questions_are_not_conventions() -> None:
    text = "What would you like to do with this todo: Work on it now"
    said = [statement("decision", text, n)._replace(human=True) for n in (1, 2, 3)]
    assert candidates([], said) == []


def test_files_that_change_together_on_one_day_are_not_a_pattern() -> None:
    both = ("src/dialog.ts", "src/navigation.ts")
    sessions = [
        session_work(n, edited=both)._replace(at=f"2026-03-01T1{n}:00:00Z") for n in (1, 2, 3)
    ]
    assert candidates(sessions, []) == []


def test_a_generator_script_is_not_a_check() -> None:
    runs = [session_work(n, checks=("pnpm api:generate",)) for n in (1, 2, 3)]
    assert candidates(runs, []) == []


def test_the_wording_of_a_person_is_kept() -> None:
    said = [
        statement("decision", "Never edit a released migration", 1)._replace(human=True),
        statement("decision", "A released migration is never edited by us", 2),
    ]
    assert [each.text for each in candidates([], said)] == ["Never edit a released migration"]


def test_confidence_depends_on_sessions_time_and_contradictions() -> None:
    assert [confidence(n, 0) for n in (1, 2, 4, 50)] == [293, 500, 750, 900]
    assert confidence(4, 30) == 750
    assert confidence(4, 30 + 90) == 375
    assert confidence(4, 0, 1) == 375
    old = {"confidence": 1000, "times_seen": 1, "last_seen": "2020-01-01T00:00:00Z"}
    assert learning_confidence.confidence_at({**old, "origin": "human"}, NOW_MS) == 1000
    assert learning_confidence.confidence_at({}, NOW_MS) == 1000
    seen = {"origin": "inferred", "confidence": 750, "times_seen": 4}
    for days, expected in ((0, 750), (30, 750), (120, 375)):
        last_seen = clock.iso(NOW_MS - days * 86_400_000)
        found = learning_confidence.confidence_at({**seen, "last_seen": last_seen}, NOW_MS)
        assert found == expected


@given(st.integers(1, 1000), st.floats(0, 10_000), st.integers(0, 50))
def test_confidence_stays_within_its_bounds(sessions: int, days: float, against: int) -> None:
    sure = confidence(sessions, days, against)
    assert 0 <= sure <= 900
    assert confidence(sessions, days + 1, against) <= sure
    assert confidence(sessions, days, against + 1) <= sure


@pytest.mark.parametrize(
    ("said", "learning", "expected"),
    [
        ("Don't run make test any more", "`make test` checks the work.", False),
        ("We no longer use tabs for indentation", "Use tabs for indentation", True),
        ("Use tabs for indentation", "Use tabs for indentation", False),
        ("Use requests instead of httpx", "Use httpx instead of requests", True),
        ("We no longer deploy on Fridays", "Use tabs for indentation", False),
    ],
)
def test_contradictions_are_recognised(said: str, learning: str, expected: bool) -> None:
    assert contradicts(said, learning) is expected


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            ObservedStatement,
            st.sampled_from(["decision", "discovery", "bugfix", "feature"]),
            st.text(max_size=80),
            st.lists(st.sampled_from("abcd"), max_size=3).map(tuple),
            st.sampled_from([day(n) for n in range(1, 9)]),
            st.lists(st.sampled_from(["a.py", "b.py"]), max_size=2).map(tuple),
        ),
        max_size=12,
    ),
    st.lists(
        st.builds(
            SessionWork,
            st.sampled_from("abcd"),
            st.just(day(1)),
            st.lists(st.text(max_size=60), max_size=3).map(tuple),
            st.lists(st.text(max_size=60), max_size=3).map(tuple),
            st.lists(st.sampled_from(["a.py", "b.py", "c.py"]), max_size=3).map(tuple),
        ),
        max_size=4,
        unique_by=lambda each: each.session,
    ),
)
def test_any_input_gives_valid_learnings(
    said: list[ObservedStatement], sessions: list[SessionWork]
) -> None:
    found = candidates(sessions, said)
    assert len({each.key for each in found}) == len(found)
    assert all(len(each.text) <= 240 and each.text.strip() for each in found)
    assert all(len(set(each.sessions)) >= 2 for each in found if not each.key.startswith("check"))
