"""`ctx import --from codex` and `--from gemini`: past sessions of other hosts."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Ctx

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = {"codex": ".codex/sessions/2026/11/16", "gemini": ".gemini/tmp/project/chats"}


@pytest.mark.parametrize("host", FOLDERS)
def test_past_sessions_of_another_host_are_imported_once(
    host: str, ctx: Ctx, surroundings: Path
) -> None:
    folder = surroundings / FOLDERS[host]
    shutil.copytree(GOLDEN / host / "transcripts", folder)
    words = ("import", "--from", host, "--format", "json")
    would = json.loads(ctx(*words, "--dry-run").out)
    assert [each["what"] for each in would["sessions"]] == ["Please start"]
    done = json.loads(ctx(*words).out)
    assert (len(done["sessions"]), done["skipped"]) == (1, [])
    again = json.loads(ctx(*words).out)
    assert (again["sessions"], again["unchanged"]) == ([], 1)
    listed = json.loads(ctx("sessions", "list", "--all", "--format", "json").out)
    assert [each["host"] for each in listed["sessions"]] == [host]
    shown = ctx("sessions", "list", "--all").out
    assert shown.split()[:2] == [listed["sessions"][0]["id"][:12], host]
    replay = json.loads(
        ctx("sessions", "replay", done["sessions"][0]["session"], "--format", "json").out
    )
    failed = [step for step in replay["steps"] if step["kind"] == "command" and not step["ok"]]
    assert [(step["text"], step["exit_code"]) for step in failed] == [("echo oops >&2; exit 3", 3)]


def test_since_leaves_older_sessions_out(ctx: Ctx, surroundings: Path) -> None:
    shutil.copytree(GOLDEN / "codex" / "transcripts", surroundings / FOLDERS["codex"])
    done = json.loads(
        ctx("import", "--from", "codex", "--since", "2124-01-01", "--format", "json").out
    )
    assert (done["sessions"], done["left_out"]) == ([], 1)


def test_options_of_other_imports_are_refused(ctx: Ctx) -> None:
    refused = ctx("import", "--from", "codex", "--merge")
    assert (refused.code, "cannot be used with --from codex" in refused.err) == (2, True)
