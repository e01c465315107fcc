"""Statements become observations, and passages can be searched until they are removed."""

import pytest
from hypothesis import given, settings

from ctx import clock
from ctx.capture.steps import Step
from ctx.context import excerpt_search
from ctx.exchange.scrub_store import scrub
from ctx.operations import sessions
from ctx.redaction import needle
from ctx.sqlite.connection import transaction
from ctx.synthesis import excerpt_table
from ctx.synthesis.observations import Observation, Synthesis
from ctx.synthesis.sentences import LONGEST
from ctx.synthesis.session_excerpts import excerpts
from ctx.synthesis.statements import MOST, with_statements
from ctx.synthesis.synthesise import synthesise
from ctx.workspace import Memory
from tests import effort
from tests.synthesis import session_scripts
from tests.synthesis.test_session_excerpts import CAUSE, RULE
from tests.synthesis.test_session_writer import add_steps, write_session
from tests.synthesis.test_synthesis_properties import sessions as any_session

CORRECTION = "No, the importer keeps its own queue, look at src/importer.py instead."
STOP = (
    "Looks good. Please don't add comments to every line, nobody reads them. The test of the reader"
    " fails on my laptop after 30 seconds, and in CI it takes twice as long as yesterday."
)
SESSION = f"""
prompt: The exporter drops rows when the network is slow, look into src/export.py
say: {CAUSE}
prompt: {CORRECTION}
write: src/importer.py +1 -1
say: The importer now waits for its queue before it closes the file.
prompt: {STOP}
say: Removed the comments.
prompt: {RULE}
say: OK, every row of the importer arrives now, also over a slow network.
"""


def synthesised(script: str, *, is_over: bool = True) -> Synthesis:
    return of_steps(session_scripts.steps(script), is_over=is_over)


def of_steps(steps: list[Step], *, is_over: bool = True) -> Synthesis:
    found = synthesise(session_scripts.session(), steps, is_over=is_over)
    return with_statements(found, steps, excerpts(steps), is_over=is_over)


def observation_with(script: str, text: str, *, is_over: bool = True) -> Observation:
    [found] = [
        each for each in synthesised(script, is_over=is_over).observations if text in each.text
    ]
    return found


def stored_excerpts(memory: Memory) -> list[tuple[str, str]]:
    rows = memory.local.execute("SELECT kind, text FROM excerpts ORDER BY at, id")
    return rows.fetchall()


def search_results(memory: Memory, prompt: str) -> list[str]:
    """The excerpts that are found, without other past work."""
    stores = [memory.user.connection]
    hits = excerpt_search.choose(stores, memory.project, prompt, 2_000).hits
    return [hit.text for hit in hits if not hit.node]


def test_rules_corrections_and_statements() -> None:
    rule, correction = (
        observation_with(SESSION, STOP.removeprefix("Looks good. ")),
        observation_with(SESSION, CORRECTION),
    )
    assert (rule.kind, rule.said_by, rule.said_as) == ("rule", "user", "correction")
    assert (correction.kind, correction.said_by) == ("correction", "user")
    assert (rule.is_lasting, correction.is_lasting) == (True, False)
    assert correction.files == ("src/importer.py",)
    assert len(rule.evidence) == 1
    final = observation_with(SESSION, "every row of the importer")
    assert (final.kind, final.said_by, final.said_as) == ("statement", "agent", "final")


def test_a_decision_that_is_a_rule_lasts() -> None:
    [decision] = [
        each for each in synthesised(SESSION).observations if each.title == RULE.rstrip(".")
    ]
    assert (decision.kind, decision.said_by, decision.is_lasting) == ("decision", "user", True)
    assert not any(RULE in each.text for each in synthesised(SESSION).observations)


def test_the_request_is_not_repeated_as_a_statement() -> None:
    request = "The exporter should never drop rows, look into src/export.py"
    found = synthesised(f"prompt: {request}\nread: src/export.py\nsay: {CAUSE}\n")
    assert not any(each.said_by == "user" and each.said_as for each in found.observations)


def test_a_disputed_message_is_left_out_of_statements_and_summary() -> None:
    found = synthesised(SESSION)
    assert not any("never awaited" in each.text for each in found.observations)
    assert found.summary is not None
    assert "never awaited" not in " ".join((*found.summary.completed, *found.summary.learned))


