"""Requests and answers as lines of JSON, with the CPU time and the wall time of each request."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def serve(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer each request until stdin ends. Whatever else is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        found = answer(json.loads(line))
        took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        answers.write(json.dumps({**took, "found": found}) + "\n")
        answers.flush()
