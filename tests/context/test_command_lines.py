"""Which commands a context lists, from what the sessions of a project ran."""

from collections.abc import Iterator
from sqlite3 import Connection

import pytest

from ctx.context import command_lines, contexts, layers
from ctx.context.layers import ContextRequest
from ctx.memory.graph import Graph
from tests.memory import graphs
from tests.packs.worked import command, learning, session

WRAPPED = "rtk bun run test"
UNKNOWN = "unrecognized subcommand 'bun'"


def texts(graph: Graph, project: str | None = "app") -> list[str]:
    return [line.texts[0] for line in command_lines.lines(graph.connection, project, "")]


@pytest.fixture
def worked() -> Iterator[Graph]:
    with graphs.graph() as graph:
        for number in range(4):
            session(graph, f"s{number}", number + 1)
        yield graph


def test_what_is_run_for_each_purpose(worked: Graph) -> None:
    for name in ("s0", "s1", "s2"):
        command(worked, name, "pnpm vitest run", runs=3)
        command(worked, name, "pnpm lint", "lint")
    command(worked, "s0", "pnpm dev", "start", last="")
    command(worked, "s1", "pnpm dev", "start", last="")
    assert texts(worked) == [
        "- test: `pnpm vitest run` (9 runs in 3 sessions)",
        "- lint: `pnpm lint` (3 runs in 3 sessions)",
        "- start: `pnpm dev` (2 runs in 2 sessions)",
    ]


def test_one_session_is_enough_only_if_it_is_the_newest(worked: Graph) -> None:
    command(worked, "s0", "make test")
    command(worked, "s2", "make old-test")
    command(worked, "s0", "make unknown-test", last="")
    assert texts(worked) == ["- test: `make test` (1 run in 1 session)"]


def test_a_run_of_one_test_is_left_out(worked: Graph) -> None:
    for name in ("s0", "s1"):
        command(worked, name, "pnpm --filter api test", runs=2)
        command(worked, name, "pnpm --filter api test -- --testPathPattern=shares")
        command(worked, name, "pnpm --filter web test")
    assert texts(worked) == [
        "- test: `pnpm --filter api test` (4 runs in 2 sessions)",
        "- test: `pnpm --filter web test` (2 runs in 2 sessions)",
    ]


def test_a_command_that_fails_and_the_one_that_replaced_it(worked: Graph) -> None:
    for name in ("s1", "s2"):
        command(worked, name, WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
        command(worked, name, "bun run test")
    assert texts(worked) == [
        "- test: `bun run test` (2 runs in 2 sessions)",
        f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works',
    ]


def test_a_pair_of_one_old_session_is_not_listed(worked: Graph) -> None:
    command(worked, "s2", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
    command(worked, "s0", "make test")
    assert texts(worked) == ["- test: `make test` (1 run in 1 session)"]


def test_a_pair_of_one_old_session_is_listed_if_the_replacement_works_since(worked: Graph) -> None:
    command(worked, "s3", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
    for name in ("s3", "s2", "s1"):
        command(worked, name, "bun run test")
    assert texts(worked)[1:] == [f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works']


def test_a_pair_of_the_newest_session_is_listed(worked: Graph) -> None:
    command(worked, "s0", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
    command(worked, "s0", "bun run test")
    assert texts(worked)[1:] == [f'- `{WRAPPED}` fails ("{UNKNOWN}"); `bun run test` works']


def test_what_works_again_is_not_told_as_failing(worked: Graph) -> None:
    for name in ("s1", "s2"):
        command(worked, name, WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
    command(worked, "s0", WRAPPED)
    assert texts(worked) == [f"- test: `{WRAPPED}` (3 runs in 3 sessions)"]


def test_what_fails_now_is_not_told_as_working(worked: Graph) -> None:
    for name in ("s1", "s2"):
        command(worked, name, "npm test")
        command(worked, name, "npm run lint", "lint")
    command(worked, "s0", "npm test", last="failed", problem='Missing script: "test"')
    command(worked, "s0", "npm run lint", "lint", last="failed")
    assert texts(worked) == [
        '- `npm test` fails ("Missing script: "test"")',
        "- lint: `npm run lint` (3 runs in 3 sessions; the last one failed)",
    ]


def test_a_replacement_that_fails_now_is_left_out(worked: Graph) -> None:
    command(worked, "s1", WRAPPED, last="failed", problem=UNKNOWN, replaced_by="bun run test")
    command(worked, "s0", WRAPPED, last="failed", problem=UNKNOWN)
    command(worked, "s0", "bun run test", last="failed")
    assert texts(worked)[0] == f'- `{WRAPPED}` fails ("{UNKNOWN}")'


def test_a_program_that_is_missing(worked: Graph) -> None:
    for name in ("s0", "s1"):
        command(worked, name, "docker", "other", "failed", "command not found")
    assert texts(worked) == ["- `docker` is not installed"]


def test_of_another_project_there_is_nothing(worked: Graph) -> None:
    command(worked, "s0", "make test")
    assert texts(worked, "other") == []


def test_the_running_session_does_not_count(worked: Graph) -> None:
    command(worked, "s0", "make test")
    assert command_lines.lines(worked.connection, "app", "s0") == []


def test_a_prepared_context_expires_with_the_commands(worked: Graph) -> None:
    def state(connection: Connection) -> str:
        return contexts.sessions_digest(connection, "app")

    before = state(worked.connection)
    command(worked, "s0", "make test")
    assert state(worked.connection) != before


def test_a_learning_about_a_command_that_is_listed_is_not_repeated(worked: Graph) -> None:
    learning(worked, "convention", "Tests are run with `mise run test`.")
    learning(worked, "convention", "Tests are run with `mise run test:ci`.")
    for name in ("s0", "s1"):
        command(worked, name, "mise run test")
    text = layers.context([worked.connection], ContextRequest("app", None, 2_000)).text
    assert text.count("`mise run test`") == 1
    assert "Tests are run with `mise run test:ci`." in text
