"""Which session leads the team of another one, by what the client writes."""

import json
from pathlib import Path

import pytest

from ctx.agents.claude_code import payloads, transcripts
from ctx.agents.claude_code.adapter import ClaudeTranscripts
from ctx.hosts.events import Heading
from tests.capture.transcripts import Transcript

LEAD = "0c1fb4a8-52d1-4e0c-9a55-6cf7d9c12f01"
MATE = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"
AT = "2026-11-02T09:00:00Z"


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-home-dev-shop"


def configure(projects: Path, team: str, config: str) -> None:
    folder = projects.parent.parent / "teams" / team
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config)


def test_a_teammate_names_its_lead(projects: Path) -> None:
    configure(projects, "checkout", json.dumps({"leadSessionId": LEAD}))
    mate = Transcript(projects, MATE)
    mate.in_team("checkout", "tester")
    mate.prompt('<teammate-message teammate_id="team-lead">Test it.</teammate-message>')
    mate.say("All tests pass.")
    (said,) = ClaudeTranscripts().events(str(mate.path), 0).events
    assert (said.text, said.team, said.teammate, said.lead) == (
        "All tests pass.",
        "checkout",
        "tester",
        LEAD,
    )


@pytest.mark.parametrize(
    "config", ["", "[]", '{"leadSessionId": 7}', '{"leadSessionId": "../x"}', "[" * 10_000]
)
def test_a_team_that_is_gone_or_damaged(projects: Path, config: str) -> None:
    configure(projects, "checkout", config)
    mate = Transcript(projects, MATE)
    assert transcripts.lead_of(str(mate.path), "checkout") == ""
    assert transcripts.lead_of(str(mate.path), "../teams/checkout") == ""


def test_a_team_that_is_named_after_its_lead(projects: Path) -> None:
    mate = str(Transcript(projects, MATE).path)
    assert transcripts.lead_of(mate, "session-0c1fb4a8") == ""
    Transcript(projects, LEAD)
    assert transcripts.lead_of(mate, "session-0c1fb4a8") == LEAD
    Transcript(projects, f"{LEAD[:-1]}2")
    assert transcripts.lead_of(mate, "session-0c1fb4a8") == ""


def test_the_lead_itself(projects: Path) -> None:
    lead = Transcript(projects, LEAD)
    lead.in_team("checkout", "team-lead")
    lead.say("I start two agents.")
    (said,) = ClaudeTranscripts().events(str(lead.path), 0).events
    assert (said.team, said.teammate, said.lead) == ("checkout", "", "")


def test_an_agent_in_the_process_of_its_lead_is_a_subagent(projects: Path) -> None:
    agent = Transcript(projects, LEAD).subagent("a1")
    agent.entry(
        "assistant",
        message={"id": "m", "content": [{"type": "text", "text": "Done."}]},
        teamName="checkout",
        agentName="tester",
    )
    (said,) = ClaudeTranscripts().events(str(agent.path), 0).events
    assert (said.session, said.agent, said.team) == (LEAD, "a1", "")


@pytest.mark.parametrize(
    ("tool", "response", "team"),
    [
        ("TeamCreate", {"team_name": "checkout"}, "checkout"),
        ("Agent", {"status": "teammate_spawned", "team_name": "checkout"}, "checkout"),
        ("Agent", {"team_name": 7}, ""),
        ("Bash", {"team_name": "checkout"}, ""),
        ("TeamCreate", "checkout", ""),
    ],
)
def test_a_call_that_starts_a_team(tool: str, response: object, team: str) -> None:
    heading = Heading("1", LEAD, "PostToolUse", AT, "/shop", tool, "t1")
    event = payloads.restore(heading, {"tool_name": tool, "tool_response": response})
    assert (event.team, event.teammate) == (team, "")


def test_what_a_lead_writes_to_a_teammate_is_no_prompt_of_a_user() -> None:
    heading = Heading("1", MATE, "UserPromptSubmit", AT, "/shop", None, None)
    event = payloads.restore(heading, {"prompt": "<teammate-message>Test it.</teammate-message>"})
    assert event.speaker == "host"
