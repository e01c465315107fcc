"""Search results that are not nodes: sections of the narrative, commits, files.

The code index is used as far as it is quickly available, as for a pack; the answer says how old it
is.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from ctx import clock
from ctx.code.history import commit_queries as history
from ctx.code.lookup import Code
from ctx.codebase import freshness
from ctx.codebase.freshness import AvailableCode
from ctx.codebase.index_state import IndexState
from ctx.layout import STORE_NAME
from ctx.narrative import narrative_index
from ctx.packs import file_ranking
from ctx.packs.prompt_pack import Signal
from ctx.search import entities
from ctx.search import question as questions
from ctx.search.question import SearchQuestion
from ctx.workspace import Memory

Kind = Literal["narrative", "commits", "files"]
KINDS: tuple[Kind, ...] = ("narrative", "commits", "files")

_MOST = 5
"""Of each kind."""
_RELEVANT = 0.5
"""What is further away from the best of its kind than this is no answer."""


class Passage(NamedTuple):
    """A search result that is not a node."""

    kind: Literal["narrative", "commit", "file"]
    title: str
    """Of a section its document and heading, of a commit its subject, of a file its path."""
    text: str
    path: str | None
    """From the project's root; None for a commit."""
    first_line: int | None
    last_line: int | None
    id: str
    """The path, or the hash of the commit."""
    at: str | None
    """When a commit was made."""
    score: float
    """The best of its kind has 1."""
    signals: tuple[Signal, ...]


class FoundPassages(NamedTuple):
    passages: tuple[Passage, ...]
    """By kind, the best first."""
    code_index: IndexState | None
    """Of the code that was looked at; None where none was."""


def find_passages(memory: Memory, words: str, kinds: Collection[Kind]) -> FoundPassages:
    """The passages of some kinds."""
    asked = questions.read(words)
    if not asked.weights:
        return FoundPassages((), None)
    found: list[Passage] = []
    if "narrative" in kinds:
        found += _sections(memory, asked)
    of_code = [_OF_CODE[kind] for kind in kinds if kind in _OF_CODE]
    state: IndexState | None = None
    if of_code and (codebase := freshness.codebase_here(memory)):

        def look(at_hand: AvailableCode) -> tuple[list[Passage], IndexState]:
            there: list[Passage] = []
            if at_hand.code is not None:
                for find in of_code:
                    there += _existing_passages(at_hand.root, find(at_hand.code, asked))[:_MOST]
            return there, at_hand.state

        of_it, state = freshness.with_code(codebase, words, look)
        found += of_it
    return FoundPassages(tuple(each for each in found if each.score >= _RELEVANT), state)


def _sections(memory: Memory, asked: SearchQuestion) -> list[Passage]:
    if memory.project_memory is None:
        return []
    project = memory.project_memory.project
    wanted = sorted(asked.weights, key=lambda term: -asked.weights[term])
    narrative = memory.project_memory.narrative
    sections = narrative_index.search(project.narrative_index, narrative, wanted, _MOST)
    return [
        Passage(
            "narrative",
            section.title,
            section.text,
            f"{STORE_NAME}/narrative/{section.path}",
            section.first_line,
            section.last_line,
            f"{STORE_NAME}/narrative/{section.path}",
            None,
            section.score,
            (Signal("text", section.score),),
        )
        for section in sections
    ]


def _existing_passages(root: str, found: Sequence[Passage]) -> list[Passage]:
    """Without files that were removed since the index was made."""
    return [
        each
        for each in found
        if each.path is None or os.path.lexists(os.path.join(root, each.path))
    ]


def _commits(code: Code, asked: SearchQuestion) -> list[Passage]:
    found = history.search(code.connection, asked.cleaned, _MOST)
    best = max((each.score for each in found), default=0.0) or 1.0
    return [
        Passage(
            "commit",
            commit.subject,
            commit.body,
            None,
            None,
            None,
            commit.hash,
            clock.iso(1000 * commit.time),
            score / best,
            (Signal("text", score / best),),
        )
        for commit, score in found
    ]


def _files(code: Code, asked: SearchQuestion) -> list[Passage]:
    named = dict.fromkeys(entities.find(asked.text).paths, 1.0)
    found = file_ranking.rank(code.connection, asked, named, limit=2 * _MOST)
    best = max((each.score for each in found), default=0.0) or 1.0
    return [
        Passage(
            "file",
            each.path,
            "",
            each.path,
            None,
            None,
            each.path,
            None,
            each.score / best,
            each.signals,
        )
        for each in found
    ]


_OF_CODE: Mapping[str, Callable[[Code, SearchQuestion], list[Passage]]] = {
    "commits": _commits,
    "files": _files,
}