def test_before_the_end_only_final_statements_are_written() -> None:
    assert (
        observation_with(SESSION, STOP.removeprefix("Looks good. "), is_over=False).kind == "rule"
    )
    early = synthesised(SESSION, is_over=False)
    assert not any(each.said_as in ("final", "report") for each in early.observations)


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(any_session())
def test_the_number_of_observations_is_limited(steps: list[Step]) -> None:
    found = of_steps(steps)
    assert len(found.observations) <= MOST or found.summary is None
    keys = [each.key for each in found.observations]
    assert len(keys) == len(set(keys))
    assert all(len(each.text) <= LONGEST for each in found.observations if each.said_as)


# In the store


def test_excerpts_are_stored_once(memory: Memory) -> None:
    add_steps(memory, SESSION)
    write_session(memory)
    early = stored_excerpts(memory)
    assert ("correction", RULE) in early
    write_session(memory, is_over=True)
    write_session(memory, is_over=True)
    texts = [text for _, text in stored_excerpts(memory)]
    assert len(texts) == len(set(texts)) >= len(early)
    assert RULE in search_results(memory, "may I never commit it yourself?")


def test_excerpts_of_a_continued_session_are_updated(memory: Memory) -> None:
    add_steps(memory, SESSION)
    write_session(memory, is_over=True)
    assert [text for kind, text in stored_excerpts(memory) if kind == "final"] == [
        "OK, every row of the importer arrives now, also over a slow network."
    ]
    later = "say: Renamed the importer to reader, and its queue to backlog in src/reader.py."
    add_steps(memory, f"{SESSION}{later}\n")
    write_session(memory, is_over=True)
    assert [text for kind, text in stored_excerpts(memory) if kind == "final"] == [
        later.removeprefix("say: ")
    ]
    connection = memory.local
    connection.execute("INSERT INTO excerpts_fts(excerpts_fts) VALUES ('integrity-check')")


def test_excerpts_are_deleted_with_their_session(memory: Memory) -> None:
    add_steps(memory, SESSION)
    add_steps(memory, f"prompt: {RULE}\nsay: The exporter has a test for slow networks.\n", "s2")
    for session in ("s1", "s2"):
        write_session(memory, session, is_over=True)
    sessions.delete(memory, "s1", dry_run=True)
    assert search_results(memory, "which queue does the importer keep") != []
    sessions.delete(memory, "s1", dry_run=False)
    assert search_results(memory, "which queue does the importer keep") == []
    assert {row[0] for row in memory.local.execute("SELECT session FROM excerpts")} == {"s2"}


def test_excerpts_can_be_scrubbed(memory: Memory) -> None:
    add_steps(memory, SESSION)
    write_session(memory, is_over=True)
    connection = memory.local
    scrub(connection, needle.word("importer"))
    assert not any("importer" in text for _, text in stored_excerpts(memory))
    terms = connection.execute("SELECT group_concat(terms) FROM excerpts").fetchone()[0]
    assert "importer" not in terms
    assert search_results(memory, "importer") == []
    assert RULE in search_results(memory, "may I never commit it yourself?")
    connection.execute("INSERT INTO excerpts_fts(excerpts_fts) VALUES ('integrity-check')")


def test_corrections_are_kept_longer_than_other_excerpts(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_steps(memory, SESSION)
    write_session(memory, is_over=True)
    before = stored_excerpts(memory)
    now = clock.parse_iso("2026-11-15T01:00:00Z") or 0
    for days, is_old in ((30, False), (91, True)):
        monkeypatch.setattr(clock, "now_ms", lambda days=days: now + days * 86_400_000)
        with transaction(memory.local):
            excerpt_table.forget_old(memory.local, 90)
        expected = [row for row in before if not is_old or row[0] == "correction"]
        assert stored_excerpts(memory) == expected
    assert ("correction", RULE) in stored_excerpts(memory)


def test_a_report_that_the_last_prompt_disputes_is_not_shown_as_the_end() -> None:
    script = """
prompt: The exporter drops rows, look into src/export.py
read: src/export.py
write: src/export.py +1 -1
say: Fixed the exporter, no rows of slow shops are dropped.
"""
    answered = synthesised(script).summary
    disputed = synthesised(
        f"{script}prompt: No, the exporter still drops rows of slow shops"
    ).summary
    assert answered is not None
    assert disputed is not None
    assert answered.ended == ("Fixed the exporter, no rows of slow shops are dropped.",)
    assert disputed.ended == ()
