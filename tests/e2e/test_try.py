"""`make try`: the demo works, and the README shows its real output."""

import re
import subprocess
import sys
from pathlib import Path

from tests import page_examples

ROOT = Path(__file__).parents[2]
CTX = Path(sys.executable).with_name("ctx")


def excerpt(chapter: str) -> str:
    """The layers of a context: from its first heading to its closing rule."""
    lines = [line.removeprefix("  │").removeprefix(" ") for line in chapter.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("## "))
    return "\n".join(lines[first : lines.index("---")]).rstrip() + "\n"


def test_page_examples_of_the_readme() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "try", CTX],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(r"^━━ (.*)$", done.stdout, flags=re.MULTILINE)
    chapters = dict(zip(parts[1::2], parts[2::2], strict=True))
    _, first, second, third, last = chapters.values()
    assert "fails (1)" in first
    assert "passes" in first
    assert "test_refreshes_once" in first
    for context in (second, third):
        assert "Session.get" in context
    assert "never by callers" in second
    assert "bank/client.py" in third
    assert "ten tokens a minute" in " ".join(last.replace("│", " ").split())
    assert "Models:" not in last
    page_examples.check_excerpt(ROOT / "README.md", "make try, session 2", excerpt(second))
