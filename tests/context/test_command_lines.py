"""Which commands a context lists, from what the sessions of a project ran."""

from collections.abc import Iterator
from sqlite3 import Connection

import pytest

from ctx.context import command_lines, contexts, layers
from ctx.context.layers import ContextRequest
from ctx.memory.graph import Graph
from tests.memory import graphs
from tests.packs.session_store import command, learning, session

WRAPPED = "rtk bun run test"
UNKNOWN = "unrecognized subcommand 'bun'"


def texts(graph: Graph, project: str | None = "app") -> list[str]:
    return [line.texts[0] for line in command_lines.lines(graph.connection, project, "")]


@pytest.fixture
def project_sessions() -> Iterator[Graph]:
    with graphs.graph() as graph:
        for number in range(4):
            session(graph, f"s{number}", number + 1)
        yield graph


def test_commands_are_listed_by_purpose_with_their_runs(project_sessions: Graph) -> None:
    for name in ("s0", "s1", "s2"):
        command(project_sessions, name, "pnpm vitest run", runs=3)
        command(project_sessions, name, "pnpm lint", "lint")
    command(project_sessions, "s0", "pnpm dev", "start", last="")
    command(project_sessions, "s1", "pnpm dev", "start", last="")
    assert texts(project_sessions) == [
        "- test: `pnpm vitest run` (9 runs in 3 sessions)",
        "- lint: `pnpm lint` (3 runs in 3 sessions)",
        "- start: `pnpm dev` (2 runs in 2 sessions)",
    ]


def test_a_command_of_one_session_is_listed_only_for_the_newest(project_sessions: Graph) -> None:
    command(project_sessions, "s0", "make test")
    command(project_sessions, "s2", "make old-test")
    command(project_sessions, "s0", "make unknown-test", last="")
    assert texts(project_sessions) == ["- test: `make test` (1 run in 1 session)"]


def test_a_run_of_a_single_test_is_left_out(project_sessions: Graph) -> None:
    for name in ("s0", "s1"):
        command(project_sessions, name, "pnpm --filter api test", runs=2)
        command(project_sessions, name, "pnpm --filter api test -- --testPathPattern=shares")
        command(project_sessions, name, "pnpm --filter web test")
    assert texts(project_sessions) == [
        "- test: `pnpm --filter api test` (4 runs in 2 sessions)",
        "- test: `pnpm --filter web test` (2 runs in 2 sessions)",
    ]


def test_a_failing_command_is_listed_with_its_replacement(project_sessions: Graph) -> None:
    for name in ("s1", "s2"):
        command(
            project_sessions,
            name,
            WRAPPED,
            last="failed",
            problem=UNKNOWN,
            replaced_by="bun run test",
        )
        command(project_sessions, name, "bun run test")
    assert texts(project_sessions) == [
        "- test: `bun run test` (2 runs in 2 sessions)",
        f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works',
    ]


def test_a_pair_of_one_old_session_is_not_listed(project_sessions: Graph) -> None:
    command(
        project_sessions, "s2", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test"
    )
    command(project_sessions, "s0", "make test")
    assert texts(project_sessions) == ["- test: `make test` (1 run in 1 session)"]


def test_a_pair_of_one_old_session_is_listed_if_the_replacement_works_since(
    project_sessions: Graph,
) -> None:
    command(
        project_sessions, "s3", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test"
    )
    for name in ("s3", "s2", "s1"):
        command(project_sessions, name, "bun run test")
    assert texts(project_sessions)[1:] == [
        f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works'
    ]


def test_a_pair_of_the_newest_session_is_listed(project_sessions: Graph) -> None:
    command(
        project_sessions, "s0", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test"
    )
    command(project_sessions, "s0", "bun run test")
    assert texts(project_sessions)[1:] == [
        f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works'
    ]


def test_a_command_that_works_again_is_not_listed_as_failing(project_sessions: Graph) -> None:
    for name in ("s1", "s2"):
        command(
            project_sessions,
            name,
            WRAPPED,
            last="failed",
            problem=UNKNOWN,
            replaced_by="bun run test",
        )
    command(project_sessions, "s0", WRAPPED)
    assert texts(project_sessions) == [f"- test: `{WRAPPED}` (3 runs in 3 sessions)"]


def test_a_command_that_fails_now_is_not_listed_as_working(project_sessions: Graph) -> None:
    for name in ("s1", "s2"):
        command(project_sessions, name, "npm test")
        command(project_sessions, name, "npm run lint", "lint")
    command(project_sessions, "s0", "npm test", last="failed", problem='Missing script: "test"')
    command(project_sessions, "s0", "npm run lint", "lint", last="failed")
    assert texts(project_sessions) == [
        '- `npm test` fails ("Missing script: "test"")',
        "- lint: `npm run lint` (3 runs in 3 sessions; the last one failed)",
    ]


def test_a_replacement_that_fails_now_is_left_out(project_sessions: Graph) -> None:
    command(
        project_sessions, "s1", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test"
    )
    command(project_sessions, "s0", WRAPPED, last="failed", problem=UNKNOWN)
    command(project_sessions, "s0", "bun run test", last="failed")
    assert texts(project_sessions)[0] == f'- `{WRAPPED}` fails ("{UNKNOWN}")'


def test_a_missing_program_is_listed(project_sessions: Graph) -> None:
    for name in ("s0", "s1"):
        command(project_sessions, name, "docker", "other", "failed", "command not found")
    assert texts(project_sessions) == ["- `docker` is not installed"]


def test_commands_of_another_project_are_not_listed(project_sessions: Graph) -> None:
    command(project_sessions, "s0", "make test")
    assert texts(project_sessions, "other") == []


def test_the_running_session_does_not_count(project_sessions: Graph) -> None:
    command(project_sessions, "s0", "make test")
    assert command_lines.lines(project_sessions.connection, "app", "s0") == []


def test_a_prepared_context_expires_with_the_commands(project_sessions: Graph) -> None:
    def state(connection: Connection) -> str:
        return contexts.sessions_digest(connection, "app")

    before = state(project_sessions.connection)
    command(project_sessions, "s0", "make test")
    assert state(project_sessions.connection) != before


def test_a_learning_about_a_command_that_is_listed_is_not_repeated(project_sessions: Graph) -> None:
    learning(project_sessions, "convention", "Tests are run with `mise run test`.")
    learning(project_sessions, "convention", "Tests are run with `mise run test:ci`.")
    for name in ("s0", "s1"):
        command(project_sessions, name, "mise run test")
    text = layers.context([project_sessions.connection], ContextRequest("app", None, 2_000)).text
    assert text.count("`mise run test`") == 1
    assert "Tests are run with `mise run test:ci`." in text
