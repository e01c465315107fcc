"""The parts of an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.llm import answer_parts
from ctx.llm.answer_parts import AnswerMention, AnswerParts, CodeBlock, parse_answer

ANSWER = """\
# Why it fails

The gateway is called twice: `Client.connect` retries inside of `retry_all()`, and
src/payments.py:12-40 does so again (see https://example.org/a/b.py, e.g. or 3.11).

**Decision:** retry in one place only.
2. Decision 2: keep the limit at three

`src/backoff.py`:

```python
def delay(attempt):
    return 2**attempt
```

Then, in a list:

- run it
  ~~~sh title="bin/run.sh"
  ```
  ~~~

## Decision:

Use `tokio::time::sleep` and ./docs/retry.md#L4.

````
// web/app.ts
unfinished
"""


def test_an_answer_is_parsed_into_parts() -> None:
    assert parse_answer(ANSWER) == AnswerParts(
        "The gateway is called twice: `Client.connect` retries inside of `retry_all()`, and"
        " src/payments.py:12-40 does so again (see https://example.org/a/b.py, e.g. or 3.11).",
        (
            CodeBlock("python", "src/backoff.py", 12, 13),
            CodeBlock("sh", "bin/run.sh", 20, 20),
            CodeBlock("", "web/app.ts", 28, 30),
        ),
        (
            "retry in one place only.",
            "keep the limit at three",
            "Use `tokio::time::sleep` and ./docs/retry.md#L4.",
        ),
        (
            AnswerMention("src/backoff.py", 12),
            AnswerMention("bin/run.sh", 20),
            AnswerMention("web/app.ts", 28),
            AnswerMention("Client.connect", 3),
            AnswerMention("retry_all", 3),
            AnswerMention("src/payments.py", 4),
            AnswerMention("e.g", 4),
            AnswerMention("tokio::time::sleep", 25),
            AnswerMention("./docs/retry.md", 25),
        ),
    )


@pytest.mark.parametrize(
    ("info", "language", "path"),
    [
        ("", "", ""),
        ("rust", "rust", ""),
        ("rust src/net.rs", "rust", "src/net.rs"),
        ("rust:src/net.rs", "rust", "src/net.rs"),
        ("src/net.rs", "", "src/net.rs"),
        ("py filename='a b.py'", "py", ""),
        ("Makefile", "", "Makefile"),
        ("x" * 1_000, "x" * 40, ""),
    ],
)
def test_the_info_line_of_a_code_block_gives_language_and_path(
    info: str, language: str, path: str
) -> None:
    (found,) = parse_answer(f"```{info}\nx\n```").code_blocks
    assert found == CodeBlock(language, path, 2, 2)


def test_an_empty_code_block_is_parsed() -> None:
    assert parse_answer("```\n```").code_blocks == (CodeBlock("", "", 2, 1),)
    assert parse_answer("```").code_blocks == (CodeBlock("", "", 2, 1),)
    assert parse_answer("```a``` is no block").code_blocks == ()


def test_the_number_of_parts_is_limited() -> None:
    many = "\n".join(f"Decision: a/{n}.py\n```\n```" for n in range(10_000))
    found = parse_answer(many)
    assert len(found.code_blocks) == answer_parts.MOST_BLOCKS
    assert len(found.decisions) == answer_parts.MOST_DECISIONS
    assert len(found.mentions) == answer_parts.MOST_MENTIONS


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["`", "```", "~~~", "\n", "Decision", ":", "*", " ", "a.b", "/", "()", "\r"]
        )
        | st.text(max_size=8)
    ).map("".join)
)
def test_any_text_can_be_parsed(text: str) -> None:
    found = parse_answer(text)
    lines = text.split("\n")
    for block in found.code_blocks:
        assert 1 <= block.first_line <= block.last_line + 1 <= len(lines) + 1
    for spoken in found.mentions:
        assert spoken.word in text
        assert 1 <= spoken.line <= len(lines) + 1
    assert all(decision in " ".join(text.split()) for decision in found.decisions)


@pytest.mark.slow
def test_hostile_texts_take_linear_time() -> None:
    """With quadratic time, this would not end."""
    for piece in "` * # a/ decision a. () Decision: ```\n - _ ::".split(" "):
        found = parse_answer(f"{piece} " * (50_000 // len(piece)))
        assert len(found.decisions) <= answer_parts.MOST_DECISIONS
