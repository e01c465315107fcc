"""What is no node and speaks of a question: sections of the narrative, commits, files.

They are read as they are: the index of the code is not brought up to date for this, and where there
is none, there are no commits and no files in the answer.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Literal, NamedTuple

from ctx import clock, layout
from ctx.code import lookup
from ctx.code.history import questions as history
from ctx.code.lookup import Code
from ctx.errors import PathRefused
from ctx.layout import STORE_NAME
from ctx.narrative import index
from ctx.retrieval import files
from ctx.retrieval.pack import Signal
from ctx.search import entities
from ctx.search import question as questions
from ctx.search.question import Question
from ctx.workspace import Memory

Kind = Literal["narrative", "commits", "files"]
KINDS: tuple[Kind, ...] = ("narrative", "commits", "files")

_MOST = 5
"""Of each kind."""
_RELEVANT = 0.5
"""What is further away from the best of its kind than this is no answer."""


class Passage(NamedTuple):
    """Something that is no node and speaks of what was asked."""

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


def speaking_of(memory: Memory, words: str, kinds: Collection[Kind]) -> list[Passage]:
    """The passages of some kinds, by kind, the best first."""
    asked = questions.read(words)
    if not asked.weights:
        return []
    found: list[Passage] = []
    if "narrative" in kinds:
        found += _sections(memory, asked)
    if "commits" in kinds or "files" in kinds:
        with _code(memory) as code:
            if code is not None:
                for kind in kinds:
                    if kind in _OF_CODE:
                        found += _OF_CODE[kind](code, asked)
    return [each for each in found if each.score >= _RELEVANT]


def _sections(memory: Memory, asked: Question) -> list[Passage]:
    if memory.beside is None:
        return []
    project = memory.beside.project
    with closing(index.opened(project.narrative_index, project.narrative)) as connection:
        wanted = sorted(asked.weights, key=lambda term: -asked.weights[term])
        sections = index.search(connection, wanted, _MOST)
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


@contextmanager
def _code(memory: Memory) -> Iterator[Code | None]:
    """The index of the code here as it is; None where there is none."""
    code = None
    # Outside of any project there is no telling what lies around.
    if not memory.is_alone and memory.project is not None:
        try:
            place = layout.code_at(memory.folder, memory.surroundings.user_store)
            code = lookup.opened(place.database, place.root)
        except PathRefused:
            pass
    if code is None:
        yield None
        return
    with closing(code.connection):
        yield code


def _commits(code: Code, asked: Question) -> list[Passage]:
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


def _files(code: Code, asked: Question) -> list[Passage]:
    named = entities.find(asked.text).paths
    found = files.rank(code.connection, asked, named, _MOST)
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


_OF_CODE: Mapping[str, Callable[[Code, Question], list[Passage]]] = {
    "commits": _commits,
    "files": _files,
}
