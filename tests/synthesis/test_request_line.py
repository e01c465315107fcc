"""The request of a session, as a line and as a title."""

import pytest

from ctx.synthesis.observations import Summary
from ctx.synthesis.synthesise import synthesise
from tests.synthesis.session_scripts import session, steps

WORK = (
    "read: src/a.py\nwrite: src/a.py +3 -1\n  modified function f ()\n"
    "say: I changed `f` so that it returns early.\n"
)


def summary_of(*prompts: str) -> Summary:
    written = (f"prompt: {each}\n".replace("\n", "\n  | ")[: -len("  | ")] for each in prompts)
    found = synthesise(session(), steps(WORK.join(written) + WORK), is_over=True).summary
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("prompt", "title", "asked"),
    [
        ("Add a cache.", "Add a cache", "Add a cache."),
        ("/review src/a.py", "/review src/a.py", "/review src/a.py."),
        ("continue", "Changed `f` so that it returns early", "Continue."),
        (
            "1. rename f to g\n2. add tests\n3. update the docs",
            "Rename f to g",
            "Rename f to g; add tests; update the docs.",
        ),
        (
            "```\nTypeError: x is undefined\n    at List (src/List.tsx:12:20)\n```\n\nfix",
            "Fix: TypeError: x is undefined",
            "Fix: TypeError: x is undefined.",
        ),
        (
            "Error: listen EADDRINUSE: address in use :::3000\n    at Server.on [as x] (net:1:1)",
            "Error: listen EADDRINUSE: address in use :::3000",
            "Error: listen EADDRINUSE: address in use :::3000.",
        ),
        (
            "Implement the following plan:\n\n# Keep the cart\n\n## Context\nIt loses its items.",
            "Keep the cart",
            "Keep the cart.",
        ),
        (
            "Implement the following plan:\n\n# Plan\n\n## Steps\n1. Keep the cart in a file",
            "Keep the cart in a file",
            "Keep the cart in a file.",
        ),
        (
            "is currently in Preview. Put a note on the download page.",
            "Put a note on the download page",
            "Is currently in Preview. Put a note on the download page.",
        ),
    ],
)
def test_one_prompt_gives_title_and_request(prompt: str, title: str, asked: str) -> None:
    found = summary_of(prompt)
    assert (found.title, found.request) == (title, asked)


@pytest.mark.parametrize(
    ("later", "asked"),
    [
        ("Now test the upload of images.", "Add a cache. Then: Test the upload of images."),
        ("that breaks the upload tests", "Add a cache. Then: That breaks the upload tests."),
        ("Interesting. so its the v1 client of acme.", "Add a cache."),
        ("We will move to React Query next quarter anyway.", "Add a cache."),
        ("ok lets leave it for today, we need a test device first", "Add a cache."),
    ],
)
def test_later_requests_are_appended(later: str, asked: str) -> None:
    found = summary_of("Add a cache.", later)
    assert (found.title, found.request) == ("Add a cache", asked)


def test_an_abandoned_first_prompt_is_not_the_request() -> None:
    script = f"prompt: /review it now\nprompt: Explain how `f` works here\n{WORK}"
    found = synthesise(session(), steps(script), is_over=True).summary
    assert found is not None
    assert found.request == "Explain how `f` works here."


def test_postponed_work_is_a_next_step() -> None:
    late = "prompt: ok lets leave it for today, we need a test device first\nsay: See you."
    script = f"prompt: Add a cache.\n{WORK}{late}"
    found = synthesise(session(), steps(script), is_over=True).summary
    assert found is not None
    assert found.next_steps == ("Lets leave it for today, we need a test device first",)


REVIEW = """prompt: Review the login in src/auth.py, don't change anything.
read: src/auth.py
say: I found four problems:
  | 1. `verify` in src/auth.py compares tokens with `==`, which leaks timing
  | 2. `reset_token` in src/auth.py never expires
  | 3. Passwords are hashed with MD5 in `hash_password`
  | 4. There is no rate limit on the login
  |
  | ## Next steps
  | 1. Hash with `argon2` in src/auth.py
prompt: thanks, I will open tickets
say: Good.
"""


