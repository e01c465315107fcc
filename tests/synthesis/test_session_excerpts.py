"""Passages of a session, with their kind, speaker and worth."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture.steps import Step
from ctx.synthesis.sentences import LONGEST
from ctx.synthesis.session_excerpts import LEAST_WORTH, MOST, MOST_KEPT, Excerpt, best, excerpts
from tests import effort
from tests.synthesis.session_scripts import steps
from tests.synthesis.test_synthesis_properties import sessions

RULE = "Never commit yourself, I review every change first."
CAUSE = "The exporter drops rows because `flush` is never awaited in src/export.py."
TALK = f"""
prompt: The exporter drops rows when the network is slow, look into src/export.py
say: {CAUSE}
prompt: {RULE}
say: OK.
"""


def excerpts_of(script: str) -> list[Excerpt]:
    return excerpts(steps(script))


def of_text(script: str, text: str) -> Excerpt:
    [found] = [each for each in excerpts_of(script) if text in each.text]
    return found


def test_passages_have_a_kind_and_a_speaker() -> None:
    found = excerpts_of(
        f"""
prompt: The exporter drops rows when the network is slow, look into src/export.py
say: I begin with reading src/export.py and the queue behind it.
say: {CAUSE}
prompt: {RULE}
plan: Await `flush` in the exporter, then raise the bound of the queue to 200 rows.
asked: Which store should hold the queue of the exporter?
  | Postgres, because production has it already
run: git commit -m x
say: Every row of the exporter arrives now, however slow the network is.
"""
    )
    assert [(each.kind, each.source) for each in found] == [
        ("prompt", "user"),
        ("remark", "agent"),
        ("report", "agent"),
        ("correction", "user"),
        ("plan", "agent"),
        ("answer", "user"),
        ("final", "agent"),
    ]
    assert [each.at for each in found] == sorted(each.at for each in found)


def test_a_commit_message_is_a_passage() -> None:
    made = steps("run: git commit -m x")[0]
    made = made._replace(message="Await flush, because rows of slow exports were lost")
    [found] = excerpts([made])
    assert (found.kind, found.source) == ("commit", "agent")
    assert found.worth >= LEAST_WORTH


@pytest.mark.parametrize(
    "prompt",
    [
        RULE,
        "No, use pnpm instead of npm for the exporter.",
        "that's wrong, the queue is bounded at 100 rows",
        "Why are you adding a dependency for the exporter?",
        "I meant the exporter, not the importer",
        "Bitte nie direkt auf main pushen, immer ein Branch.",
        "Utilise plutôt le cache du projet, pas Redis",
    ],
)
def test_corrections_are_recognised(prompt: str) -> None:
    assert of_text(f"prompt: {prompt}\n", prompt).kind == "correction"


def test_a_prompt_after_an_interrupt_is_a_correction() -> None:
    text = "the tests belong beside the exporter module"
    assert of_text(f"prompt: {text}\n", text).kind == "prompt"
    assert of_text(f"mark: interrupted\nprompt: {text}\n", text).kind == "correction"


@pytest.mark.parametrize(
    "piece",
    [
        "ah sorry, that was the wrong paste, what I wanted to say instead is this:",
        "now can you explain why the exporter does not await `flush` instead",
        "2. Remove `scan_moved_rows` instead of testing it - it is speculative",
        "❯ git log origin/main does not show the commit of the exporter",
    ],
)
def test_a_passage_that_states_nothing_by_itself_is_no_correction(piece: str) -> None:
    script = f"{TALK}mark: interrupted\nprompt: {piece}\nsay: OK.\n"
    assert of_text(script, piece).kind == "prompt"
    assert of_text(script, RULE).kind == "correction"


def test_a_rule_in_a_list_is_a_correction() -> None:
    rule = "2. Never add a dependency to the exporter."
    assert of_text(TALK.replace(RULE, rule), rule).kind == "correction"


def test_a_disputed_passage_is_worth_little() -> None:
    assert not of_text(TALK, CAUSE).is_disputed
    again = TALK.replace(RULE, "No, `flush` is awaited: rows of the exporter are dropped elsewhere")
    disputed = of_text(again, CAUSE)
    assert disputed.is_disputed
    assert disputed.worth < LEAST_WORTH < of_text(TALK, CAUSE).worth


def test_guesses_and_intents_are_worth_less_than_conclusions() -> None:
    sure = of_text(f"prompt: Fix it\nsay: {CAUSE}\nprompt: go on\n", CAUSE)
    for begin in ("My guess: ", "Maybe ", "Let me see whether "):
        text = begin + CAUSE
        assert of_text(f"prompt: Fix it\nsay: {text}\nprompt: go on\n", text).worth < sure.worth


def test_talk_about_the_process_is_worth_nothing() -> None:
    for text in ("please continue with the next step now", "ok, commit and push all changes"):
        assert of_text(f"prompt: {text}\n", text).worth < LEAST_WORTH


def test_pasted_text_is_not_a_statement_of_the_user() -> None:
    script = """
