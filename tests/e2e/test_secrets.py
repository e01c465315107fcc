"""Secrets are never stored, whatever way they come in; a scrubbed word is removed everywhere."""

import random
import string

import pytest

from tests.conftest import git
from tests.e2e.planted_text import WAYS, Planted, holding, settle

WORD = "harmless-looking"


def secret(name: str) -> str:
    """A different token for each way, in the format of a forge."""
    chance = random.Random(name)
    return "gh" + "p_" + "".join(chance.choices(string.ascii_letters + string.digits, k=36))


def test_a_secret_is_stored_nowhere(at: Planted) -> None:
    for name, plant in WAYS.items():
        plant(at, secret(name))
    settle(at)
    assert {name: holding(at, secret(name)) for name in WAYS} == {name: [] for name in WAYS}


def test_secrets_at_text_limits_and_in_json_are_not_stored(at: Planted) -> None:
    """Long texts are cut; a secret across the cut must not leave a part."""
    cut = secret("cut")
    for number, size in enumerate((480, 990, 1_980, 3_970, 7_990, 15_980, 15_999)):
        text = "word " * (size // 5) + cut + " word" * 4_000
        WAYS["prompt"](at, f"{number} {text}")
        WAYS["command output"](at, text)
        WAYS["failing command"](at, text)
    quoted = f'{{"a": "{{\\"token\\": \\"{cut}\\"}}"}}'
    for name in ("prompt", "file read", "command output", "note", "remember"):
        WAYS[name](at, quoted)
    settle(at)
    assert [holding(at, part) for part in (cut[:24], cut[-24:])] == [[], []]


def test_a_scrubbed_word_is_removed_everywhere(at: Planted) -> None:
    for plant in WAYS.values():
        plant(at, WORD)
    settle(at)
    # Without this, what is not found afterwards was perhaps never there.
    assert len(holding(at, WORD)) > 10
    git("add", "-A", cwd=at.project)
    git("commit", "-qm", "with memory", cwd=at.project)
    for plant in WAYS.values():
        plant(at, WORD)
    assert [name for name in at.talk.client.waiting() if name != "receipt"]
    ran = at.ctx("scrub", WORD, "--dry-run", "--format=json")
    assert ran.code == 0, ran.err
    assert WORD not in ran.out.lower()
    assert {place["where"] for place in ran.json["places"]} >= {
        *(f"store.db: {table}" for table in ("records", "nodes", "events", "sessions")),
        *("spool", ".ctx/narrative/README.md", ".ctx/objects", ".git/ctx/main/stage/objects"),
    }
    assert str(at.talk.path) in ran.json["transcripts"]
    ran = at.ctx("scrub", WORD, "--yes")
    assert ran.code == 0, ran.out
    assert holding(at, WORD) == []
    assert WORD not in (ran.out + ran.err).replace(str(at.talk.path), "").lower()
    assert "git log --all" in ran.out
    assert str(at.talk.path) in ran.out
    _is_whole(at)
    assert "Not found in anything ctx stores" in at.ctx("scrub", WORD, "--yes").out
    # What was waiting is taken in, and what was staged is committed, without it.
    settle(at)
    assert holding(at, WORD) == []
    _is_whole(at)


def test_secrets_that_older_rules_missed_can_be_scrubbed(
    at: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = secret("late")
    with monkeypatch.context() as older:
        older.setattr("ctx.memory.changes.redact", _Nothing)
        older.setattr("ctx.memory.changes._redact_word", _Nothing)
        for name in ("node", "note", "prompt", "kept output"):
            WAYS[name](at, late)
        at.run("hook", "apply")
    assert holding(at, late)
    ran = at.ctx("scrub", "--yes")
    assert (ran.code, late in ran.out + ran.err) == (0, False), ran.out
    assert holding(at, late) == []
    _is_whole(at)


class _Nothing:
    """The result of rules that find no secret."""

    findings = ()

    def __init__(self, text: str) -> None:
        self.text = text


def _is_whole(at: Planted) -> None:
    for words in (("store", "check"), ("debug", "verify")):
        ran = at.ctx(*words)
        assert ran.code == 0, ran.out
