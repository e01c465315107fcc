"""Which nodes and rules to add to a prompt without being asked.

Most prompts need nothing. An irrelevant node costs tokens and trust, so the bar is high: the node
mentions something that the prompt names (a file, a symbol, a test, an error), or shares most of the
prompt's uncommon words. A node that only repeats the prompt is left out, and so is the summary of a
session, which has a little of everything. A bug fix or a failure about the same thing comes first:
the agent may be about to repeat a mistake.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import terms
from ctx.context import hook_queries
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.model import Node
from ctx.packs.node_ranking import RankedNode
from ctx.search.entities import Entities

MOST = 4
"""The most nodes that are shown."""

_PLACES = ("file", "item", "package")
_FIXES = ("kind:bugfix", "kind:failure")
_COVERS = 0.45
"""The least coverage of a prompt that names nothing."""
_COVERS_NAMED = 0.12
"""The least coverage if the node mentions what the prompt names."""
_LEAST_WORDS = 2
"""How many of the prompt's topic words must be in the node."""
_LONGEST = 4_000
_SOURCE_WORDS = frozenset(terms.query("said by the user agent proposed agreed to"))
_LEAST_NEW_SHARE = 0.25
"""The least part of a node's words that are not in the prompt."""
_NEAR_BEST = 0.5
_SHORTEST_NAME = 4


class PromptNames(NamedTuple):
    """What a prompt names, in the forms in which a node may mention it."""

    paths: frozenset[str]
    names: frozenset[str]
    codes: frozenset[str]


def names_in(said: Entities) -> PromptNames:
    paths = [*said.paths, *(frame.path for frame in said.frames)]
    whole = {path.replace("\\", "/").strip("/") for path in paths}
    names = [*said.names, *(frame.name for frame in said.frames)]
    last = {part for name in names for part in (_last(name),) if len(part) >= _SHORTEST_NAME}
    return PromptNames(
        frozenset(path for path in whole if "." in path or "/" in path),
        frozenset(name for name in last if _is_distinctive(name)),
        frozenset(said.codes),
    )


def _last(name: str) -> str:
    return name.replace("::", ".").replace("#", ".").rpartition(".")[2].strip("()")


def _is_distinctive(name: str) -> bool:
    """Whether it looks like an identifier rather than a common word."""
    return (
        "_" in name.strip("_")
        or (not name.islower() and not name.istitle())
        or any(map(str.isdigit, name))
    )


class RelevantNode(NamedTuple):
    node: Node
    reason: str
    """Why it was chosen: the thing that the prompt names, or shared words."""


def choose(
    prompt: str, said: PromptNames, found: Sequence[RankedNode], not_again: Collection[str]
) -> list[RelevantNode]:
    """The few nodes that an agent should see, most urgent first."""
    asked = set(terms.query(prompt))
    about = set(filter(terms.can_be_subject, asked))
    if len(about) < _LEAST_WORDS and not (said.paths or said.names or said.codes):
        return []
    # A file is named for many reasons; the other words show what is wanted.
    wanted = about - set(terms.query(" ".join([*said.paths, *said.names, *said.codes])))
    elsewhere = said._replace(paths=frozenset())
    picked: list[tuple[bool, float, RelevantNode]] = []
    for each in found:
        node = each.node
        if node.type in _PLACES or node.id in not_again or _is_session_summary(node):
            continue
        own = set(terms.query(node.content[:_LONGEST]))
        spoken_of = name_shared_with(node, said)
        least = _COVERS_NAMED if spoken_of else _COVERS
        if each.coverage < least or not _is_news(own, asked):
            continue
        if not spoken_of and len(own & about) < _LEAST_WORDS:
            continue
        is_fix = bool(spoken_of) and any(tag in _FIXES for tag in node.tags)
        is_only_there = wanted and not own & wanted and not name_shared_with(node, elsewhere)
        if is_fix and is_only_there:
            continue
        reason = spoken_of or "the words of the prompt"
        picked.append((is_fix, each.score, RelevantNode(node, reason)))
    return [chosen for _, _, chosen in _near_best(picked)][:MOST]


