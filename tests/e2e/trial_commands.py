"""The commands of random trials."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from ctx.cli.main import main


class Unsound(Exception):
    """A rule that must hold in every trial is violated."""


def ctx(folder: Path, *words: str) -> Any:
    """Run a command in this process and return its JSON."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["-C", str(folder), *words, "--format", "json"])
    if code:
        raise Unsound(f"ctx {' '.join(words)}: {out.getvalue()}{err.getvalue()}")
    return json.loads(out.getvalue()) if out.getvalue() else None
