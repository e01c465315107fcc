import time

import pytest

from ctx.search import question

ISSUE = """Client.connect hangs when the server is slow

### Description

<!-- Please describe the bug -->
The client never gives up. See https://example.org/issues/1 for a similar one.
`connect_timeout` is ignored.

```python
client = Client()
client.connect()   # hangs
# Environment
```

**Expected behavior**

It raises `TimeoutError`.

### Environment

- OS: Ubuntu 22.04
- Python 3.11

#### Installed packages

numpy, pandas

- [x] I have searched the existing issues

### Additional context

>>> client.flush()

It worked in the last release.
"""


def test_boilerplate_of_issues_is_removed() -> None:
    cleaned = question.clean(ISSUE)
    assert cleaned.startswith("Client.connect hangs when the server is slow\n")
    for (
        gone
    ) in "Description describe example.org Ubuntu numpy Expected searched Additional".split():
        assert gone not in cleaned
    # A comment in code is no heading.
    for kept in ("The client never gives up", "# Environment", "TimeoutError", "last release"):
        assert kept in cleaned


def test_the_first_line_counts_most_and_code_least() -> None:
    weights = question.read(ISSUE).weights
    assert weights["connect"] == max(weights.values())
    assert weights["slow"] > weights["last"] > 0
    assert weights["timeouterror"] > weights["ignor"]
    assert "the" not in weights
    assert 0 < weights["flush"] < weights["last"]
    assert "numpy" not in weights


def test_the_lines_of_a_stack_trace_count_like_code() -> None:
    trace = 'File "shop/pricing.py", line 7, in lookup\n    return missing\n'
    pasted = question.read(f"Gifts fail\n\n{trace}\nKeyError in tables").weights
    fenced = question.read(f"Gifts fail\n\n```\n{trace}```\n\nKeyError in tables").weights
    assert pasted == fenced
    assert 0 < pasted["price"] < pasted["keyerror"]


def test_words_that_every_stack_trace_has_count_nothing() -> None:
    weights = question.read(
        'Gifts fail\n```\nTraceback (most recent call last):\n  File "/venv/lib/python3.12/'
        'site-packages/shop/pricing.py", line 7, in lookup\n    return row.total\nKeyError\n```\n'
    ).weights
    assert {"shop", "price", "lookup", "row", "total", "keyerror"} <= weights.keys()
    assert weights.keys().isdisjoint({"file", "line", "traceback", "recent", "venv", "lib", "site"})


def test_the_environment_counts_nothing_without_a_heading() -> None:
    weights = question.read(
        "Gifts fail\n\nThe price is missing.\n\n- OS: Fedora 40\n- Python: 3.12\n"
        "numpy==1.26.4\n\n[x] I agree to the rules\n1. [ ] I can help\n"
    ).weights
    assert set(weights) == {"gift", "fail", "price", "miss"}


def test_stop_words_count_if_there_are_no_other_words() -> None:
    assert set(question.read("the and of").weights) == {"the", "and", "of"}
    assert question.read("").weights == {}
    for text in ("<!-- only a comment -->", "令牌", "обновление"):
        assert question.read(text).weights


def test_the_first_line_decides_whether_a_task_is_about_tests() -> None:
    for text in ("Add tests for the parser", "Fix flaky test in test_client.py"):
        assert question.read(text).is_about_tests
    for text in ("Fix the parser", "The latest contest", "Parser crashes\n\nAdd tests for it."):
        assert not question.read(text).is_about_tests


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("<!-- ", "```\n", "~~~ a\n", "`", "# ", "a\n---\n", "http://", "https://a ", "\r", "("),
        *("- [ ] ", "1.2 ", "a: 1.2\n", "<img ", "![a](", "at a (b:1:1)\n", "| a "),
    ],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    question.read(piece * (100_000 // len(piece)))
    # It takes a tenth of a second; what grows with the square of the text takes minutes.
    assert time.process_time() - begun < 20
