"""Sessions that a model summarises: questions, stored answers, and the resulting nodes."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.capture import pipeline, session_state
from ctx.config.resolve import Config
from ctx.errors import BudgetExceeded, ModelFailure
from ctx.exchange import scrub_store as scrubbing
from ctx.ids import NodeId
from ctx.llm.ledger import Ledger, Purpose
from ctx.llm.protocol import Answer, Capabilities, Usage
from ctx.llm.scripted_backend import ScriptedBackend
from ctx.operations import model_questions, sessions
from ctx.operations.model_questions import SynthesisModel
from ctx.operations.session_synthesis import plan_synthesis, synthesise_now
from ctx.redaction import needle
from ctx.sqlite.connection import transaction
from ctx.synthesis.by_model import model_answers
from ctx.synthesis.session_writer import synthesise
from ctx.workspace import Memory
from tests.synthesis import session_scripts
from tests.synthesis.test_session_writer import FIX, add_steps, count, nodes

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
EXPLANATION = "say: The lock was taken after the check, so two threads refreshed the token.\n"
NOTHING = json.dumps({"observations": []})
MENDED = "Tokens are refreshed once, as the lock comes first"


def observations_json(*said: dict[str, Any]) -> str:
    return json.dumps({"observations": said})


def observation(kind: str, title: str, *numbers: int) -> dict[str, Any]:
    return {"kind": kind, "title": title, "text": "", "steps": list(numbers), "files": []}


FIXED = observations_json(observation("bugfix", MENDED, 2, 4, 5))
SUMMED_UP = json.dumps(
    {
        "title": "Tokens that were refreshed twice",
        "request": "Make the failing test pass",
        "investigated": [],
        "learned": ["The lock was taken after the check"],
        "completed": [MENDED],
        "next_steps": [],
        "notes": [],
    }
)


@pytest.fixture
def ledger(surroundings: Path) -> Iterator[Ledger]:
    (surroundings / ".ctx").mkdir(exist_ok=True)
    with Ledger(str(surroundings / ".ctx" / "ledger.db")) as ledger:
        yield ledger


def asking(memory: Memory, ledger: Ledger, *replies: Any, **caps: int) -> SynthesisModel:
    return SynthesisModel(ScriptedBackend(replies), ledger, config(memory, **caps))


def config(memory: Memory, **caps: int) -> Config:
    variables = {f"CTX_LLM_{name.upper()}": str(value) for name, value in caps.items()}
    return memory.environment._replace(variables=variables).user_config


def scripted(asks: SynthesisModel) -> ScriptedBackend:
    assert isinstance(asks.backend, ScriptedBackend)
    return asks.backend


def end(memory: Memory, session: str = "s1", status: session_state.Status = "completed") -> None:
    with transaction(memory.local):
        session_state.end(memory.local, session, status)


def add_fix(memory: Memory) -> None:
    """A session that is over: a fix, and its explanation."""
    add_steps(memory, FIX + EXPLANATION)
    end(memory)


def now(memory: Memory, asks: SynthesisModel, session: str = "s1", **options: bool) -> Any:
    again = options.get("again", False)
    return synthesise_now(memory, session, asks, model_questions.voice(config(memory)), again=again)


def stored_answers(memory: Memory, session: str = "s1") -> list[tuple[str, str, str]]:
    found = model_answers.of_session(memory.local, session)
    return [(each.kind, each.problem, each.model) for each in found]


def titles(memory: Memory) -> list[str]:
    return [title for _, title, _ in nodes(memory)]


def test_a_session_gets_the_wording_of_the_model(memory: Memory, ledger: Ledger) -> None:
    add_steps(memory, FIX + EXPLANATION)
    before = synthesise(memory, "s1", is_over=False)
    end(memory)
    asks = asking(memory, ledger, FIXED, SUMMED_UP)
    found = now(memory, asks)
    assert [(each.kind, each.steps, each.observations) for each in found.asked] == [
        ("steps", 6, 1),
        ("summary", 0, 0),
    ]
    # The end of the session is kept in the agent's words too.
    assert (found.new, found.changed, found.withdrawn) == (1, 2, 0)
    # The same node as before, with other words.
    fix = memory.graph.node(before.new[0])
    assert fix.content.startswith(f"{MENDED}\n\n`pytest tests/test_auth.py` failed at src/auth.py")
    shown = sessions.show(memory, "s1")
    assert shown.summary["learned"] == ["The lock was taken after the check"]
    assert shown.summary["files_edited"] == ["src/auth.py"]
    assert stored_answers(memory) == [("steps", "", "scripted"), ("summary", "", "scripted")]
    # The summary is made from what was told, not from the steps.
    summary = scripted(asks).requests[1].prompt
    assert MENDED in summary
    assert "[2]" not in summary
    # Whoever asks again asks nobody, and changes nothing.
    records = count(memory)
    assert now(memory, asking(memory, ledger)).asked == ()
    synthesise(memory, "s1", is_over=True)
    assert count(memory) == records


def test_due_questions_are_listed(memory: Memory) -> None:
    voice = model_questions.voice(config(memory))

    def due() -> list[tuple[str, int]]:
        session = session_state.get(memory.local, "s1")
        found = model_questions.due_questions(memory.local, session, voice)
        return [(each.kind, len(each.steps)) for each in found]

    add_steps(memory, FIX)
    assert due() == []
    add_steps(memory, FIX + EXPLANATION)
    assert due() == [("steps", 6)]
    end(memory)
    assert due() == [("steps", 6), ("summary", 1)]
    add_steps(memory, "read: a.py\nread: b.py\nread: c.py\nread: d.py\n", "s2")
    end(memory, "s2")
    session = session_state.get(memory.local, "s2")
    # Nobody has asked for anything.
    assert model_questions.due_questions(memory.local, session, voice) == []


def test_a_continued_session_gets_a_new_summary(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    now(memory, asking(memory, ledger, NOTHING, SUMMED_UP))
    assert titles(memory)[-1] == "Tokens that were refreshed twice"
    more = "prompt: Also keep the queue in SQLite\nwrite: src/queue.py +9 -0\nsay: Done.\n"
    add_steps(memory, FIX + EXPLANATION + more)
    synthesise(memory, "s1", is_over=True)
    assert titles(memory)[-1] != "Tokens that were refreshed twice"
    later = SUMMED_UP.replace("Tokens that were refreshed twice", "Tokens, and a queue")
    asks = asking(memory, ledger, NOTHING, later)
    assert [each.steps for each in now(memory, asks).asked] == [3, 0]
    # What had been asked for before is known.
    assert "[1] the person said:" in scripted(asks).requests[0].prompt
    assert titles(memory)[-1] == "Tokens, and a queue"


def test_an_invalid_answer_is_repaired_once(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    quoted = FIXED.replace('"', "'")
    asks = asking(memory, ledger, quoted, f"```json\n{FIXED}\n```", SUMMED_UP)
    now(memory, asks)
    assert MENDED in titles(memory)
    second = scripted(asks).requests[1].prompt
    assert f"    {quoted}\n" in second
    assert "it is no JSON object, or not a whole one." in second


def test_an_answer_that_cannot_be_repaired_changes_nothing(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    synthesise(memory, "s1", is_over=True)
    before = nodes(memory)
    asks = asking(memory, ledger, "{No.", "No!", "{", '{"learned": 1}')
    found = now(memory, asks)
    assert [each.problem for each in found.asked] == [
        "The answer could not be used: it is no JSON object, or not a whole one.",
        'The answer could not be used: "learned" is no list of texts.',
    ]
    assert nodes(memory) == before
    # It is not asked again, unless somebody says so.
    assert now(memory, asking(memory, ledger)).asked == ()
    now(memory, asking(memory, ledger, FIXED, SUMMED_UP), again=True)
    assert MENDED in titles(memory)


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (Answer("I cannot help.", "m", Usage(9, 3), "refused"), "the model refused to answer."),
        (Answer('{"obs', "m", Usage(9, 3), "length"), "it is too long, and was cut off."),
        ("", ""),
        ("I fixed it!", ""),
        ("{", "no JSON object"),
    ],
)
def test_unusable_answers_are_reported_and_repaired_once_if_they_have_json(
    memory: Memory, ledger: Ledger, first: Answer | str, problem: str
) -> None:
    add_steps(memory, FIX + EXPLANATION)
    has_json = "{" in (first.text if isinstance(first, Answer) else first)
    asks = asking(memory, ledger, first, ModelFailure("Nobody answers."))
    [asked] = now(memory, asks).asked
    assert asked.problem
    assert problem in asked.problem
    assert len(scripted(asks).requests) == (2 if has_json else 1)
    assert now(memory, asking(memory, ledger)).asked == ()


@pytest.mark.parametrize(
    "failure",
    [
        ModelFailure("Nobody answers at http://127.0.0.1:1."),
        Answer('{"observations": []}', "m", None, "cut", "The connection broke."),
    ],
)
def test_a_server_error_stores_nothing(
    memory: Memory, ledger: Ledger, failure: ModelFailure | Answer
) -> None:
    add_fix(memory)
    with pytest.raises(ModelFailure):
        now(memory, asking(memory, ledger, failure))
    assert stored_answers(memory) == []
    # What came before it is kept, and told.
    with pytest.raises(ModelFailure):
        now(memory, asking(memory, ledger, FIXED, failure))
    assert stored_answers(memory) == [("steps", "", "scripted")]
    assert MENDED in titles(memory)
    assert [each.kind for each in now(memory, asking(memory, ledger, SUMMED_UP)).asked] == [
        "summary"
    ]


def test_asking_again_replaces_the_answers(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    refactored = observation("refactor", "The lock is taken in one place only", 4)
    now(memory, asking(memory, ledger, observations_json(refactored), SUMMED_UP))
    assert "The lock is taken in one place only" in titles(memory)
    found = now(memory, asking(memory, ledger, FIXED, SUMMED_UP), again=True)
    assert found.withdrawn == 1
    assert "The lock is taken in one place only" not in titles(memory)
    # Where nobody answers, all stays.
    with pytest.raises(ModelFailure):
        now(memory, asking(memory, ledger), again=True)
    assert MENDED in titles(memory)


MANY = (
    "prompt: Make many modules\n"
    + "".join(
        f"write: src/module_{number}.py +30 -2\n  new function work_{number} (x) -> y\n"
        for number in range(400)
    )
    + "say: All of them are there.\n"
)


def part_answer(number: int) -> str:
    return observations_json(
        observation("feature", f"Part {number} of the shop has its modules", 2)
    )


def test_a_failed_repetition_keeps_the_old_answers(memory: Memory, ledger: Ledger) -> None:
    """Old answers stay until there are new ones."""
    add_steps(memory, MANY)
    end(memory)
    room = {"session_token_cap": 1_000_000, "daily_token_cap": 10_000_000}
    now(
        memory,
        asking(memory, ledger, part_answer(1), part_answer(2), part_answer(3), SUMMED_UP, **room),
    )
    before = titles(memory)
    assert [kind for kind, _, _ in stored_answers(memory)] == ["steps", "steps", "steps", "summary"]
    away = ModelFailure("Nobody answers.")
    with pytest.raises(ModelFailure):
        now(memory, asking(memory, ledger, part_answer(4), away, **room), again=True)
    after = titles(memory)
    assert len(stored_answers(memory)) == 4
    assert set(before) - set(after) == {"Part 1 of the shop has its modules"}
    assert set(after) - set(before) == {"Part 4 of the shop has its modules"}
    # The cap lets the summary through alone.
    used = ledger.counted_in(Purpose("synthesis", "s1", None))
    little = asking(memory, ledger, SUMMED_UP, session_token_cap=used + 6_500)
    assert [each.kind for each in now(memory, little, again=True).asked] == ["summary"]
    assert titles(memory) == after
    # An answer that is of no use takes nobody's place either.
    now(memory, asking(memory, ledger, *["What?"] * 8, **room), again=True)
    assert titles(memory) == after
    assert [problem for _, problem, _ in stored_answers(memory)] == [""] * 4


def test_an_answer_from_before_a_scrub_is_not_stored(memory: Memory, ledger: Ledger) -> None:
    add_steps(memory, FIX + EXPLANATION)
    connection = memory.local
    session = session_state.get(connection, "s1")
    scrub = model_questions.last_scrub(connection)
    question = model_questions.due_questions(
        connection, session, model_questions.voice(config(memory))
    )[0]
    answer = asking(memory, ledger, FIXED).ask(question, None)
    assert scrubbing.scrub(connection, needle.word("refreshed"))
    assert not model_questions.keep(memory, answer, scrub)
    assert stored_answers(memory) == []
    # The next question does not have it, and its answer is kept.
    assert now(memory, asking(memory, ledger, NOTHING)).problem == ""
    assert len(stored_answers(memory)) == 1


def test_edits_and_deletions_by_a_person_are_kept(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    written = synthesise(memory, "s1", is_over=True)
    fix, _, summary = written.new
    with memory.transaction("update", "user") as change:
        change.update_node(summary, content="My own words.")
        change.delete_node(fix)
    now(memory, asking(memory, ledger, FIXED, SUMMED_UP))
    assert memory.graph.node(summary).content == "My own words."
    assert MENDED not in titles(memory)


def test_deleted_observations_stay_deleted_after_asking_again(
    memory: Memory, ledger: Ledger
) -> None:
    """In any order and wording of the new answer."""
    waits = observation("discovery", "Retries wait for a second before they try again", 2)
    socket = observation("discovery", "The client keeps its socket open between the tries", 2)
    counted = observation("discovery", "Timeouts are counted in milliseconds here", 2)
    add_fix(memory)
    now(memory, asking(memory, ledger, observations_json(waits, socket, counted), SUMMED_UP))
    by_title = {title: node_id for node_id, title in _ids(memory)}
    with memory.transaction("update", "user") as change:
        change.delete_node(by_title[socket["title"]])
        change.update_node(by_title[counted["title"]], content="Timeouts: milliseconds.")
    before = titles(memory)
    again = {**socket, "title": "Between tries, the client keeps its socket open", "steps": [4]}
    room = {"session_token_cap": 1_000_000}
    now(
        memory,
        asking(memory, ledger, observations_json(again, counted, waits), SUMMED_UP, **room),
        again=True,
    )
    assert titles(memory) == before
    assert memory.graph.node(by_title[counted["title"]]).content == "Timeouts: milliseconds."


def _ids(memory: Memory) -> list[tuple[NodeId, str]]:
    query = "SELECT id, json_extract(metadata, '$.title') FROM nodes WHERE type = 'observation'"
    return memory.local.execute(query).fetchall()


def test_answers_are_deleted_with_their_session_and_later_ones_dropped(
    memory: Memory, ledger: Ledger
) -> None:
    add_steps(memory, FIX + EXPLANATION)
    session = session_state.get(memory.local, "s1")
    voice = model_questions.voice(config(memory))
    question = model_questions.due_questions(memory.local, session, voice)[0]
    answer = asking(memory, ledger, FIXED).ask(question, None)
    now(memory, asking(memory, ledger, FIXED))
    assert len(stored_answers(memory)) == 1
    sessions.delete(memory, "s1", dry_run=False)
    assert stored_answers(memory) == []
    assert not model_questions.keep(memory, answer, 0)
    assert stored_answers(memory) == []


def test_answers_are_removed_with_the_last_step(memory: Memory, ledger: Ledger) -> None:
    add_steps(memory, FIX + EXPLANATION)
    now(memory, asking(memory, ledger, FIXED))
    model_questions.forget(memory.local)
    assert len(stored_answers(memory)) == 1
    with transaction(memory.local):
        memory.local.execute("DELETE FROM events")
    model_questions.forget(memory.local)
    assert stored_answers(memory) == []
    # What was made of them stays.
    assert MENDED in titles(memory)


@pytest.mark.parametrize(
    "forget",
    [
        lambda memory: model_questions.forget(memory.local),
        pipeline.forget,
        lambda memory: sessions.delete(memory, "s1", dry_run=False),
    ],
)
def test_what_belongs_together_is_deleted_in_one_transaction(
    memory: Memory, ledger: Ledger, forget: Callable[[Memory], object]
) -> None:
    add_fix(memory)
    now(memory, asking(memory, ledger, FIXED, SUMMED_UP))
    # One that is about no steps that are still there.
    memory.local.execute("UPDATE model_answers SET session = 's0' WHERE kind = 'summary'")
    run: list[tuple[str, bool]] = []
    memory.local.set_trace_callback(lambda sql: run.append((sql[:6], memory.local.in_transaction)))
    forget(memory)
    memory.local.set_trace_callback(None)
    assert ("DELETE", True) in run
    assert not {("DELETE", False), ("UPDATE", False), ("INSERT", False)} & {*run}


def test_secrets_are_redacted_in_questions_and_answers(memory: Memory, ledger: Ledger) -> None:
    """Also text that was written to the store directly, and text of the model."""
    add_steps(memory, FIX + f"say: The token is {SECRET}, which is in the environment.\n")
    end(memory)
    said = observation("discovery", f"The token of the service is {SECRET} everywhere", 6)
    asks = asking(
        memory, ledger, observations_json(said), SUMMED_UP.replace("The lock", f"{SECRET} The lock")
    )
    now(memory, asks)
    assert len(scripted(asks).requests) == 2
    assert SECRET not in "".join(each.system + each.prompt for each in scripted(asks).requests)
    with closing(memory.local.execute("SELECT body FROM model_answers")) as rows:
        assert SECRET not in str(rows.fetchall())
    session = session_state.get(memory.local, "s1")
    asked, *_ = model_questions.due_questions(
        memory.local, session, model_questions.voice(config(memory)), again=True
    )
    assert SECRET not in str(model_answers.new_answer(asked, "", SECRET, {}, f"No: {SECRET}"))


# What it may take


def test_a_plan_sends_nothing_and_is_an_upper_bound(memory: Memory, ledger: Ledger) -> None:
    add_fix(memory)
    asks = asking(memory, ledger, "{No.", FIXED, "{No.", SUMMED_UP)
    plan = plan_synthesis(memory, "s1", asks, model_questions.voice(config(memory)), again=False)
    cap = config(memory).integer("llm.session_token_cap")
    assert (plan.dry_run, plan.left_today, plan.left_in_session) == (True, 200_000, cap)
    assert scripted(asks).requests == []
    assert stored_answers(memory) == []
    done = now(memory, asks)
    rows = ledger.connection.execute("SELECT sum(reserved), count(*) FROM calls").fetchone()
    assert rows[1] == 4
    assert rows[0] <= plan.most_mended == sum(each.most_mended for each in plan.asked)
    used = ledger.connection.execute("SELECT sum(counted) FROM calls").fetchone()[0]
    assert (done.left_today, done.left_in_session) == (200_000 - used, cap - used)


def test_questions_fit_into_a_small_context(memory: Memory, ledger: Ledger) -> None:
    add_steps(memory, FIX + "read: src/auth.py\n" * 200 + EXPLANATION)
    asks = asking(memory, ledger)
    small = Small()
    asks.backend = small
    voice = asks.voice()
    session = session_state.get(memory.local, "s1")
    assert len(model_questions.due_questions(memory.local, session, voice)) > 1
    small.context_tokens = 1_024
    with pytest.raises(ModelFailure) as raised:
        asks.voice()
    assert raised.value.message == (
        "The model at a script takes 1,024 tokens at once, which is too few to summarise a session."
    )


class Small(ScriptedBackend):
    """A model with a small context."""

    context_tokens = 3_000

    def __init__(self) -> None:
        super().__init__([])

    def probe(self) -> Capabilities:
        return Capabilities("small", self.context_tokens)


def test_the_daily_cap_is_enforced(memory: Memory, ledger: Ledger) -> None:
    add_steps(memory, FIX + EXPLANATION)
    asks = asking(memory, ledger, FIXED, daily_token_cap=1_000)
    with pytest.raises(BudgetExceeded):
        now(memory, asks)
    assert scripted(asks).requests == []
    assert stored_answers(memory) == []


@pytest.mark.parametrize("daily", [200_000, 26_500])
def test_the_cap_leaves_tokens_for_the_summary(memory: Memory, ledger: Ledger, daily: int) -> None:
    add_steps(memory, MANY)
    end(memory)
    voice = model_questions.voice(config(memory))
    plan = plan_synthesis(memory, "s1", asking(memory, ledger), voice, again=False)
    assert len(plan.asked) == 4
    # Also if less is left of the day than of the session.
    caps = {"session_token_cap": 27_000, "daily_token_cap": daily}
    asks = asking(memory, ledger, NOTHING, SUMMED_UP, **caps)
    found = now(memory, asks)
    assert [each.kind for each in found.asked] == ["steps", "summary"]
    assert "because 9,000 are reserved for its summary" in found.problem
    assert sessions.show(memory, "s1").summary["completed"][0] == MENDED


# What the worker looks at


def test_new_steps_are_synthesised_before_a_model_is_asked(memory: Memory) -> None:
    add_steps(memory, FIX + EXPLANATION)
    connection = memory.local
    with transaction(connection):
        connection.execute("UPDATE sessions SET last_at = ?", (clock.iso(clock.now_ms()),))
    assert [each.id for each in model_questions.recent(connection)] == ["s1"]
    with transaction(connection):
        first = session_scripts.steps(FIX)[0].id
        connection.execute("UPDATE sessions SET synthesised = ?", (first,))
    assert model_questions.recent(connection) == []
    synthesise(memory, "s1", is_over=False)
    assert [each.id for each in model_questions.recent(connection)] == ["s1"]
    with transaction(connection):
        month = clock.iso(clock.now_ms() - 30 * 86_400_000)
        connection.execute("UPDATE sessions SET last_at = ?", (month,))
    assert model_questions.recent(connection) == []


def test_a_session_with_late_events_is_asked_about(memory: Memory) -> None:
    """Between two parts of a round, the events are stored and have no steps yet."""
    add_steps(memory, FIX + EXPLANATION)
    connection = memory.local
    synthesise(memory, "s1", is_over=False)
    done = session_state.get(connection, "s1")
    voice = model_questions.voice(config(memory))
    late = "UPDATE events SET status = ? WHERE session = 's1' AND id < ?"
    with transaction(connection):
        connection.execute(late, ("new", done.synthesised))
    while_waiting = model_questions.progress_key(connection, done)
    assert model_questions.due_questions(connection, done, voice) == []
    with transaction(connection):
        connection.execute(late, ("step", done.synthesised))
    synthesise(memory, "s1", is_over=False)
    session = session_state.get(connection, "s1")
    # Nothing else of the session shows that something came.
    assert session == done
    assert len(model_questions.due_questions(connection, session, voice)) == 1
    assert model_questions.progress_key(connection, session) != while_waiting


def test_the_last_problem_is_reported(memory: Memory, ledger: Ledger) -> None:
    connection = memory.local
    assert model_questions.last_problem(connection) is None
    model_questions.note(connection, "s1", ModelFailure(f"The key {SECRET} is refused."))
    problem = model_questions.last_problem(connection)
    assert problem is not None
    assert (problem.session, problem.data["code"]) == ("s1", "E031")
    assert SECRET not in str(problem)
    add_steps(memory, FIX + EXPLANATION)
    now(memory, asking(memory, ledger, FIXED))
    with transaction(connection):
        connection.execute("UPDATE event_log SET at = '2026-01-20T10:00:00Z'")
    assert model_questions.last_problem(connection) is None
