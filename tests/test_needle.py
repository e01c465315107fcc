"""A scrubbed word is found in every form, and nothing else is changed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.errors import UsageError
from ctx.redaction import needle

WORD = needle.word("acme-internal")


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("The acme-internal host.", "The [scrubbed] host."),
        ("ACME INTERNAL", "[scrubbed]"),
        ("acme_internal.acme-internal", "[scrubbed].[scrubbed]"),
        ("acme\ninternal", "[scrubbed]"),
        (r"a\"acme\ninternal\"", r"a\"[scrubbed]\""),
        ("acme and internal", "acme and internal"),
        ("acmeinternal", "acmeinternal"),
        ("", ""),
    ],
)
def test_a_word_is_scrubbed_in_every_form(text: str, scrubbed: str) -> None:
    assert WORD.scrubbed(text) == scrubbed
    assert WORD.is_in(text) == (text != scrubbed)
    assert WORD.is_in_bytes(b"\xff\xfe" + text.encode() + b"\x00\x80") == (text != scrubbed)


def test_a_name_has_no_brackets() -> None:
    assert WORD.name("project:acme-internal") == "project:scrubbed"
    assert WORD.name("decisions/0001-use-acme-internal-ab12.md") == (
        "decisions/0001-use-scrubbed-ab12.md"
    )


def test_a_word_is_scrubbed_in_json() -> None:
    for word in ('say "hi" to me', "naïve café", "back\\slash"):
        for ascii_only in (True, False):
            quoted = json.dumps(word, ensure_ascii=ascii_only)
            assert needle.word(word).scrubbed(quoted) == '"[scrubbed]"'


def test_keys_and_values_of_json_are_scrubbed() -> None:
    value = {"acme-internal": ["acme-internal", {"acme-internal": 1, "b": None}]}
    assert WORD.scrubbed_json(value, keys=True) == {
        "acme-internal": ["[scrubbed]", {"[scrubbed]": 1, "b": None}]
    }
    assert WORD.scrubbed_json(value, keys=False) == {
        "acme-internal": ["[scrubbed]", {"acme-internal": 1, "b": None}]
    }


def test_rules_recognise_a_secret_by_its_key() -> None:
    value = {"input": {"password": "hunter2-hunter2", "note": "hunter2-hunter2"}}
    found = needle.RULES.scrubbed_json(value, keys=True)
    assert "hunter2" not in found["input"]["password"]
    assert found["input"]["note"] == "hunter2-hunter2"


def test_invalid_words_are_refused() -> None:
    for make, texts in ((needle.word, ("ab", "  a ", "scrub")), (needle.regex, ("(", "x*", "."))):
        for text in texts:
            with pytest.raises(UsageError):
                make(text)


@given(st.text(), st.text(), st.sampled_from(["acme-internal", 'q"uo\\te', "日本 語"]))
def test_nothing_is_left_and_scrubbing_is_idempotent(before: str, after: str, word: str) -> None:
    found = needle.word(word)
    text = found.scrubbed(before + word + after)
    assert word.lower() not in text.lower()
    assert not found.is_in(text)
    assert found.scrubbed(text) == text


@pytest.mark.parametrize(
    "id", ["01M7GFRVD949ZZZZZZZZZZZZZZ", "ab" * 32, "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"]
)
def test_a_part_of_an_id_is_left_alone_and_a_whole_one_is_scrubbed(id: str) -> None:
    part, whole = needle.word(id[-4:]), needle.word(id)
    for text in (id, f"session:{id}"):
        for each in (part, needle.regex(rf"{id[:3]}|{id[-5:-2]}")):
            assert not each.is_in(text)
            assert each.name(text) == each.scrubbed(text) == text
    assert whole.scrubbed(id) == "[scrubbed]"
    assert whole.name(f"session:{id}") == "session:scrubbed"
    assert whole.is_in(id)


def test_an_accent_matches_composed_and_decomposed() -> None:
    for typed in ("caf\u00e9 noir", "cafe\u0301 noir"):
        for stored in ("caf\u00e9-noir", "CAFE\u0301 noir"):
            assert needle.word(typed).scrubbed(stored) == "[scrubbed]"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"(a+)+\d", "a" * 60), (r"(.*)(.*)(.*)(.*)(.*)(.*)x\d", "a" * 4000)],
)
def test_a_pattern_that_takes_too_long_is_stopped(pattern: str, text: str) -> None:
    slow = needle.regex(pattern, most_seconds=0.05)
    for use in (slow.is_in, slow.scrubbed, slow.name, lambda t: slow.is_in_bytes(t.encode())):
        with pytest.raises(UsageError, match="takes too long"):
            use(text)
    # The limit is for each text.
    assert not slow.is_in("c")
