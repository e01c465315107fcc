"""The observations and the summary of a session.

The sessions in `tests/golden/synthesis/` are written by hand, see `session_scripts`. Beside each
is the expected result. `CTX_TEST_RENEW=1 pytest tests/synthesis/test_synthesis.py` renews it.
"""

import os
from pathlib import Path

import pytest

from ctx.synthesis.summary import markdown
from ctx.synthesis.synthesise import synthesise
from tests.synthesis.session_scripts import session, steps

GOLDEN = Path(__file__).parent.parent / "golden" / "synthesis"
SESSIONS = sorted(GOLDEN.glob("*.txt"))
RENEW = os.environ.get("CTX_TEST_RENEW") == "1"


def shown(script: str) -> str:
    """The observations and the summary of a session as text."""
    taken = steps(script)
    numbers = {step.id: str(number) for number, step in enumerate(taken, 1)}
    found = synthesise(session(), taken, is_over=True)
    lines = []
    for each in found.observations:
        about = "; ".join([", ".join(each.files), ", ".join(each.symbols)])
        evidence = ", ".join(numbers[step] for step in each.evidence)
        lines += [
            f"## {each.kind}: {each.title}",
            *filter(None, [each.text]),
            f"({about}; steps {evidence}; {each.confidence}; {each.key})",
            "",
        ]
    if found.summary:
        lines += [f"# {found.summary.title}", markdown(found.summary)]
    return "\n".join(lines).strip() + "\n"


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_gives_the_expected_observations_and_summary(path: Path) -> None:
    found = shown(path.read_text())
    expected = path.with_suffix(".md")
    if RENEW:
        expected.write_text(found)
    assert found == expected.read_text()


def decisions_in(who: str, text: str) -> list[str]:
    """The decisions that are found in one sentence of a session about something else."""
    script = f"prompt: Improve the report in src/app.py\nread: src/app.py\n{who}: {text}\n"
    found = synthesise(session(), steps(script), is_over=True).observations
    return [each.title for each in found if each.kind == "decision"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("From now on, always run ruff first.", "Always run ruff first"),
        ("No. Use tabs, not spaces.", "Use tabs, not spaces"),
        ("don't touch the migrations folder", "Don't touch the migrations folder"),
        ("We decided to keep the old API.", "Decided to keep the old API"),
        ("actually, keep the old name", "Keep the old name"),
        ("it should be `fetch_user`, not `get_user`", "It should be `fetch_user`, not `get_user`"),
        ("The API must never return null.", "The API must never return null"),
        ("Prefer composition over inheritance.", "Prefer composition over inheritance"),
        ("please use the standard library only", "Use the standard library only"),
        ("Bitte immer auf Deutsch antworten.", "Immer auf Deutsch antworten"),
        # What is not to be must not be told as what is to be.
        ("No new dependencies.", "No new dependencies"),
        ("Stop using moment.js here", "Stop using moment.js here"),
        ("Finally blocks must never raise", "Finally blocks must never raise"),
        (
            "Right-to-left text must be escaped, never cut",
            "Right-to-left text must be escaped, never cut",
        ),
        ("No, wait: use requests over httpx", "Use requests over httpx"),
        # As people write.
        ("dont use lodash, we have our own helpers", "Dont use lodash, we have our own helpers"),
        ("Let's not cache errors", "Let's not cache errors"),
        ("Use CSS variables, not a theme library.", "Use CSS variables, not a theme library"),
        ("money never float here, also in discounts", "Money never float here, also in discounts"),
        (
            "push it, and never force push without lease",
            "Push it, and never force push without lease",
        ),
        ("All timestamps are UTC", "All timestamps are UTC"),
        ("Every endpoint needs a rate limit", "Every endpoint needs a rate limit"),
        ("We support Python 3.11 and newer only", "Support Python 3.11 and newer only"),
        ("Geld wird in Cent gespeichert", "Geld wird in Cent gespeichert"),
    ],
)
def test_decisions_of_a_person_are_recognised(text: str, title: str) -> None:
    assert decisions_in("prompt", text) == [title]


