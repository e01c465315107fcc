"""A project, and the events that an agent reports from it: those of `python -m bench hooks`."""

import json
import subprocess
from pathlib import Path
from typing import Any

from bench.hooks import COMMON, SAID

NAMES = ("PostToolUse", "UserPromptSubmit", "Stop", "SessionStart")
_SAID = {said["hook_event_name"]: said for said in SAID.values()}
_ANSWER = [{"type": "text", "text": SAID["stop"]["last_assistant_message"]}]
_TRANSCRIPT = (
    {"type": "user", "message": {"role": "user", "content": SAID["prompt-submit"]["prompt"]}},
    {"type": "assistant", "message": {"role": "assistant", "content": _ANSWER}},
)


def make_project(home: Path) -> str:
    folder = home / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    lines = "".join(f"{json.dumps(line)}\n" for line in _TRANSCRIPT)
    (home / "transcript.jsonl").write_text(lines)
    return str(folder)


def fields(folder: str, event: str, number: int) -> bytes:
    """An event as the agent sends it. The number is that of the tool use."""
    said: dict[str, Any] = {**COMMON, "cwd": folder, **_SAID[event]}
    said["transcript_path"] = str(Path(folder).with_name("transcript.jsonl"))
    if event == "PostToolUse":
        said["tool_use_id"] = f"toolu-{number}"
        said["tool_input"] = {**said["tool_input"], "command": f"make part-{number}"}
    return json.dumps(said).encode() + b"\n"


def number_of(text: str) -> int:
    """The number of a tool use, from its id or its command; -1 if the text has none."""
    digits = text.rpartition("-")[2]
    return int(digits) if digits.isdigit() else -1