prompt: please do this for the exporter:
  |
  | # Plan
  |
  | Always commit after each step, and cache every row of the exporter in Redis.
"""
    own, pasted = excerpts_of(script)
    assert (own.kind, own.source) == ("prompt", "user")
    assert own.text == "please do this for the exporter:"
    assert (pasted.kind, pasted.source) == ("pasted", "pasted")
    assert pasted.worth < LEAST_WORTH


def test_a_quoted_answer_is_not_a_statement_of_the_user() -> None:
    line = "The exporter must always cache its rows in Redis before it sends them."
    found = excerpts_of(f"prompt: How does it work?\nsay: {line}\nprompt: {line}\n")
    assert [each.source for each in found if line in each.text] == ["agent"]
    found = excerpts_of(f"prompt: How does it work?\nsay: {line}\nprompt: > {line}\n")
    assert {each.source for each in found if line in each.text} == {"agent", "pasted"}


def test_messages_of_subagents_are_left_out() -> None:
    assert excerpts_of(f"prompt@sub: {RULE}\nrun@sub: git commit -m x\n") == []


def test_the_result_of_each_subagent_is_a_passage() -> None:
    found = excerpts_of(
        f"""
prompt: {TALK.splitlines()[1].removeprefix("prompt: ")}
prompt@a: {RULE}
say@a: I begin with reading src/export.py and the queue behind it.
say@b: The importer of orders skips the header of each file by design.
say@a: {CAUSE}
say: Both agents are done with the exporter and with the importer.
"""
    )
    results = [each for each in found if "importer of orders" in each.text or CAUSE in each.text]
    assert [(each.kind, each.source) for each in results] == [("remark", "agent")] * 2
    assert all(0 < each.worth < LEAST_WORTH for each in results)
    assert not [each for each in found if "I begin" in each.text or RULE in each.text]
    # The same message of the agent itself is worth keeping.
    assert of_text(TALK, CAUSE).worth >= LEAST_WORTH


def test_private_and_injected_text_is_left_out() -> None:
    found = excerpts_of(
        """
prompt: The exporter must keep the order of rows <private>of the customer Acme</private> always
say: <ctx:remember type="fact">Rows are ordered</ctx:remember> The exporter keeps the order of rows.
prompt: <!-- ctx: 1 nodes, 9 tokens --> Injected <!-- ctx:end --> Rows must never be sent twice.
"""
    )
    text = " ".join(each.text for each in found)
    for hidden in ("Acme", "private", "ctx:", "Injected"):
        assert hidden not in text
    assert "Rows must never be sent twice." in text


def test_near_copies_are_kept_once() -> None:
    script = f"""