@pytest.mark.parametrize(
    "text",
    [
        "The login always fails when the password is wrong.",
        "Why do we always use Redis?",
        "What if we use Redis instead?",
        "We haven't decided whether to keep the old API.",
        "Let's do that.",
        "Stop!",
        "Fix this: the parser must not crash on empty input",
        "run the tests again and make sure they always pass",
        "Instead of A, B happens.",
        "```\nalways use the cache\n```",
        "> We decided to use memcached.",
        "ValueError: value must not be None (src/app.py:12)",
        "[ERROR] 2026-01-02 you must not use this {'a': 1}",
        "Warum nehmen wir nicht SQLite?",
        "The old version used floats instead of decimals",
        "I don't want to wait for that, just tell me roughly",
        "no, use the other file",
        "They decided to rewrite it in Rust at my old company",
        "don't run the slow tests now",
        "All tests are failing",
        "2 tests fail",
    ],
)
def test_other_sentences_of_a_person_are_not_decisions(text: str) -> None:
    assert decisions_in("prompt", text.replace("\n", "\n  | ")) == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("I'll go with a dataclass because it hashes.", "Go with a dataclass because it hashes"),
        ("I chose `httpx` over `requests`.", "Chose `httpx` over `requests`"),
        ("**Decision:** use `uuid7` rather than `uuid4`.", "Use `uuid7` rather than `uuid4`"),
        ("Design decision: `get` checks expiry.", "`get` checks expiry"),
        ("We must never hardcode totals: auditors.", "We must never hardcode totals: auditors"),
        ("I kept `f` since `g` calls it.", "Kept `f` since `g` calls it"),
        ("Instead of polling I subscribe to it.", "Instead of polling I subscribe to it"),
    ],
)
def test_decisions_of_the_agent_are_recognised(text: str, title: str) -> None:
    assert decisions_in("say", text) == [title]


@pytest.mark.parametrize(
    "text",
    [
        "We could use `httpx` instead of `requests`.",
        "I'll now use the Read tool to look at the file.",
        "I'll use grep to find the usages instead of reading every file.",
        "The function returns `None` instead of a list.",
        "This is intentionally left blank.",
        "Should I use A instead of B?",
        "If you prefer, I can use Redis instead of files.",
        "I improved the report in src/app.py instead of leaving it.",
        "The first is the smallest change, so I'll go with that.",
        "I made a mistake: I used `a` instead of `b`.",
    ],
)
def test_other_sentences_of_the_agent_are_not_decisions(text: str) -> None:
    assert decisions_in("say", text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "It turns out that `json.loads` accepts `NaN`, which SQLite rejects.",
            ["`json.loads` accepts `NaN`, which SQLite rejects"],
        ),
        (
            "I found that the rate limit is 100 requests per minute.",
            ["The rate limit is 100 requests per minute"],
        ),
        ("Note that `parse()` only accepts bytes.", ["`parse()` only accepts bytes"]),
        ("Das Problem ist, dass `load` nie leert.", ["Das Problem ist, dass `load` nie leert"]),
        ("`config.load` silently ignores keys.", ["`config.load` silently ignores keys"]),
        ("Note that I have not run the tests in src/app.py.", []),
        ("The problem is clear now.", []),
        ("This might be because `x` is None.", []),
        ("I noticed that the file has 300 lines.", []),
        ("Perfect! The issue is in `src/app.py` line 12.", []),
    ],
)
def test_discoveries_of_the_agent_are_recognised(text: str, found: list[str]) -> None:
    script = f"prompt: Look at it\nread: src/app.py\nsay: {text}\n"
    told = synthesise(session(), steps(script), is_over=True).observations
    assert [each.title for each in told if each.kind == "discovery"] == found


def fixes_in(*runs: str) -> list[str]:
    """The fixes in a session in which commands fail, files are edited, and commands pass."""
    script = "prompt: Fix it\n"
    for run in runs:
        script += f"{run}\n"
    found = synthesise(session(), steps(script), is_over=True).observations
    return [each.title for each in found if each.kind == "bugfix"]


