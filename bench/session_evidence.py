"""Runs the measuring kit's `gold.py`, and also stores where each text comes from.

    python -m bench.session_evidence KIT ARGUMENTS

The kit stores the texts of nodes and of context items. For ablations, this adds the kind of each
node (`kinds`) and the heading above each item of a context (`sections`), in the same order.
"""

import copy
import importlib
import sys
from typing import Any


def _recording(gold: Any) -> type:
    """The kit's class for the figures of one project, which stores more."""
    product = importlib.import_module("product")

    class Recording(gold.Scored):  # type: ignore[misc]
        def _of_session(self, walk: Any, session: Any, *rest: Any) -> dict[str, Any]:
            nodes = walk.nodes()
            once = copy.copy(walk)
            once.nodes = lambda: nodes
            found: dict[str, Any] = super()._of_session(once, session, *rest)
            of_session = [n for n in nodes if session["sid"] in product.node_sessions(n)]
            return {**found, "kinds": [product.node_kind(node) for node in of_session]}

        def _of_start(self, walk: Any, *rest: Any) -> dict[str, Any]:
            context = walk.context()
            once = copy.copy(walk)
            once.context = lambda: context
            found: dict[str, Any] = super()._of_start(once, *rest)
            sections = [section for section, _ in product.context_items(context)]
            return {**found, "sections": sections}

    return Recording


def main() -> Any:
    kit = sys.argv.pop(1)
    sys.path.insert(0, kit)
    gold = importlib.import_module("gold")
    vars(gold)["Scored"] = _recording(gold)
    return gold.main()


if __name__ == "__main__":
    raise SystemExit(main())
