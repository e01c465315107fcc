"""Which commands a context lists, from what the sessions of a project ran."""

from collections.abc import Iterator
from typing import Any

import pytest

from ctx.context import command_lines, contexts
from ctx.memory.graph import Graph
from tests.memory import graphs
from tests.packs.session_store import command, session

WRAPPED, WORKS = "rtk bun run test", "bun run test"
UNKNOWN = "unrecognized subcommand 'bun'"


def texts(graph: Graph, project: str | None = "app") -> list[str]:
    return [line.texts[0] for line in command_lines.lines(graph.connection, project, "")]


@pytest.fixture
def project_sessions() -> Iterator[Graph]:
    with graphs.graph() as graph:
        for number in range(4):
            session(graph, f"s{number}", number + 1)
        yield graph


def put(graph: Graph, sessions: str, text: str, purpose: str = "test", **told: Any) -> None:
    for name in sessions.split():
        command(graph, name, text, purpose, **told)


def put_failure(graph: Graph, sessions: str, replaced_by: str = WORKS) -> None:
    failed = {"last": "failed", "problem": UNKNOWN, "replaced_by": replaced_by}
    put(graph, sessions, WRAPPED, **failed)


def test_commands_are_listed_by_purpose_with_their_runs(project_sessions: Graph) -> None:
    put(project_sessions, "s0 s1 s2", "pnpm vitest run", runs=3)
    put(project_sessions, "s0 s1 s2", "pnpm lint", "lint")
    put(project_sessions, "s0 s1", "pnpm dev", "start", last="")
    assert texts(project_sessions) == [
        "- test: `pnpm vitest run` (9 runs in 3 sessions)",
        "- lint: `pnpm lint` (3 runs in 3 sessions)",
        "- start: `pnpm dev` (2 runs in 2 sessions)",
    ]


def test_a_command_of_one_session_is_listed_only_for_the_newest(project_sessions: Graph) -> None:
    put(project_sessions, "s0", "make test")
    # Not for itself.
    assert command_lines.lines(project_sessions.connection, "app", "s0") == []
    put(project_sessions, "s2", "make old-test")
    put(project_sessions, "s0", "make unknown-test", last="")
    # Nor is a failure of one old session.
    put_failure(project_sessions, "s2")
    assert texts(project_sessions) == ["- test: `make test` (1 run in 1 session)"]
    assert texts(project_sessions, "other") == []


def test_a_run_of_a_single_test_is_left_out(project_sessions: Graph) -> None:
    put(project_sessions, "s0 s1", "pnpm --filter api test", runs=2)
    put(project_sessions, "s0 s1", "pnpm --filter api test -- --testPathPattern=shares")
    put(project_sessions, "s0 s1", "pnpm --filter web test")
    assert texts(project_sessions) == [
        "- test: `pnpm --filter api test` (4 runs in 2 sessions)",
        "- test: `pnpm --filter web test` (2 runs in 2 sessions)",
    ]


def test_a_trap_of_two_sessions_is_listed_with_what_worked(project_sessions: Graph) -> None:
    put_failure(project_sessions, "s1")
    assert texts(project_sessions) == []
    # The same reason with another command.
    failed = {"last": "failed", "problem": UNKNOWN}
    put(project_sessions, "s2", "rtk bun run lint", "trap", **failed)
    put(project_sessions, "s1 s2", WORKS)
    assert texts(project_sessions)[1:] == [f'- `{WRAPPED}` fails ("{UNKNOWN}"); `{WORKS}` works']


def test_a_trap_expires(project_sessions: Graph) -> None:
    old = {"last": "failed", "problem": "zsh: command not found: rg", "days_ago": 61}
    put(project_sessions, "s1 s2", "rg", "trap", **old)
    assert texts(project_sessions) == []
    put(project_sessions, "s0", "rg", "trap", **{**old, "days_ago": 59})
    assert texts(project_sessions) == ['- `rg` fails ("zsh: command not found: rg")']


def test_a_trap_that_works_since_is_not_listed(project_sessions: Graph) -> None:
    put(project_sessions, "s1 s2", "rg", "trap", last="failed", problem="rg: not found")
    put(project_sessions, "s0", "rg", "trap")
    assert texts(project_sessions) == []


def test_a_command_that_works_again_is_not_listed_as_failing(project_sessions: Graph) -> None:
    put_failure(project_sessions, "s1 s2")
    put(project_sessions, "s0", WRAPPED)
    assert texts(project_sessions) == [f"- test: `{WRAPPED}` (3 runs in 3 sessions)"]


def test_a_command_that_fails_now_is_not_listed_as_working(project_sessions: Graph) -> None:
    put(project_sessions, "s1 s2", "npm test")
    put(project_sessions, "s1 s2", "npm run lint", "lint")
    put(project_sessions, "s0", "npm test", last="failed", problem='Missing script: "test"')
    put(project_sessions, "s0", "npm run lint", "lint", last="failed")
    assert texts(project_sessions) == []


def test_a_replacement_that_fails_now_is_left_out(project_sessions: Graph) -> None:
    put_failure(project_sessions, "s1")
    put_failure(project_sessions, "s0", "")
    put(project_sessions, "s0", WORKS, last="failed")
    assert texts(project_sessions)[0] == f'- `{WRAPPED}` fails ("{UNKNOWN}")'


def test_a_prepared_context_expires_with_the_commands(project_sessions: Graph) -> None:
    before = contexts.sessions_digest(project_sessions.connection, "app")
    command(project_sessions, "s0", "make test")
    assert contexts.sessions_digest(project_sessions.connection, "app") != before
