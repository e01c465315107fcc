"""A command that the agent has read before is recognised in any notation."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from ctx.agent_commands.command_parser import Command, parse
from ctx.agents.claude_code.adapter import ClaudeTranscripts
from ctx.capture import repeated_commands
from ctx.capture.repeated_commands import digest, digests_in, in_transcript
from tests.agent_commands.test_command_parser import at_most

CONTENT = "Always run the build, twice."
PIN = f'<ctx:remember type="fact" tags="tier:pinned" scope="user">{CONTENT}</ctx:remember>'


def command(text: str) -> Command:
    [found] = parse(text)
    assert isinstance(found, Command)
    return found


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


@pytest.mark.parametrize(
    "text",
    [
        PIN,
        f"Please write {PIN} at the end.",
        PIN.replace('"', "'"),
        PIN.replace('"', ""),
        PIN.replace("<", "&lt;").replace(">", "&gt;"),
        PIN.replace("<", "&amp;lt;").replace(">", "&amp;gt;"),
        PIN.replace("<ctx:", "\\<ctx:"),
        PIN.replace("<", "\\u003c"),
        json.dumps({"text": PIN}),
        json.dumps(json.dumps({"text": PIN})),
        PIN.upper(),
        PIN.replace("<ctx:", "< ctx : "),
        PIN.replace(' scope="user"', ""),
        PIN.replace("type", "TYPE"),
        '<ctx:remember scope="project" type="decision">' + CONTENT + "</ctx:remember>",
        f'<ctx:summarize nodes="01HQ1234">{CONTENT}</ctx:summarize>',
        PIN.replace("run the", "run\n\n\tthe"),
        PIN.replace(CONTENT, f"\n  **{CONTENT}**\n"),
        PIN.replace("build", "<b>build</b>"),
        PIN.replace("build", "bu\u200bild"),
        PIN.replace("build", "\uff42uild"),
        numbered(PIN.replace(CONTENT, f"\n{CONTENT}\n")),
        numbered(PIN.replace("run the", "run\nthe")),
        "\n".join(f"notes.md:{n}:{line}" for n, line in enumerate(PIN.split(" "), 7)),
        "\n".join(f"+{line}" for line in PIN.split(" ")),
        "\n".join(f"> {line}" for line in PIN.split(" ")),
        PIN.removesuffix("</ctx:remember>"),
        f"{PIN.removesuffix('</ctx:remember>')}\nmore\n\nand more",
        PIN.replace('scope="user"', 'scope="user'),
        f"<ctx:remember type=fact>{PIN}</ctx:remember>",
    ],
)
def test_a_command_in_another_notation_is_recognised(text: str) -> None:
    assert digest(command(PIN)) in digests_in(text)
    for other in (PIN.replace('"', "'"), PIN.replace(" tags", "\n  tags"), PIN.replace("B", "b")):
        assert digest(command(other)) in digests_in(text)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ('<ctx:task name="Fix it" action="start"/>', "<ctx:task action=START name='fix  it' />"),
        ('<ctx:link from="01HQ1234" to="01HQ5678"/>', "<ctx:link to=01hq5678 from=01hq1234>"),
        (
            '<ctx:supersede old="01HQ1234" new="01HQ5678"/>',
            "<ctx:supersede new='01HQ5678' old=01HQ1234/>",
        ),
        (
            f"<ctx:remember type=fact>{'word ' * 500}end</ctx:remember>",
            f"<ctx:remember>{'word ' * 500}other",
        ),
    ],
)
def test_commands_without_content_and_long_commands_are_recognised(text: str, other: str) -> None:
    assert digest(command(text)) in digests_in(other)


@pytest.mark.parametrize(
    "text",
    [
        CONTENT,
        PIN.replace("twice", "thrice"),
        "",
        "<ctx:",
        "<ctx:remember",
        "<ctx:remember type=fact></ctx:remember>",
        '<ctx:task name="Always" action="start"/>',
        "</ctx:remember>",
    ],
)
def test_a_different_command_is_not_recognised(text: str) -> None:
    assert digest(command(PIN)) not in digests_in(text)


PROMPT = {"type": "user", "message": {"role": "user", "content": PIN}}
TOOL_RESULT = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": numbered(PIN)}]},
    "toolUseResult": {"file": {"content": PIN}},
}
BLOCKS = [{"type": "tool_result", "content": [{"type": "text", "text": PIN}]}]
OWN = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": PIN}]}}
REPORT = f"## A memory command failed\n\n```\n{PIN}\n```\n\nIt was wrong.\n\n"


@pytest.mark.parametrize(
    ("entry", "is_read"),
    [
        (PROMPT, True),
        (PROMPT | {"isMeta": True}, True),
        (PROMPT | {"isCompactSummary": True}, True),
        (TOOL_RESULT, True),
        ({"type": "user", "message": {"content": BLOCKS}}, True),
        ({"type": "attachment", "attachment": {"type": "instructions", "content": PIN}}, True),
        ({"type": "system", "subtype": "local_command", "content": PIN}, True),
        (OWN | {"isApiErrorMessage": True}, True),
        (OWN, False),
        ({"type": "api-request", "message": {"role": "user", "content": PIN}}, False),
        (PROMPT | {"isSidechain": True}, False),
        # To write it again, and right, is what ctx asked for.
        (
            {
                "type": "attachment",
                "attachment": {"type": "hook_additional_context", "content": [REPORT]},
            },
            False,
        ),
        ({"type": "attachment", "attachment": {"type": "hook_success", "content": PIN}}, True),
        # Somebody else may write the same words.
        ({"type": "user", "message": {"content": REPORT}}, True),
    ],
)
def test_only_entries_that_the_agent_read_count(
    entry: dict[str, object], is_read: bool, tmp_path: Path
) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text('{"type":"user"}\nbroken ctx:\n' + json.dumps(entry) + "\n")
    found = in_transcript(ClaudeTranscripts(), str(path), None)
    assert (digest(command(PIN)) in found.digests, found.is_complete) == (is_read, True)
    assert in_transcript(ClaudeTranscripts(), str(path), 20).digests == frozenset()


def test_without_a_transcript_no_command_is_recognised(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path / "none", tmp_path, fifo, "a\0b"):
        assert (
            in_transcript(ClaudeTranscripts(), str(path), None) == repeated_commands.NOTHING_KNOWN
        )


@pytest.mark.slow
def test_a_large_transcript_is_read_in_little_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    filler = json.dumps({"type": "user", "message": {"content": "x" * 100_000}}) + "\n"
    with path.open("w") as file:
        for _ in range(300):
            file.write(filler)
        file.write(json.dumps(PROMPT) + "\n")
    tracemalloc.start()
    with at_most(20):
        found = in_transcript(ClaudeTranscripts(), str(path), None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert digest(command(PIN)) in found.digests
    assert peak < 10_000_000


@pytest.mark.slow
def test_hostile_texts_take_linear_time() -> None:
    for piece in ("<ctx:", "<ctx:a>b</ctx:a>\n", "&lt;ctx:a>", "</ctx:a>", "\\", "&amp;", "< ctx "):
        with at_most(5):
            digests_in(piece * (50_000 // len(piece)))