FAILS = "\n  failed 1\n  finding: src/a.py:3 | KeyError | 'x' | tests/test_a.py::test_x"
EDIT = "write: src/a.py +1 -1\n  modified function f ()"
FIXED = ["Fixed `test_x` in src/a.py: \"KeyError: 'x'\""]


@pytest.mark.parametrize(
    ("failing", "passing", "is_same"),
    [
        ("pytest tests/test_a.py", "pytest tests/test_a.py", True),
        ("pytest tests/test_a.py -q", "cd x && python -m pytest -x tests | tail -3", True),
        ("pytest", "uv run pytest tests/test_a.py::test_x", True),
        ("FOO=1 timeout 60 .venv/bin/pytest tests/test_a.py", "poetry run pytest", True),
        ("pytest tests/test_a.py", "pytest tests/test_b.py", False),
        ("pytest tests/test_a.py", "pytest -k other tests/test_b.py", False),
        ("pytest -k test_x", "pytest -k test_x", True),
        ("pytest tests/test_a.py", "mypy src", False),
        ("npm test", "npm run lint", False),
        ("cargo test", "cargo test --workspace", True),
        ("cargo test", "cargo build", False),
        ("pytest -q", "pytest -q -n 4", True),
        ("pytest -q", "pytest --tb short -W error --durations 5", True),
        ("pytest -q", "make test", True),
        ("pytest -q", "make -j4 test", True),
        ("pytest -q", "tox -e py311", True),
        ("make test", "pytest -q", True),
        ("pytest -q", "pytest --ignore tests/test_a.py", False),
        ("pytest -q", "npm test", False),
        ("pytest -q", "pytest -k other -n 4", False),
    ],
)
def test_equivalent_checks_are_recognised(failing: str, passing: str, is_same: bool) -> None:
    runs = f"run: {failing}{FAILS}", EDIT, f"run: {passing}\n  passed"
    assert fixes_in(*runs) == (FIXED if is_same else [])


def notes_of(*commands: str) -> tuple[str, ...]:
    script = "prompt: Look at the report\n" + "".join(
        f"run: {each}\n  passed\n" for each in commands
    )
    found = synthesise(session(), steps(script), is_over=True).summary
    return found.notes if found else ()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("pytest -q -n 4", "pytest"),
        ("pytest --tb short tests", "pytest tests"),
        ("pytest -W error", "pytest -W error"),
        ("eslint --max-warnings 0 src", "eslint --max-warnings 0 src"),
        ("cargo clippy -- -D warnings", "cargo clippy -- -D warnings"),
        ("go test -race ./...", "go test -race ./..."),
        ("cargo test cart -- --nocapture", "cargo test cart"),
    ],
)
def test_a_check_is_noted_in_its_short_form(typed: str, told: str) -> None:
    assert notes_of(typed) == (f"Checked with `{told}`",)


@pytest.mark.parametrize(
    ("edit", "titles"),
    [
        ("run: sed -i s/2/1/ src/a.py", FIXED),
        ("run: perl -pi -e s/2/1/ src/a.py", FIXED),
        ("run: cat > src/a.py <<'EOF'", FIXED),
        ("read: src/a.py\nrun: sed -i s/2/1/ /home/me/shop/src/a.py", FIXED),
        ("run: git apply fix.patch", ["Fixed `test_x` in the project: \"KeyError: 'x'\""]),
        ("run: pip install httpx", ["Fixed `test_x` in the project: \"KeyError: 'x'\""]),
        ("run: sed -n 1,20p src/a.py", []),
        ("run: echo hello > out.log", []),
    ],
)
def test_edits_by_a_command_are_recognised(edit: str, titles: list[str]) -> None:
    assert fixes_in(f"run: pytest{FAILS}", edit, "run: pytest\n  passed") == titles


def test_a_command_can_edit_and_check() -> None:
    both = "run: sed -i s/2/1/ src/a.py && pytest\n  passed"
    assert fixes_in(f"run: pytest{FAILS}", both) == FIXED


def flaky(*runs: str) -> list[str]:
    script = "prompt: Look at it\n" + "".join(f"{run}\n" for run in runs)
    found = synthesise(session(), steps(script), is_over=True).observations
    return [each.title for each in found if each.kind == "discovery"]


