"""Sending to a model: secrets that redaction finds are never sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.llm.backends import ask
from ctx.llm.protocol import Request
from ctx.llm.scripted_backend import ScriptedBackend
from ctx.redaction import redact
from tests import secrets_generator
from tests.contract.llm_backends import Metered
from tests.secrets_generator import Sample


def leaks(secret: str, text: str) -> bool:
    """Whether twelve consecutive characters of the secret are in the text."""
    lines = [line.strip(' "') for line in secret.replace("\\n", "\n").split("\n")]
    return any(
        line[at : at + 12] in text
        for line in lines
        if line and "-----" not in line
        for at in range(max(1, len(line) - 11))
    )


SAMPLES = [
    sample
    for sample in secrets_generator.samples(7, 2)
    if not leaks(sample.secret, redact(sample.text).text)
]
"""Texts with a secret that redaction finds in the whole."""


def sent(request: Request) -> Request:
    backend = ScriptedBackend(["Fine."])
    assert ask(backend, request, Metered()).text == "Fine."
    [asked] = backend.requests
    return asked


def test_there_are_enough_samples() -> None:
    assert len(SAMPLES) > 100


@pytest.mark.parametrize("sample", SAMPLES[::3], ids=lambda sample: sample.kind)
def test_secrets_are_redacted_in_the_system_text_and_in_parts(sample: Sample) -> None:
    asked = sent(Request(sample.text, ("Look:\n", sample.text, "\nWhat is that?"), 9))
    assert asked.system == redact(sample.text).text
    assert not leaks(sample.secret, asked.prompt)
    assert asked.prompt.startswith("Look:\n")
    assert asked.prompt.endswith("What is that?")


@settings(deadline=None)
@given(st.data())
def test_secrets_across_parts_are_redacted(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    begin = sample.text.index(sample.secret)
    inside = st.integers(begin, begin + len(sample.secret))
    cuts = sorted(data.draw(st.lists(inside, min_size=1, max_size=3)))
    ends = [*cuts, len(sample.text)]
    parts = [sample.text[at:end] for at, end in zip([0, *cuts], ends, strict=True)]
    asked = sent(Request("", tuple(parts), 9))
    assert not leaks(sample.secret, asked.prompt)
    assert not redact(asked.prompt).findings
    assert not any(redact(part).findings for part in asked.parts)
    # What was passed once passes again as it is.
    assert sent(asked) == asked


@settings(deadline=None)
@given(st.text(), st.lists(st.text(alphabet="abc é\n:="), max_size=4))
def test_text_without_secrets_is_sent_unchanged(system: str, parts: list[str]) -> None:
    request = Request(system, tuple(parts), 9, 0.5, {"type": "object"})
    if not redact(system).findings:
        assert sent(request) == request


def test_parts_stay_separate_if_a_secret_is_inside_one_part() -> None:
    """Caches compare part by part."""
    request = Request("", ("The pack.\n", "PASSWORD=hunter2-Xk9!qLm\n", "Why?"), 9)
    assert sent(request).parts == ("The pack.\n", "PASSWORD=[redacted:password]\n", "Why?")


def test_parts_are_joined_if_a_secret_continues_in_the_next() -> None:
    request = Request("", ("PASSWORD=hunter2-", "Xk9!qLm", "pQ7\n", "Why?"), 9)
    assert sent(request).parts == ("PASSWORD=[redacted:password]\nWhy?",)
