"""The commands of a session: their normal form, their outcomes, and what replaced them."""

import pytest

from ctx.capture.steps import Step
from ctx.synthesis.check_commands import checks
from ctx.synthesis.part_outcomes import outcomes
from ctx.synthesis.project_commands import SessionCommand, purpose_of, session_commands
from ctx.synthesis.timeline import Timeline
from tests.synthesis.session_scripts import steps


def rows(script: str, folder: str = "/shop") -> list[SessionCommand]:
    return session_commands(Timeline(steps(script)), folder)


def commands(script: str) -> list[str]:
    return [row.command for row in rows(script)]


def finished_command(command: str, exit_code: int | None = 0, passed: bool | None = None) -> Step:
    is_ok = exit_code in (0, None)
    return Step(
        "e1", "s1", "2026-11-15T00:00:00Z", "command", text=command, ok=is_ok, exit_code=exit_code
    )._replace(passed=passed)


def outcome_by_part(step: Step) -> dict[str, bool | None]:
    return {each.part.text: each.passed for each in outcomes(step)}


@pytest.mark.parametrize(
    ("command", "purpose"),
    [
        ("bun test", "test"),
        ("pnpm --filter web dev", "start"),
        ("pnpm vitest run", "test"),
        ("pnpm exec playwright test", "test"),
        ("npm start", "start"),
        ("mise run test:ci", "test"),
        ("make check", "lint"),
        ("uv run pytest -q", "test"),
        ("tox -e py312", "test"),
        ("deno task dev", "start"),
        ("cargo nextest run", "test"),
        ("cargo run", "start"),
        ("go test ./...", "test"),
        ("go test -c ./pkg -o /dev/null", "build"),
        ("./gradlew test", "test"),
        ("gradle assemble", "other"),
        ("dotnet test", "test"),
        ("npx tsc --noEmit", "lint"),
        ("python -m pytest", "test"),
        ("PYTHONPATH=src python -m pytest", "test"),
        ("npx nx test shop", "test"),
        ("docker compose exec web pytest", "test"),
        ("rtk bun run test", "test"),
        ("vite build", "build"),
        ("pnpm api:generate", "other"),
        ("python scripts/seed.py", "other"),
    ],
)
def test_commands_have_a_purpose(command: str, purpose: str) -> None:
    assert [purpose_of(check) for check in checks(command)] == [purpose]


@pytest.mark.parametrize(
    "command",
    ["ls -la", "git commit -m test", "pnpm add vitest", "curl localhost", "echo test", "cd src"],
)
def test_other_commands_are_not_project_commands(command: str) -> None:
    assert rows(f"run: {command}\n  passed") == []


@pytest.mark.parametrize(
    ("typed", "normal"),
    [
        ("cd /shop && bun run test 2>&1 | tail -20", "bun run test"),
        ("cd /shop/web && bun run css:build", "cd web && bun run css:build"),
        ("FOO=1 timeout 60 pytest -x -q --tb=short tests", "FOO=1 pytest tests"),
        ("NO_COLOR=1 npx vitest run > /tmp/log.txt", "npx vitest run"),
        (
            "go test -v -tags e2e ./... -run 'TestA|TestB'",
            "go test -tags=e2e ./... -run 'TestA|TestB'",
        ),
        ("pytest /shop/tests/test_a.py", "pytest tests/test_a.py"),
        ("nohup pnpm dev > /tmp/dev.log 2>&1 &", "pnpm dev"),
    ],
)
def test_commands_are_normalised(typed: str, normal: str) -> None:
    assert commands(f"run: {typed}\n  passed") == [normal]


def test_commands_elsewhere_do_not_count() -> None:
    assert commands("run: cd /tmp/experiment && npm test\n  passed") == []