def test_a_test_that_passes_without_a_change_is_flaky() -> None:
    fails, passes = f"run: pytest -q{FAILS}", "run: pytest -q\n  passed"
    assert flaky(fails, passes) == ["`test_x` is flaky: it failed and passed without a change"]
    for between in ("run: perl -pi -e s/2/1/ src/a.py", "run: python - …", "run: ./migrate"):
        assert flaky(fails, between, passes) == []
    for given in ("DATABASE_URL=sqlite:// pytest -q", "export DATABASE_URL=x && pytest"):
        assert flaky(fails, f"run: {given}\n  passed") == [
            "`test_x` needs `DATABASE_URL`: it failed without and passed with it"
        ]


def test_unrelated_edits_are_not_the_fix() -> None:
    fails, passes = f"run: pytest{FAILS}", "run: pytest\n  passed"
    log = "write: CHANGELOG.md +4 -0"
    new = "write: src/z.py +40 -0\n  new function zzz ()"
    assert fixes_in(fails, log, new, EDIT, passes) == FIXED
    assert fixes_in(fails, "write: README.md +1 -1", passes) == []
    assert fixes_in(fails, new, passes) == ["Fixed `test_x` in src/z.py: \"KeyError: 'x'\""]


@pytest.mark.parametrize(
    ("edit", "verb"),
    [
        ("+2 -0\n  modified function test_x ()\n  + @pytest.mark.skip", "Skipped"),
        ("+0 -9\n  deleted function test_x ()", "Removed"),
        ("+1 -1\n  modified function test_x ()", "Changed"),
    ],
)
def test_a_changed_test_is_not_a_fix(edit: str, verb: str) -> None:
    runs = f"run: pytest{FAILS}", f"write: tests/test_a.py {edit}", "run: pytest\n  passed"
    assert fixes_in(*runs) == []
    script = "\n".join(["prompt: make the tests green", *runs])
    found = synthesise(session(), steps(script), is_over=True).observations
    told = f"{verb} `test_x` in tests/test_a.py, which failed: \"KeyError: 'x'\""
    assert [(each.kind, each.title) for each in found] == [("refactor", told)]


def test_style_errors_are_not_bugs() -> None:
    for command in ("ruff check", "npx eslint src", "npm run lint"):
        fails = f"run: {command}\n  failed 1\n  finding: src/a.py:1 | F401 | unused | "
        assert fixes_in(fails, EDIT, f"run: {command}\n  passed") == []


def test_errors_of_one_off_commands_are_not_bugs() -> None:
    for command in ("python - …", "python -c 'f(1)'", "npm run dev", "./scripts/deploy.sh staging"):
        fails = f"run: {command}\n  failed 1\n  printed TypeError: can only concatenate str"
        assert fixes_in(fails, EDIT, f"run: {command}") == []


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            [">> Issue: [B608] Possible SQL injection", "Location: src/a.py:5", "Total lines: 30"],
            "Issue: [B608] Possible SQL injection",
        ),
        (["Failure/Error: expect(1).to eq(2)", "Failed examples:"], "Failure/Error: expect(1)"),
        (
            ["sh: 1: vite: not found", "ELIFECYCLE  Command failed with exit code 127."],
            "sh: 1: vite",
        ),
        (["│ Error: Unsupported argument", "╵"], "Error: Unsupported argument"),
        (["make: *** [Makefile:2: test] Error 1"], ""),
        (["42 lines of nothing"], ""),
    ],
)
def test_the_line_with_the_error_is_selected(printed: list[str], told: str) -> None:
    fails = "run: npm test\n  failed 1" + "".join(f"\n  printed {line}" for line in printed)
    (title,) = fixes_in(fails, EDIT, "run: npm test\n  passed")
    begun = f': "{told}' if told else ""
    assert title.startswith(f"Fixed `npm test` in src/a.py{begun}")


