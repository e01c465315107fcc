"""Many sessions in one process use a model at once.

Usage: `python -m tests.e2e.model_sessions URL LEDGER CAP`.

Every session is a thread with a ledger and a backend of its own, as a worker or `ctx llm` has them.
What people would be told is counted and printed at the end; anything else ends in a traceback.
"""

import sys
from collections import Counter
from threading import Lock, Thread

from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm.anthropic_backend import Anthropic
from ctx.llm.backends import ask
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.openai_backend import OpenAi
from ctx.llm.prices import prices
from ctx.llm.protocol import Backend, Request
from ctx.llm.retry import RetryPolicy

SESSIONS = 25
_ASKED = 8
_PATIENCE = RetryPolicy(silence_s=1.0, retries=2, connect_s=10.0, pause_s=0.01)
_WORDS = "Was ist los? 何が起きた, “quoted” and \\escaped\n"


def main(url: str, path: str, cap: int) -> None:
    ended: Counter[str] = Counter()
    held = Lock()

    def session(number: int) -> None:
        made = OpenAi if number % 2 else Anthropic
        backend: Backend = made(url, "scripted-1", "", _PATIENCE)
        to = ModelTarget(backend.name, backend.where, backend.model)
        purpose = Purpose("synthesis", f"session-{number}")
        with Ledger(path) as ledger:
            meter = ledger.meter(purpose, to, Caps(cap, cap), prices([]))
            for turn in range(_ASKED):
                request = Request("Be brief.", (_WORDS * (20 + 3 * turn), f"{number}"), 40)
                try:
                    told: str = ask(backend, request, meter).stop
                except BudgetExceeded:
                    told = "capped"
                except ModelFailure:
                    told = "failed"
                with held:
                    ended[told] += 1
        backend.close()

    threads = [Thread(target=session, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(" ".join(f"{what}={count}" for what, count in sorted(ended.items())))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