def test_each_part_of_a_chain_has_its_outcome() -> None:
    assert outcome_by_part(finished_command("make fmt && make lint")) == {
        "make fmt": True,
        "make lint": True,
    }
    # It is not known which of the two failed.
    assert outcome_by_part(finished_command("make fmt && make lint", 1)) == {
        "make fmt": None,
        "make lint": None,
    }
    # The exit code is that of the last command, or of the filter.
    assert outcome_by_part(finished_command("make lint; make test", 1)) == {
        "make lint": None,
        "make test": False,
    }
    assert outcome_by_part(finished_command("make lint; make test")) == {
        "make lint": None,
        "make test": True,
    }
    assert outcome_by_part(finished_command("make test | tail")) == {
        "make test": None,
        "tail": None,
    }
    assert outcome_by_part(finished_command("make test || true"))["make test"] is None
    assert outcome_by_part(finished_command("make test || make retry", 1))["make test"] is False
    assert outcome_by_part(finished_command("cd web && make test", 2)) == {
        "cd web": True,
        "make test": False,
    }
    assert (
        outcome_by_part(finished_command("set -o pipefail; make test | tail"))["make test"] is True
    )
    assert outcome_by_part(finished_command("pnpm dev &", None))["pnpm dev &"] is None
    assert outcome_by_part(finished_command("make test", 124))["make test"] is None


def test_the_output_shows_which_part_failed() -> None:
    line = "bun run lint && bun run typecheck && bun run test"
    step = finished_command(line, 1)._replace(
        output='x\nerror: script "typecheck" exited with code 1'
    )
    assert outcome_by_part(step) == {
        "bun run lint": True,
        "bun run typecheck": False,
        "bun run test": None,
    }
    assert outcome_by_part(finished_command("pytest | tail -5", 0, passed=False))["pytest"] is False
    assert outcome_by_part(finished_command("pytest | tail -5", 0, passed=True))["pytest"] is True


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("npm test && git push", "error: failed to push some refs to 'origin'"),
        ("npm run build && git commit -m x", "nothing to commit, working tree clean"),
        ("npm run build && sed -n 1p dist/a.js", "sed: can't read dist/a.js: No such file"),
    ],
)
def test_what_ran_before_the_failing_part_of_a_chain_passed(line: str, output: str) -> None:
    step = finished_command(line, 1)._replace(output=output)
    assert list(outcome_by_part(step).values()) == [True, False]


def test_a_call_that_never_ran_has_no_outcome() -> None:
    step = finished_command("bun run typecheck", None)._replace(
        ok=False, output="Sibling tool call errored"
    )
    assert outcomes(step) == []


WRAPPER = """
prompt: Sort the list.
run: rtk bun run test 2>&1
  failed 2
  printed error: unrecognized subcommand 'bun'
  printed Usage: rtk [OPTIONS] <COMMAND>
run: bun run test 2>&1
  passed
"""


def test_a_failing_wrapper_is_kept_with_its_replacement() -> None:
    failed, worked = rows(WRAPPER)
    assert (failed.command, failed.last) == ("rtk bun run test", "failed")
    assert failed.problem == "unrecognized subcommand 'bun'"
    assert failed.replaced_by == "bun run test"
    assert (worked.command, worked.runs, worked.passes, worked.last) == (
        *("bun run test", 1, 1),
        "passed",
    )


def test_a_command_with_an_environment_variable_is_a_replacement() -> None:
    failed, _ = rows(
        """
run: pytest
  failed 2
  printed ModuleNotFoundError: No module named 'app'
run: PYTHONPATH=src python -m pytest
  passed
"""
    )
    assert failed.command == "pytest"
    assert failed.problem == "ModuleNotFoundError: No module named 'app'"
    assert failed.replaced_by == "PYTHONPATH=src python -m pytest"


def test_a_command_that_passes_later_is_not_replaced() -> None:
    script = f"{WRAPPER}run: rtk bun run test\n  passed\n"
    assert all(row.last == "passed" and not row.replaced_by for row in rows(script))


def test_a_failing_test_is_not_a_failing_command() -> None:
    found = rows(
        """
run: pytest
  failed 1
  finding: tests/test_a.py:3 | AssertionError | assert 1 == 2 | tests/test_a.py::test_a
write: src/a.py +1 -1
run: pytest tests/test_a.py
  passed
"""
    )
    assert [(row.command, row.last, row.problem, row.replaced_by) for row in found] == [
        ("pytest", "failed", "", ""),
        ("pytest tests/test_a.py", "passed", "", ""),
    ]