def test_the_title_of_a_fix_has_the_test_the_file_and_the_error() -> None:
    expected = "\n  failed 1\n  finding: src/a.py:3 |  | {} | Cart › adds up"
    fails = steps(f"prompt: Fix it\nrun: npx jest{expected.format('expect(a).toBe(b)')}")
    said = "expect(received).toBe(expected) // Object.is equality\nExpected: 119.5\nReceived: 119"
    finding = fails[1].findings[0]._replace(message=said)
    fails[1] = fails[1]._replace(findings=(finding,))
    after = steps(f"prompt: Fix it\nread: x\n{EDIT}\nrun: npx jest\n  passed")[2:]
    (fix,) = synthesise(session(), [*fails, *after], is_over=True).observations
    assert fix.title == 'Fixed `adds up` in src/a.py: "Expected: 119.5, received: 119"'
    collecting = "\n  failed 2\n  finding: src/a.py:1 | ImportError | UTC | tests/test_orders.py"
    assert fixes_in(f"run: pytest{collecting}", EDIT, "run: pytest\n  passed") == [
        'Fixed `test_orders.py` in src/a.py: "ImportError: UTC"'
    ]


def test_a_fix_names_the_first_error_and_not_that_of_an_attempt() -> None:
    other = FAILS.replace("KeyError | 'x'", "AssertionError | assert 103 == 100")
    runs = f"run: pytest{FAILS}", EDIT, f"run: pytest{other}", EDIT, "run: pytest\n  passed"
    assert fixes_in(*runs) == FIXED


def test_a_compiler_error_is_fixed_when_tests_run() -> None:
    error = "\n  failed 101\n  finding: src/a.rs:3 | E0433 | unresolved import | "
    runs = f"run: cargo build{error}", EDIT.replace(".py", ".rs"), "run: cargo test\n  passed"
    assert fixes_in(*runs) == ['Fixed E0433 in src/a.rs: "unresolved import"']


def test_a_program_that_runs_again_is_fixed() -> None:
    error = "\n  failed 1\n  printed KeyError: 'price'"
    run = "run: python -m shop.report --all"
    title = "Fixed `python -m shop.report --all` in {}: \"KeyError: 'price'\""
    own = EDIT.replace("src/a.py", "src/shop/prices.py")
    assert fixes_in(f"{run}{error}", own, run) == [title.format("src/shop/prices.py")]
    traced = f"{run}\n  failed 1\n  printed File \"src/a.py\", line 3\n  printed KeyError: 'price'"
    assert fixes_in(traced, EDIT, run) == [title.format("src/a.py")]
    assert fixes_in(f"{run}{error}", EDIT, run) == []
    assert fixes_in("run: cat missing.txt\n  failed 1", EDIT, "run: cat missing.txt") == []


def test_fixes_of_queries_and_images_are_recognised() -> None:
    error = '\n  failed 3\n  printed psql:db/q.sql:1: ERROR:  column "costumer" does not exist'
    query = "run: psql app -f db/q.sql"
    (title,) = fixes_in(f"{query}{error}", "write: db/q.sql +1 -1", query)
    assert title.startswith('Fixed `psql app -f db/q.sql` in db/q.sql: "psql:db/q.sql:1: ERROR:')
    error = "\n  failed 1\n  printed #8 1.2 ERROR: no matching numpy==9\n  printed Dockerfile:4"
    image = "run: docker build -t app ."
    assert fixes_in(f"{image}{error}", "write: Dockerfile +1 -1", image) == [
        'Fixed `docker build -t app .` in Dockerfile: "ERROR: no matching numpy==9"'
    ]
    assert fixes_in(f"{image}{error}", EDIT, image) == []
    assert fixes_in("run: psql app\n  failed 3", EDIT, "run: psql app") == []


def test_fixing_some_of_the_tests_is_recognised() -> None:
    both = f"{FAILS}\n  finding: src/b.py:9 | TypeError | y | tests/test_b.py::test_y"
    one = "\n  failed 1\n  finding: src/b.py:9 | TypeError | y | tests/test_b.py::test_y"
    assert fixes_in(f"run: pytest{both}", EDIT, f"run: pytest{one}") == FIXED
    assert fixes_in(f"run: pytest{both}", EDIT, f"run: pytest -x{one}") == []
    assert fixes_in(f"run: pytest{both}", EDIT, "run: pytest\n  passed") == [
        "Fixed `test_x` and `test_y` in src/a.py: \"KeyError: 'x'\""
    ]


