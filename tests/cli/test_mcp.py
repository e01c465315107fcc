"""`ctx mcp`: whom it serves. `tests/mcp` talks to the server."""

import pytest

from ctx.cli import mcp
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from tests.conftest import Ctx


def test_a_person_is_told_how_to_register_it(ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "is_interactive", property(lambda _: True))
    ran = ctx("mcp")
    assert ran.code == 2
    assert "ctx install --mcp" in ran.err


@pytest.mark.parametrize(
    ("variables", "session"),
    [
        ({"CTX_SESSION": "mine", "CLAUDE_CODE_SESSION_ID": "theirs"}, "mine"),
        ({"CLAUDE_CODE_SESSION_ID": "theirs"}, "theirs"),
        ({"COPILOT_AGENT_SESSION_ID": "not a name!"}, "mcp-"),
        ({}, "mcp-"),
    ],
)
def test_the_session_is_that_of_the_host(variables: dict[str, str], session: str) -> None:
    assert mcp._session(Settings(variables, "/")).startswith(session)