def _near_best(
    picked: Sequence[tuple[bool, float, RelevantNode]],
) -> list[tuple[bool, float, RelevantNode]]:
    """The nodes with nearly the best score, fixes first."""
    best = max((score for _, score, _ in picked), default=0.0)
    kept = [each for each in picked if each[0] or each[1] >= _NEAR_BEST * best]
    return sorted(kept, key=lambda each: (each[0], each[1]), reverse=True)


def _is_session_summary(node: Node) -> bool:
    """Whether it is the summary of a session: it has words for many things, and tells little."""
    return node.type == "summary" and any(tag.startswith("session:") for tag in node.tags)


def name_shared_with(node: Node, said: PromptNames) -> str:
    """The first thing that both the prompt and the node name; empty if there is none."""
    content = node.content
    files = node.metadata.get("files")
    listed = [each for each in files if isinstance(each, str)] if isinstance(files, list) else []
    for path in sorted(said.paths):
        if path in content or any(_same_file(path, each) for each in listed):
            return path
    for name in sorted(said.codes | said.names):
        at = content.find(name)
        if at >= 0 and _is_whole_word(content, at, len(name)):
            return name
    return ""


def _same_file(path: str, other: str) -> bool:
    """Whether two paths may be the same file, also if one is longer at its start."""
    return path == other or other.endswith(f"/{path}") or path.endswith(f"/{other}")


def _is_whole_word(text: str, at: int, length: int) -> bool:
    before, after = text[at - 1 : at], text[at + length : at + length + 1]
    return not (before.isalnum() or before == "_" or after.isalnum() or after == "_")


def _is_news(own: set[str], asked: set[str]) -> bool:
    return len(own - asked - _SOURCE_WORDS) >= max(2, _LEAST_NEW_SHARE * len(own))


# Which rules a prompt is about to break.

MOST_RULES = 2
"""The most rules that are repeated with a prompt."""

_MOST_KNOWN_RULES = 300
_LONGEST_RULE = 400
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
    """A rule forbids something that a prompt may ask for (`never commit yourself` and `commit
    this`), or names a tool where a prompt names one of its rivals (`we use pnpm` and `npm
    install`)."""

    id: NodeId
    text: str


def rules(connections: Sequence[Connection], project: str | None) -> list[Rule]:
    """What the user forbids or prefers in general, the newest first."""
    rows: dict[str, Any] = {}
    for tag in _TAGS:
        for row in hook_queries.nodes_with_tag(connections, project, tag, _MOST_KNOWN_RULES):
            is_rule = tag != "kind:decision" or model.from_json(row[3]).get("lasting") is True
            if is_rule:
                rows.setdefault(row[0], row)
    return [Rule(NodeId(row[0]), row[2][:_LONGEST_RULE]) for row in rows.values()]


def about_to_break(prompt: str, known: Iterable[Rule]) -> list[Rule]:
    """The rules that a prompt asks to break."""
    first = prompt[:_LONGEST_RULE]
    asked = frozenset(terms.query(first)) - terms.STOP_WORDS
    words = frozenset(_WORDS.findall(first.lower()))
    broken = [rule for rule in known if _forbids(rule.text, asked) or _rivals(rule.text, words)]
    return broken[:MOST_RULES]


def _forbids(rule: str, asked: frozenset[str]) -> bool:
    for match in _FORBIDS.finditer(rule):
        forbidden = [term for term in terms.query(match[1]) if term not in terms.STOP_WORDS]
        if forbidden and forbidden[0] not in _NOT_FORBIDDEN and forbidden[0] in asked:
            return True
    return False


def _rivals(rule: str, words: frozenset[str]) -> bool:
    named = frozenset(_WORDS.findall(rule.lower()))
    return any(named & group and words & group and not words & group <= named for group in _RIVALS)