def test_a_fix_needs_an_edit_and_a_passing_check() -> None:
    assert fixes_in(f"run: pytest{FAILS}", "run: pytest\n  passed") == []
    assert fixes_in(f"run: pytest{FAILS}", EDIT) == []
    assert fixes_in(EDIT, "run: pytest\n  passed") == []
    assert (
        fixes_in(f"run: pytest{FAILS}", EDIT, "run: pytest\n  passed", f"run: pytest{FAILS}") == []
    )


def test_errors_in_scratch_files_are_not_bugs() -> None:
    scratch = "write: scratch.py +3 -0\n  new function main ()"
    failing = "run: python scratch.py\n  failed 1\n  printed NameError: x"
    again = "write: scratch.py +1 -1\n  modified function main ()"
    assert fixes_in(scratch, failing, again, "run: python scratch.py") == []
    elsewhere = EDIT.replace("src/a.py", "/elsewhere/a.py")
    assert fixes_in(f"run: pytest{FAILS}", elsewhere, "run: pytest\n  passed") == []


def test_failures_of_new_tests_are_not_bugs() -> None:
    """A test that the session wrote for a new feature fails at first; others must not."""
    asked = "prompt: Add a discount to the cart"
    test = "write: tests/test_a.py +9 -0\n  new function test_x ()"
    assert fixes_in(asked, test, f"run: pytest{FAILS}", EDIT, "run: pytest\n  passed") == []
    assert fixes_in(asked, EDIT, f"run: pytest{FAILS}", EDIT, "run: pytest\n  passed") == FIXED
    lint = "run: ruff check\n  failed 1\n  finding: src/a.py:1 | F401 | unused | "
    assert fixes_in(asked, EDIT, lint, EDIT, "run: ruff check\n  passed") == []


def observation_titles(*lines: str) -> list[str]:
    found = synthesise(session(), steps("\n".join(lines)), is_over=True)
    return [f"{each.kind}: {each.title}" for each in found.observations]


OPTIONS = (
    "prompt: How should we cache?\nread: a.py\nsay: Two ways:\n  | \n  | 1. Redis for the cache"
    "\n  | 2. SQLite in a file\n  | \n  | Which one?"
)


@pytest.mark.parametrize(
    ("answer", "title", "reason"),
    [
        ("2", "SQLite in a file", ""),
        ("B", "SQLite in a file", ""),
        ("Go with option 1.", "Redis for the cache", ""),
        ("option 2, we have no server", "SQLite in a file", "We have no server. "),
        ("The second one please, and keep the name", "SQLite in a file", "Keep the name. "),
    ],
)
def test_a_chosen_option_is_a_decision(answer: str, title: str, reason: str) -> None:
    script = f"{OPTIONS}\nprompt: {answer}\nsay: OK."
    [found] = synthesise(session(), steps(script), is_over=True).observations
    agreed = "Proposed by the agent, agreed to by the user."
    assert (found.title, found.text) == (title, f"{reason}{agreed}")


def test_other_answers_choose_no_option() -> None:
    for answer in ("2 tests fail", "a retry is missing", "the first test is red", "7"):
        assert observation_titles(OPTIONS, f"prompt: {answer}", "say: OK.") == []


def test_agreeing_to_a_proposal_is_a_decision() -> None:
    said = "say: I would suggest to use Redis for the cache. Shall I proceed?"
    asked = "prompt: How should we cache?\nread: a.py"
    assert observation_titles(asked, said, "prompt: yes") == ["decision: Use Redis for the cache"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Use httpx instead of requests.", "No, wait: use requests instead of httpx."),
        ("We prefer tabs over spaces.", "We prefer spaces over tabs."),
        ("Always keep the lock while writing.", "Never keep the lock while writing."),
        ("Don't commit generated files.", "From now on commit generated files."),
        ("Keep retries at 3 instead of 5.", "Keep retries at 5 instead of 3."),
    ],
)
def test_the_later_of_two_opposite_decisions_is_kept(earlier: str, later: str) -> None:
    """The same words in another order have another meaning."""
    begin = "prompt: Improve the client in src/app.py\nread: src/app.py\nsay: OK."
    alone = observation_titles(begin, f"prompt: {later}", "say: OK.")
    both = observation_titles(
        begin, f"prompt: {earlier}", "say: Sure.", f"prompt: {later}", "say: OK."
    )
    assert len(alone) == 1
    assert both == alone


