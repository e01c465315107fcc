"""Which rules a prompt is about to break.

A rule forbids something that the prompt asks for (`never commit yourself` and `commit this`), or
names a tool where the prompt names one of its rivals (`we use pnpm` and `npm install`).
"""

import re
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import terms
from ctx.context import hook_queries
from ctx.ids import NodeId
from ctx.memory import model

MOST = 2
"""The most rules that are repeated with a prompt."""

_MOST_RULES = 300
_LONGEST = 400
_TAGS = ("kind:rule", "kind:decision", "tier:pinned")
_FORBIDS = re.compile(
    r"\b(?:never|(?:do|must|should|may|can) ?not|don['’]?t|mustn['’]?t|shouldn['’]?t|can['’]?t|stop"
    r"|avoid|without|no|niemals|nie|nicht|keine?)\s+((?:[\w'’-]+\s*){1,5})",
    re.IGNORECASE,
)
_RIVALS = tuple(
    frozenset(group.split())
    for group in (
        "npm pnpm yarn bun",
        "pip uv poetry pipenv conda",
        "jest vitest mocha",
        "black ruff yapf",
        "flake8 pylint ruff",
        "tabs spaces",
        "merge rebase",
        "docker podman",
        "unittest pytest",
    )
)
_WORDS = re.compile(r"[\w'-]+")
# `Do not forget to …`, `do not need to …` forbid nothing.
_NOT_FORBIDDEN = frozenset(
    terms.query("forget need have be worry want ever just even only yet this that it them")
)


class Rule(NamedTuple):
    id: NodeId
    text: str


def rules(connections: Sequence[Connection], project: str | None) -> list[Rule]:
    """What the user forbids or prefers in general, the newest first."""
    rows: dict[str, Any] = {}
    for tag in _TAGS:
        for row in hook_queries.nodes_with_tag(connections, project, tag, _MOST_RULES):
            is_rule = tag != "kind:decision" or model.from_json(row[3]).get("lasting") is True
            if is_rule:
                rows.setdefault(row[0], row)
    return [Rule(NodeId(row[0]), row[2][:_LONGEST]) for row in rows.values()]


def about_to_break(prompt: str, known: Iterable[Rule]) -> list[Rule]:
    """The rules that a prompt asks to break."""
    first = prompt[:_LONGEST]
    asked = frozenset(terms.query(first)) - terms.STOP_WORDS
    words = frozenset(_WORDS.findall(first.lower()))
    broken = [rule for rule in known if _forbids(rule.text, asked) or _rivals(rule.text, words)]
    return broken[:MOST]


def _forbids(rule: str, asked: frozenset[str]) -> bool:
    for match in _FORBIDS.finditer(rule):
        forbidden = [term for term in terms.query(match[1]) if term not in terms.STOP_WORDS]
        if forbidden and forbidden[0] not in _NOT_FORBIDDEN and forbidden[0] in asked:
            return True
    return False


def _rivals(rule: str, words: frozenset[str]) -> bool:
    named = frozenset(_WORDS.findall(rule.lower()))
    return any(named & group and words & group and not words & group <= named for group in _RIVALS)
