"""Event names that a client does not accept, by version."""

import pytest

from ctx.agents.claude_code import client_events, registration

OF_2_0_47 = (
    "PreToolUse PostToolUse Notification UserPromptSubmit SessionStart SessionEnd Stop"
    " SubagentStart SubagentStop PreCompact PermissionRequest"
).split()
OF_2_1_15 = [*OF_2_0_47, "PostToolUseFailure", "Setup"]
LATER = (
    "PostToolBatch UserPromptExpansion StopFailure PostCompact PreModelSwitch PostModelSwitch"
    " PermissionDenied TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult"
    " ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged"
    " DirectoryAdded MessageDisplay"
).split()


@pytest.mark.parametrize(("version", "known"), [("2.0.47", OF_2_0_47), ("2.1.15", OF_2_1_15)])
def test_older_clients_accept_only_their_own_events(version: str, known: list[str]) -> None:
    """The lists come from the clients themselves."""
    names = [*OF_2_1_15, *LATER, "Foo", "stop", ""]
    assert [name for name in names if not client_events.spoils_hooks(name, version)] == known


@pytest.mark.parametrize("version", ["2.1.101", "2.1.110", "2.1.325", "3.0.0-beta.1"])
def test_newer_clients_ignore_unknown_events(version: str) -> None:
    assert not any(client_events.spoils_hooks(name, version) for name in [*LATER, "Foo", ""])


@pytest.mark.parametrize(
    ("event", "before", "since"),
    [("TeammateIdle", "2.1.32", "2.1.33"), ("PermissionDenied", "2.1.88", "2.1.89")],
)
def test_an_event_is_accepted_since_its_version(event: str, before: str, since: str) -> None:
    assert client_events.spoils_hooks(event, before)
    assert not client_events.spoils_hooks(event, since)


@pytest.mark.parametrize("version", ["1.0.80", "2.0.47", "2.1.5", "2.1.15", "2.1.90", "2.1.325"])
def test_registered_events_are_accepted_by_every_version(version: str) -> None:
    entries = registration.user_entries([version], interpreter="python3", budget=2_000)
    assert not [event for event in entries if client_events.spoils_hooks(event, version)]
    shared = registration.project_entries()
    assert not [event for event in shared if client_events.spoils_hooks(event, version)]