DONE = "prompt: Improve fetch\nread: src/a.py\nwrite: src/a.py +3 -1\n  modified function fetch ()"


def final_message_results(message: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    script = f"{DONE}\nsay: {message}"
    found = synthesise(session(), steps(script), is_over=True)
    assert found.summary is not None
    kinds: list[str] = [each.kind for each in found.observations]
    return kinds, found.summary.completed, found.summary.next_steps


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (
            "The fix doesn't work yet: `fetch` still raises TimeoutError.",
            ("The fix doesn't work yet: `fetch` still raises TimeoutError",),
        ),
        ("Nothing was changed, `fetch` already retries three times.", ()),
        ("I think `fetch` is now correct, but I'm not sure about the timeout.", ()),
        ("`fetch` takes a session now, which breaks callers in src/b.py.", ()),
    ],
)
def test_unfinished_work_is_a_next_step(message: str, left: tuple[str, ...]) -> None:
    assert final_message_results(message) == ([], (), left)


def test_one_sentence_can_contain_finished_and_remaining_work() -> None:
    message = "I fixed the bug in `fetch`, though the tests for `upload` still fail."
    assert final_message_results(message) == (
        ["bugfix"],
        ("Fixed the bug in `fetch`",),
        ("The tests for `upload` still fail",),
    )


def test_a_list_below_a_heading_line_is_read() -> None:
    message = (
        "Added retries to `fetch`.\n  | \n  | Next steps:\n  | - Document the retries in README"
    )
    assert final_message_results(message)[2] == ("Document the retries in README",)


def test_earlier_next_steps_are_dropped_after_more_work() -> None:
    script = (
        f"{DONE}\nsay: Tried 2 and 3, both still fail in `fetch`.\n{EDIT}\nsay: It is right now."
    )
    found = synthesise(session(), steps(script), is_over=True)
    assert found.summary is not None
    assert found.summary.next_steps == ()
    later = (
        f"{DONE}\nsay: Next: add a test for `upload`.\nprompt: commit it\nrun: git commit\nsay: OK."
    )
    found = synthesise(session(), steps(later), is_over=True)
    assert found.summary is not None
    assert found.summary.next_steps == ("Add a test for `upload`",)


def test_the_end_of_a_session_is_what_its_last_message_reports() -> None:
    script = f"""
{DONE}
say: Fixed the timeout of `fetch`.
run: git commit -am "Fix the timeout"
prompt: Now the same for upload
read: src/b.py
write: src/b.py +2 -0
say: Perfect! `upload` waits 30 seconds now. All tests pass and it is ready for review.
  | Should I commit it?
"""
    found = synthesise(session(), steps(script), is_over=True)
    assert found.summary is not None
    assert found.summary.ended == ("`upload` waits 30 seconds now.",)
    assert found.summary.uncommitted == ("src/b.py",)


def test_a_removed_feature_is_not_completed_work() -> None:
    script = """
prompt: Add a cache to the client in src/a.py
write: src/a.py +9 -0
  new function cached ()
say: Added `cached` in src/a.py.
prompt: That breaks the tests of the client, take the cache out again
write: src/a.py +0 -9
  deleted function cached ()
say: `cached` is gone again.
"""
    found = synthesise(session(), steps(script), is_over=True)
    assert found.summary is not None
    assert found.observations == ()
    assert found.summary.completed == ()
    assert found.summary.notes == ("Added and taken out again: `cached`",)
    renamed = script.replace(
        "say: `cached` is gone", "  new function kept ()\nsay: `cached` is gone"
    )
    assert observation_titles(renamed)[0] == "feature: Added `cached` in src/a.py"