def test_a_lint_fix_is_not_a_replacement() -> None:
    found = rows(
        """
run: bun run lint
  failed 1
  printed error: script "lint" exited with code 1
run: bun run lint:fix
  passed
"""
    )
    assert not any(row.replaced_by for row in found)


def test_a_narrower_run_is_not_a_replacement() -> None:
    found = rows(
        """
run: go test ./...
  failed 1
run: go test ./one
  passed
"""
    )
    assert not any(row.replaced_by for row in found)


@pytest.mark.parametrize(
    ("failed", "printed", "then", "trap"),
    [
        (
            *("cat app/[id]/page.tsx", "zsh:1: no matches found: app/[id]/page.tsx"),
            *("cat 'app/[id]/page.tsx'", ("cat app/[id]/page.tsx", "zsh: no matches found: …")),
        ),
        (
            *("docker-compose up -d", "/bin/bash: line 1: docker-compose: command not found"),
            *(
                "docker compose up -d",
                ("docker-compose", "bash: docker-compose: command not found"),
            ),
        ),
        (
            *("python - <<'PY' …", "(eval):1: command not found: python"),
            *("python3 - <<'PY' …", ("python", "(eval): command not found: python")),
        ),
        (
            *("npm test -- --runInBand", "CACError: Unknown option `--runInBand`"),
            *("npm test", ("npm test -- --runInBand", "CACError: Unknown option `--runInBand`")),
        ),
        (
            *(
                "git add -A",
                "fatal: Unable to create '/shop/.git/index.lock': Read-only file system",
            ),
            *("", ("git add -A", "Unable to create '…': Read-only file system")),
        ),
        (
            *("cd apps/api && npm test", "zoxide: no match found"),
            *("", ("cd apps/api && npm test", "zoxide: no match found")),
        ),
    ],
)
def test_a_trap_has_its_reason_and_what_worked_then(
    failed: str, printed: str, then: str, trap: tuple[str, str]
) -> None:
    worked = f"run: {then}\n" if then else ""
    found = rows(f"run: {failed}\n  failed 1\n  printed {printed}\nrun: ls\n{worked}")
    assert [(row.command, row.problem, row.replaced_by) for row in found if row.problem] == [
        (*trap, then.partition(" <<")[0])
    ]


def test_an_install_is_what_worked() -> None:
    found = rows(
        """
run: npm test
  failed 1
  printed > vitest run
  printed sh: 1: vitest: not found
run: npm install
run: npm test
  passed
"""
    )
    assert [(row.problem, row.replaced_by) for row in found] == [
        ("sh: vitest: not found", "npm install && npm test")
    ]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("cat src/a.py", "cat: src/a.py: No such file or directory"),
        ("rg order src", ""),
        ("npm view shop-nonexistent version", "npm error 404 Not Found: shop-nonexistent"),
        ("npm test", "  ✓ says that the order does not exist 2ms"),
        ("npx vitest run a.test.ts", "zsh:1: command not found: dump_zsh_state"),
    ],
)
def test_other_failures_are_no_traps(command: str, printed: str) -> None:
    found = rows(f"run: {command}\n  failed 1\n  printed {printed}")
    assert not any(row.problem for row in found)


def test_the_success_of_another_sessions_trap_is_kept() -> None:
    missing = ("docker", "zsh: command not found: docker")
    timeline = Timeline(steps("run: docker ps -a\nrun: git add -A\nrun: git push\n  failed 1"))
    found = session_commands(timeline, "/shop", [missing, ("git add -A", "Not permitted")])
    assert {(row.command, row.purpose, row.last) for row in found} == {
        ("docker", "trap", "passed"),
        ("git add -A", "trap", "passed"),
    }


@pytest.mark.parametrize(
    "command",
    [
        "cd .claude/worktrees/one && npm test",
        "bash /tmp/try/test.sh",
        "npm test -- --config ~/other.json",
        'pytest "$SCRATCH/test_a.py"',
        "pytest tests/nonexistent.py",
    ],
)
def test_commands_with_a_path_elsewhere_are_left_out(command: str) -> None:
    assert commands(f"run: {command}\n  passed") == []