prompt: {RULE}
say: {CAUSE}
prompt: Again: never commit yourself, I review every change first!
say: The exporter drops rows because `flush` is never awaited in src/export.py, as I said.
"""
    kept = best(excerpts_of(script))
    assert sum("commit yourself" in each.text for each in kept) == 1
    assert sum("never awaited" in each.text for each in kept) == 1


def test_a_long_session_is_cut_to_the_most_valuable_passages() -> None:
    script = "\n".join(
        f"prompt: Look at module{number}\nsay: Topic{number} holds part{number} of shape{number}."
        for number in range(MOST)
    )
    found = excerpts_of(f"prompt: {RULE}\n{script}")
    assert len(found) == MOST
    assert found[0].text == RULE
    assert len(best(found)) <= MOST_KEPT


@settings(max_examples=effort.times(30), deadline=None, derandomize=True)
@given(sessions())
def test_any_session_can_be_excerpted(session: list[Step]) -> None:
    found = excerpts(session)
    ids = [step.id for step in session]
    assert all(0 < len(each.text) <= LONGEST and each.worth >= 0 for each in found)
    assert len({(each.step, each.part) for each in found}) == len(found) <= MOST
    places = [ids.index(each.step) for each in found]
    assert places == sorted(places)
    kept = best(found)
    assert len(kept) <= MOST_KEPT
    assert all(each in found and each.worth >= LEAST_WORTH for each in kept)


@settings(max_examples=effort.times(10), deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=30), st.sampled_from(["prompt", "say", "recap", "plan"]))
def test_a_megabyte_is_excerpted_quickly(piece: str, kind: str) -> None:
    step = steps(
        "prompt: x"
    )[
        0
    ]._replace(
        kind=kind,  # type: ignore[arg-type]
        tool="ExitPlanMode",
        text=(piece * 1_000_000)[:1_000_000],
    )
    began = time.process_time()
    assert all(len(each.text) <= LONGEST for each in excerpts([step]))
    assert time.process_time() - began < 1


def test_many_long_messages_are_excerpted_quickly() -> None:
    words = " ".join(f"word{number} value{number % 97}" for number in range(1_000))
    script = "\n".join(f"prompt: Part {number}\nsay: {words}" for number in range(100))
    session = steps(script)
    began = time.process_time()
    excerpts(session)
    assert time.process_time() - began < 3


def changes_of(script: str) -> list[str]:
    return [each.text for each in excerpts_of(script) if each.kind == "change"]


def test_a_changed_value_is_one_line_with_its_reason_and_its_other_places() -> None:
    found = changes_of("""
prompt: The export of large shops fails with a timeout
say: The timeout of 30s is too short for a large export.
write: api/config.ts +1 -1
  modified function load () -> Config
  -   exportTimeout: "30s",
  +   exportTimeout: "90s",
write: docs/limits.md +1 -1
  - The export ends after exportTimeout: "30s".
  + The export ends after exportTimeout: "90s".
write: tests/config.test.ts +1 -1
  - expect(load()).toEqual({ exportTimeout: "30s" })
  + expect(load()).toEqual({ exportTimeout: "90s" })
say: Done, every shop can be exported now.
""")
    text = (
        '`api/config.ts` `load`: `exportTimeout: "30s"` → `exportTimeout: "90s"`; also in'
        " `docs/limits.md` and `tests/config.test.ts`. The timeout of 30s is too short for a"
        " large export."
    )
    assert found == [text]


def test_a_change_is_net_over_the_session() -> None:
    found = changes_of("""
prompt: Try other limits
read: app.py
write: app.py +1 -1
  - LIMIT = 10
  + LIMIT = 20
write: app.py +1 -1
  - LIMIT = 20
  + LIMIT = 50
write: app.py +1 -1
  - RETRIES = 3
  + RETRIES = 9
write: app.py +1 -1
  - RETRIES = 9
  + RETRIES = 3
write: app.py +2 -0
  + def wait(seconds):
  +     sleep(seconds)
write: app.py +1 -1
  -     sleep(seconds)
  +     sleep(2 * seconds)
say: The limit is 50 now.
""")
    assert found == ["`app.py`: `LIMIT = 10` → `LIMIT = 50`"]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("package-lock.json", '"version": "1.2.3",', '"version": "1.2.4",'),
        ("app.py", "total = compute( a,b )", "total = compute(a, b)"),
        ("app.py", "# Ten at most", "# Twenty at most"),
        ("app.py", "from shop import cart", "from shop import basket"),
        ("app.py", "limit = 10", "class Queue(Generic[T]):"),
        ("app.ts", "noiseSuppression: true", "autoGainControl: false"),
        ("README.md", "Limit: 10", "Limit: 20"),
    ],
)
def test_a_change_that_says_nothing_is_left_out(path: str, before: str, after: str) -> None:
    script = f"prompt: Work on it\nread: {path}\nwrite: {path} +1 -1\n  - {before}\n  + {after}\n"
    assert changes_of(script) == []