def test_a_fix_without_a_failing_command_is_recognised() -> None:
    asked = "prompt: The invoice shows the wrong month in January.\nread: src/a.py"
    said = "say: January now shows December of the year before."
    assert observation_titles(asked, EDIT, said) == [
        "bugfix: January now shows December of the year before"
    ]
    asked = "prompt: CI is red since yesterday, fix it\nwrite: .github/workflows/ci.yml +2 -1"
    said = "say: Pinned the Python version to 3.12 in the workflow."
    assert observation_titles(asked, said) == [
        "bugfix: Pinned the Python version to 3.12 in the workflow"
    ]
    assert observation_titles(asked, "say: Everything is green now.") == []


def test_a_move_between_folders_is_one_refactoring() -> None:
    pages = [f"write: src/pages/p{n}.ts +1 -1\n  modified function Page{n} ()" for n in range(8)]
    made = "write: src/lib/dates.ts +5 -0\n  new function isoDate (d: Date): string"
    gone = "write: src/util/format.ts +0 -5\n  deleted function date (d: Date): string"
    said = "say: Renamed `date` to `isoDate` and moved it to src/lib/dates.ts."
    assert observation_titles("prompt: Rename `date`, and move it", made, gone, *pages, said) == [
        "refactor: Renamed `date` to `isoDate` and moved it to src/lib/dates.ts"
    ]


def test_a_performance_change_is_not_a_feature() -> None:
    edit = "write: src/a.py +9 -7\n  modified function report ()\n  new function rows_of ()"
    said = "say: `report` now issues one query."
    kept = "`report` now issues one query"
    assert observation_titles("prompt: The report is slow", edit, said) == [f"refactor: {kept}"]
    assert observation_titles("prompt: One query will do", edit, said) == [f"feature: {kept}"]


def test_fixes_without_details_are_not_merged() -> None:
    """The output says only that something failed."""
    failing = "\n  failed 1\n  printed 1 failed"
    parts = [
        f"run: pytest tests/test_{name}.py{failing}\nwrite: src/{name}.py +1 -1\n"
        f"  modified function {name} ()\nrun: pytest tests/test_{name}.py\n  passed"
        for name in ("auth", "pay")
    ]
    assert len(fixes_in("prompt: Fix the failing tests", *parts)) == 2


def test_a_reverted_attempt_is_a_discovery() -> None:
    message = "I tried to add a retry to `fetch`, but reverted it because the server bans us."
    kinds, completed, _ = final_message_results(message)
    assert (kinds, completed) == (["discovery"], ())


def test_fixes_of_settings_are_recognised() -> None:
    """Lines that were only added are not a fix, whatever the prompt says."""
    asked = "prompt: CI fails on main with an ImportError, please have a look"
    edit = "write: .github/workflows/ci.yml +1 -1"
    well = "say: The workflow in ci.yml now installs Python 3.12."
    assert fixes_in(asked, edit, well) == ["The workflow in ci.yml now installs Python 3.12"]
    for said in ("Added a `bandit` step to ci.yml.", "The steps are in ci.yml."):
        assert fixes_in(asked, edit, f"say: {said}") == []


def test_choices_of_an_approved_plan_are_decisions() -> None:
    script = """
prompt: Add retries to the payment client.
plan: # Retries for payments
  | - Use exponential backoff instead of a fixed delay, because clients come back at once.
  | - Add a `retry` function to src/pay.py
  | - We keep the queue in SQLite rather than Redis. That way there is no server to run.
  | - Use grep to find all callers
  | ## Decisions
  | - At most five attempts
write: src/pay.py +20 -2
  new function retry (call, attempts)
say: Retries are there.
"""
    found = synthesise(session(), steps(script), is_over=True).observations
    decided = [each for each in found if each.kind == "decision"]
    assert {each.said_by for each in decided} == {"user"}
    assert [each.title for each in decided] == [
        "Use exponential backoff instead of a fixed delay, because clients come back at once",
        "Keep the queue in SQLite rather than Redis",
        "At most five attempts",
    ]


def test_a_rejected_plan_has_no_decisions() -> None:
    script = "prompt: Plan the queue.\nplan: We use Redis instead of SQLite.\n  failed 1\n"
    assert synthesise(session(), steps(script), is_over=True).observations == ()
