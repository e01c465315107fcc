"""`ctx pause` and `ctx resume`"""

from pathlib import Path

import pytest

from ctx import clock
from ctx.capture import capture_pauses
from tests.conftest import Ctx, git

AT = 1_794_700_000_000
SINCE = "2026-11-14T23:46:40Z"


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: AT)


def test_everywhere(ctx: Ctx, folder: Path, surroundings: Path) -> None:
    for word in ("0h", "2020-01-01", "soon", "-2h"):
        refused = ctx("pause", f"--for={word}")
        assert refused.code == 2, word
        assert "\n  " in refused.err
    assert ctx("resume").out == "Capture was not paused.\n"
    home = str(surroundings / ".ctx")
    told = ctx("pause").out
    assert told.startswith("Paused everywhere: ctx does not record what agents do.\n")
    assert f"\n  everywhere  since {SINCE}  until `ctx resume`\nTo resume: `ctx resume`\n" in told
    assert capture_pauses.is_paused(home, str(folder), AT)
    again = ctx("pause")
    assert (again.code, again.out.startswith("Already paused everywhere")) == (0, True)
    assert ctx("resume").out == "Capture resumed everywhere.\n"
    assert not capture_pauses.is_paused(home, str(folder), AT)


def test_a_project_in_all_its_working_trees(ctx: Ctx, repo: Path, surroundings: Path) -> None:
    home = str(surroundings / ".ctx")
    git("commit", "-q", "--allow-empty", "-m", "first")
    other = repo.parent / "elsewhere"
    git("worktree", "add", "-q", str(other))
    (repo / "sub").mkdir()
    found = ctx(
        "pause", "--project", "--for", "2h", "-C", str(repo / "sub"), "--format", "json"
    ).json
    until = "2026-11-15T01:46:40Z"
    assert found == {
        "project": "app",
        "changed": True,
        "pauses": [
            {"folder": str(repo), "since": SINCE, "until": until},
            {"folder": str(other), "since": SINCE, "until": until},
        ],
    }
    assert capture_pauses.is_paused(home, str(other), AT)
    assert not capture_pauses.is_paused(home, str(other), AT + 2 * 3_600_000)
    assert not capture_pauses.is_paused(home, str(surroundings), AT)
    ctx("pause")
    still = ctx("resume", "--project", "-C", str(other)).out
    listed = f"Still paused:\n  everywhere  since {SINCE}  until `ctx resume`\n"
    assert still == f"Capture resumed in app.\n{listed}"
