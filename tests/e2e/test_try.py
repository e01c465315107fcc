"""`make try`: what a newcomer sees first works, and says what it is for."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]
CTX = Path(sys.executable).with_name("ctx")


def test_three_sessions_in_a_minute() -> None:
    done = subprocess.run(
        [sys.executable, HERE / "scripts" / "try", CTX],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    chapters = re.split(r"^━━ (.*)$", done.stdout, flags=re.MULTILINE)
    told = dict(zip(chapters[1::2], chapters[2::2], strict=True))
    _, first, second, third, last = told.values()
    assert "fails (1)" in first
    assert "passes" in first
    assert "test_refreshes_once" in first
    for given in (second, third):
        assert "Session.get" in given
    assert "never by callers" in second
    assert "bank/client.py" in third
    assert "ten tokens a minute" in last
    assert "Models:" not in last