ANALYSIS = """prompt: Who had the most lookups? Put the query into q.sql.
run: psql kv
write: q.sql +6 -0
say: Key findings:
  | - acme and globex make up 97% of all of them
  | - Note that the table `lookups` has no index on `at`
  |
  | The query is in q.sql.
"""


def test_the_findings_of_a_review_are_discoveries() -> None:
    found = synthesise(session(), steps(REVIEW), is_over=True)
    assert sorted((each.kind, each.title) for each in found.observations) == [
        ("discovery", "Passwords are hashed with MD5 in `hash_password`"),
        ("discovery", "There is no rate limit on the login"),
        ("discovery", "`reset_token` in src/auth.py never expires"),
        ("discovery", "`verify` in src/auth.py compares tokens with `==`, which leaks timing"),
    ]
    assert found.summary is not None
    assert sorted(found.summary.learned) == sorted(each.title for each in found.observations)


def test_the_findings_of_an_analysis_are_discoveries() -> None:
    found = synthesise(session(), steps(ANALYSIS), is_over=True)
    assert [each.title for each in found.observations if each.kind == "discovery"] == [
        "Acme and globex make up 97% of all of them",
        "The table `lookups` has no index on `at`",
    ]


def test_the_answer_to_a_question_is_learned() -> None:
    answer = "The job loads the whole table `orders` at once, that is why the pod dies at 3:00."
    script = (
        f"prompt: Why does the pod die at night?\nread: src/job.py\nsay: {answer} Shall I fix it?"
    )
    found = synthesise(session(), steps(script), is_over=True).summary
    assert found is not None
    assert found.learned == (answer.rstrip("."),)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Next step: stream the export in chunks.", ("Stream the export in chunks",)),
        (
            "You should check the access logs of the host.",
            ("You should check the access logs of the host",),
        ),
        ("There are no tests for `f` yet.", ("There are no tests for `f` yet",)),
        (
            "### What I didn't do\n1. `upload` has the same problem",
            ("`upload` has the same problem",),
        ),
        ("Noch offen: Tests für den Timeout fehlen.", ("Tests für den Timeout fehlen",)),
        ("Remaining work: none.", ()),
        ("## Next steps\n- None, everything is complete", ()),
        ("Users have to log in again after the deploy.", ()),
        ("The old method `get_all` still needs `f`.", ()),
        ("A lock, because check and decrement have to happen together.", ()),
        ("The API of `f` remains unchanged for all callers.", ()),
    ],
)
def test_remaining_work_is_a_next_step(message: str, left: tuple[str, ...]) -> None:
    said = message.replace("\n", "\n  | ")
    found = synthesise(session(), steps(f"prompt: Add a cache.\n{WORK}say: {said}"), is_over=True)
    assert found.summary is not None
    assert found.summary.next_steps == left


LONG = "The checkout drops the second item when I press back twice, and it also loses the voucher."


@pytest.mark.parametrize(
    ("prompt", "titles", "title"),
    [
        (
            LONG,
            "title: Checkout items\ntitle: Keep items in the checkout",
            "Keep items in the checkout",
        ),
        ("@src/a.py is slow", "title: Speed up a.py", "Speed up a.py"),
        ("continue", "title: Speed up a.py", "Speed up a.py"),
        ("Add a small cache", "title: Implement caching functionality", "Add a small cache"),
        ("Add a small cache", "name: caching", "caching"),
        (LONG, "name: voucher\ntitle: Keep items in the checkout", "voucher"),
        (LONG, f"title: {'Keep it ' * 15}", f"{'Keep it ' * 9}Keep…"),
    ],
)
def test_a_session_with_a_title(prompt: str, titles: str, title: str) -> None:
    script = f"prompt: {prompt}\n{WORK}{titles}\n"
    found = synthesise(session(), steps(script), is_over=False)
    assert found.summary is not None
    assert found.summary.title == title
    # A title is no statement.
    assert not any(title in each.text for each in found.observations)
