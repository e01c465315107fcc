"""The table of settings is consistent, and a value means the same in every source."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.config import schema
from ctx.config.setting import (
    Setting,
    Value,
    accept,
    as_toml,
    from_word,
    is_without_effect,
    refusal,
)
from ctx.errors import UsageError
from tests.config.values import values_of

ALL = pytest.mark.parametrize("known", schema.SETTINGS.values(), ids=lambda known: known.name)


@ALL
def test_every_setting_is_consistent(known: Setting) -> None:
    assert known.name.count(".") == 1
    assert accept(known, known.default) == known.default
    assert not is_without_effect(known, known.default)
    assert known.doc.endswith(".")
    assert schema.for_variable(known.variable) is known


def test_names_do_not_collide() -> None:
    variables = [v for known in schema.SETTINGS.values() for v in schema.variables(known)]
    assert len(set(variables)) == len(variables)
    assert not schema.RENAMED.keys() & schema.SETTINGS.keys()
    assert not schema.SETTINGS.keys() & set(schema.WITHOUT_EFFECT)
    assert set(schema.RENAMED.values()) <= schema.SETTINGS.keys()
    assert set(schema.SECTIONS) >= schema.PROJECT_SECTIONS


@settings(deadline=None)
@given(st.data())
def test_a_word_and_a_file_give_the_same_value(data: st.DataObject) -> None:
    known = data.draw(st.sampled_from(list(schema.SETTINGS.values())))
    value = data.draw(values_of(known))
    word = value if isinstance(value, str) else as_toml(value)
    assert accept(known, from_word(known, word)) == value


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("gc.keep_days", " 1_000 ", 1000),
        ("llm.timeout_seconds", "2", 2.0),
        ("llm.synthesis", "No", False),
        ("llm.synthesis", "1", True),
        ("ingestion.ignore_globs", "a/**, b ,", ("a/**", "b")),
        ("ingestion.ignore_globs", "", ()),
        ("ingestion.ignore_globs", ' ["a,b"]', ("a,b",)),
    ],
)
def test_words_are_parsed(name: str, word: str, value: Value) -> None:
    known = schema.SETTINGS[name]
    assert accept(known, from_word(known, word)) == value


@pytest.mark.parametrize(
    ("name", "word", "why"),
    [
        ("gc.keep_days", "soon", 'a whole number from 0 to 36500, not "soon"'),
        ("gc.keep_days", "-1", "a whole number from 0 to 36500, not -1"),
        ("gc.keep_days", "9" * 400, "a whole number from 0 to 36500, not a huge number"),
        ("gc.keep_days", "9" * 5000, 'a whole number from 0 to 36500, not "' + "9" * 58 + "…"),
        ("llm.temperature", "nan", "a number from 0 to 2, not nan"),
        ("storage.shard_prefix_bytes", "2", "1, the only value there is, not 2"),
        ("llm.synthesis", "maybe", 'true or false, not "maybe"'),
        ("share.sessions", "ALL", '"none", "summary" or "all", not "ALL"'),
        ("index.backend", "lmdb", '"sqlite", not "lmdb"'),
        ("repo.id", "a\x1b[2J\n", 'a text of one line, not "a\\u001b[2J\\u000a"'),
        ("repo.id", "\udc80", 'a text of one line, not "\\udc80"'),
        ("llm.server_url", "file:///etc", 'a text that starts with http:// or https://, not "file:///etc"'),
        ("llm.prices", "m=abc", 'a list of texts like "NAME=1.00/5.00", not ["m=abc"]'),
        ("llm.prices", "=1/2", 'a list of texts like "NAME=1.00/5.00", not ["=1/2"]'),
        ("llm.prices", "m=1/2, m", 'a list of texts like "NAME=1.00/5.00", not ["m=1/2", "m"]'),
        ("ingestion.ignore_globs", "[ab]*", 'a list of texts, not "[ab]*"'),
        ("ingestion.ignore_globs", "[1, {a = 2}]", "a list of texts, not [1, a table]"),
        ("ingestion.ignore_globs", '["a"]\nb = 1', 'a list of texts, not "[\\"a\\"]\\u000ab = 1"'),
        ("ingestion.ignore_globs", "[" * 5000, 'a list of texts, not "' + "[" * 58 + "…"),
    ],
)  # fmt: skip
def test_invalid_words_are_refused(name: str, word: str, why: str) -> None:
    known = schema.SETTINGS[name]
    raw = from_word(known, word)
    assert accept(known, raw) is None
    assert refusal(known, raw) == f"{name} must be {why}"


@pytest.mark.parametrize(
    ("name", "raw"),
    [("gc.keep_days", True), ("gc.keep_days", 7.0), ("llm.synthesis", 1), ("repo.id", 1)],
)
def test_a_file_must_use_the_right_type(name: str, raw: object) -> None:
    assert accept(schema.SETTINGS[name], raw) is None


def test_an_older_name_is_accepted() -> None:
    assert schema.setting_named("retrieval.max_depth").name == "retrieval.default_depth"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gc.kep_days", "Did you mean `gc.keep_days`?"),
        ("keep_days", "Did you mean `gc.keep_days`?"),
        ("zzz", "`ctx config list` lists all settings."),
    ],
)
def test_a_wrong_name_gets_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        schema.setting_named(name)
    assert raised.value.hint == hint
