"""Relate things by what they are called: files, items of code, tasks, decisions, nodes.

What a word means is looked for in this order, and the first that is there counts:

1. a task or a decision by its number (`task_0042`, `decision_0007`, `0007`), or a document of the
   narrative by its path (`narrative/README.md`);
2. a file, from the current folder, else from the project's root;
3. a node, by its id or the beginning of it;
4. a file that memory knows already, although it is not here;
5. an item of the code by any end of its qualified name (`Client::connect`), or by where it is
   (`src/net/client.rs:42`): it is known by the whole of its name from then on;
6. an item that memory knows already, although the code has none, or several, of that name;
7. a qualified name that nobody knows yet (`core::net::Client`, `pkg.module.Class`), as it is said.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, overload

from ctx import checkouts, git
from ctx.codebase.code_names import CodeNames, UnknownName
from ctx.errors import AmbiguousId, GitFailure, NodeNotFound, PathRefused, UsageError
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.graph import USER
from ctx.memory.model import Edge, Evidence, Redaction
from ctx.operations import link
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.workspace import Memory

_NUMBERED = re.compile(r"(?:task|decision)_\d+(?:-.*)?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d{4,9}", re.ASCII)
_SPAN = re.compile(r"(\d{1,9})(?:[:-](\d{1,9}))?", re.ASCII)
_NARRATIVE = (".ctx/narrative/", "narrative/")
_MOST_FILES = 20_000
# `Client::connect`, `src/net/client.rs`, `connect()`, and in quotes of code also a mere `Client`.
_MENTION = re.compile(
    r"(?<![\w/.:#-])[A-Za-z_]\w*(?:(?:(?:::|[.#/])[\w-]+)+|(?=\(\)))|(?<=`)[A-Z]\w*(?=`)"
)
_MOST_MENTIONS = 50
_TRIED = """Looked for:
  a task or a decision, such as task_0042
  a file, from this folder and from {root}
  a node, by the beginning of its id
  something in the code, such as core::net::Client"""


class Relation(NamedTuple):
    """What is to be related."""

    from_: str
    label: str
    """The type of the edge, in any spelling."""
    to: str
    confidence: str = "high"
    evidence: str = ""
    """Why it is so."""
    span: str = ""
    """The lines that show it: `10:20`, or `10`."""


class RelateResult(NamedTuple):
    """The answer of `ctx relate`."""

    edge: Edge
    from_short: str
    from_name: str
    to_short: str
    to_name: str
    new: bool
    made: tuple[NodeId, ...]
    """The anchors that were not there before."""
    redacted: tuple[Redaction, ...]
    unknown: tuple[UnknownName, ...] = ()
    """Names that are not in the code index: they are stored as written."""


def relate(memory: Memory, options: Relation) -> RelateResult:
    """Add an edge between two things. What stands for a file or an item is made if needed."""
    kind = model.edge_type(options.label)
    unknown: list[UnknownName] = []
    with CodeNames(memory) as names:
        words = (options.from_, options.to)
        ends = [_own_anchor(memory, _resolve_word(memory, word, names, unknown)) for word in words]
    from_id, to_id = (end.id if isinstance(end, Anchor) else end for end in ends)
    if from_id == to_id:
        raise UsageError(f"{options.from_[:80]!r} and {options.to[:80]!r} are the same.")
    said = Evidence(
        memory.author,
        link.CONFIDENCE[options.confidence],
        options.evidence,
        span=_span(options.span, ends),
    )
    link.require_reason(said)
    scope, outside = _place(memory, *ends)
    if outside:
        link.refuse_way_out(scope, kind, from_id, to_id)
    with memory.transaction("relate", scope) as change:
        # The anchor of a file may be in the other store: then the edge leads there.
        here = [end for end in ends if isinstance(end, Anchor) and not (outside and end is ends[1])]
        made = tuple(end.id for end in here if anchors.put(change, end))
        new = link.draw(change, from_id, to_id, kind, said, outside=outside)
    graph = memory.graph
    edge = graph.edge(from_id, to_id, kind)
    assert edge is not None
    shown = graph.shown([from_id, to_id])
    first, second = (graph.node(each).content.partition("\n")[0] for each in (from_id, to_id))
    return RelateResult(
        edge,
        shown[from_id],
        first,
        shown[to_id],
        second,
        new,
        made,
        tuple(change.redacted),
        tuple(unknown),
    )


class MentionedNames(NamedTuple):
    mentions: tuple[str, ...]
    """What a document says: files by their path from the root, items by the whole of their name."""
    unknown: tuple[UnknownName, ...]
    unclear: tuple[UnknownName, ...]
    """Ambiguous names. They are stored as written, like unknown ones."""


def resolve_mentions(memory: Memory, words: Sequence[str], text: str) -> MentionedNames:
    """What the mentions of a document refer to, and what its text mentions.

    No mention is refused. In the text, only clear mentions count.
    """
    found: list[str] = []
    unknown: list[UnknownName] = []
    unclear: list[UnknownName] = []
    with CodeNames(memory) as names:
        for word in words:
            said = word
            try:
                end = _resolve_word(memory, word, names, unknown)
                if isinstance(end, Anchor):
                    said = anchors.word_for(end)
                elif memory.project_memory and memory.project_memory.graph.has(end):
                    said = end
            except AmbiguousId:
                unclear.append(names.unclear(word))
            except NodeNotFound:
                if (missing := names.unknown(word)) is not None:
                    unknown.append(missing)
            except PathRefused:
                # A folder, or something outside of the project, can be spoken of.
                pass
            found.append(said)
        found += (anchors.word_for(each) for each in _mentioned_anchors(memory, text, names))
    return MentionedNames(tuple(dict.fromkeys(found)), tuple(unknown), tuple(unclear))


def _mentioned_anchors(memory: Memory, text: str, names: CodeNames) -> Iterator[Anchor]:
    """The files and items of the code that a text mentions."""
    root = _root(memory)
    spoken = dict.fromkeys(found[0] for found in _MENTION.finditer(text))
    for word in list(spoken)[:_MOST_MENTIONS]:
        with suppress(AmbiguousId, PathRefused):
            if anchor := _file(memory, word, root) or names.anchor(word):
                yield anchor


def _place(memory: Memory, from_: NodeId | Anchor, to: NodeId | Anchor) -> tuple[str, bool]:
    """The store for the edge, and whether it leads to the other store.

    Anchors of the code may be in both stores, and are created in the project's if possible.
    """
    graph = memory.graph
    scope = memory.home if isinstance(from_, Anchor) else graph.holding(from_).scope
    if isinstance(to, Anchor):
        is_there = memory.user.has(to.id)
        return scope, scope == USER and not is_there and graph.has(to.id)
    return scope, graph.holding(to).scope != scope


def _resolve_word(
    memory: Memory, word: str, names: CodeNames, unknown: list[UnknownName]
) -> NodeId | Anchor:
    """What a word refers to; see above for the order."""
    text = word.strip()
    if not text:
        raise UsageError("The name is empty.", hint="Name a file, a node or an item.")
    root = _root(memory)
    found = _document(memory, text, root) or _file(memory, text, root) or _node(memory, text)
    found = found or _known_file(memory, text)
    if found:
        return found
    known = _known_anchor(memory, [anchors.item(text)])
    try:
        if found := names.anchor(text) or known:
            return found
    except AmbiguousId:
        if known:
            return known
        raise
    if _is_qualified(text) and not _is_missing_file(memory, text, root):
        if (missing := names.unknown(text)) is not None:
            unknown.append(missing)
        return anchors.item(text)
    raise NodeNotFound(
        f"{text[:80]!r} is not known here.",
        detail=_TRIED.format(root=root),
        hint=_similar_paths(memory, text, root),
    )


def _root(memory: Memory) -> str:
    """What paths in anchors are relative to."""
    return memory.project_memory.project.root if memory.project_memory else memory.place.folder


def _document(memory: Memory, text: str, root: str) -> NodeId | Anchor | None:
    if _NUMBERED.fullmatch(text.removesuffix(".md")):
        return memory.graph.find(text)
    if memory.project_memory is None:
        return None
    if _NUMBER.fullmatch(text) and not os.path.lexists(os.path.join(memory.folder, text)):
        try:
            return memory.graph.find(f"decision_{text}")
        except NodeNotFound:
            return None
    inside = _project_path(root, os.path.join(memory.folder, text))
    for path in (text.removeprefix("./"), inside or ""):
        for beginning in _NARRATIVE:
            if path.startswith(beginning):
                try:
                    return memory.graph.find(f"narrative/{path.removeprefix(beginning)}")
                except NodeNotFound:
                    continue
    narrated = f".ctx/{text.removeprefix('./')}"
    if text.startswith("narrative/") and os.path.isfile(os.path.join(root, narrated)):
        return anchors.file(os.path.normpath(narrated))
    return None


def _file(memory: Memory, text: str, root: str) -> Anchor | None:
    is_path = "/" in text
    for base in (memory.folder, root):
        full = os.path.join(base, text.rstrip("/") if is_path else text)
        inside = _project_path(root, full)
        if inside is None:
            if is_path and os.path.lexists(full):
                raise PathRefused(
                    f"{text[:80]!r} is outside the project {root}.",
                    hint="Only files of the project can be related.",
                )
        elif os.path.isdir(full):
            if is_path:
                raise PathRefused(f"{text[:80]!r} is a folder.", hint="Name a file in it.")
        elif os.path.lexists(full):
            return anchors.file(inside)
    return None


def _project_path(root: str, full: str) -> str | None:
    """A path from the project's root. Links on the way are followed, the last name is not."""
    full = os.path.abspath(full)
    real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    inside = os.path.relpath(real, os.path.realpath(root))
    return None if inside in (".", "..") or inside.startswith("../") else inside


def _node(memory: Memory, text: str) -> NodeId | None:
    if not (text.isascii() and text.isalnum()):
        return None
    try:
        return memory.graph.find(text)
    except AmbiguousId:
        raise
    except NodeNotFound as error:
        # That it was deleted says more than that there is nothing.
        if error.hint and "ctx restore" in error.hint:
            raise
        return None


def _known_file(memory: Memory, text: str) -> Anchor | None:
    inside = _project_path(_root(memory), os.path.join(memory.folder, text))
    paths = (os.path.normpath(text), inside)
    return _known_anchor(memory, [anchors.file(path) for path in paths if path])


def _known_anchor(memory: Memory, candidates: Sequence[Anchor]) -> Anchor | None:
    """The first match in memory, of this project or without a project."""
    has = memory.graph.has
    return next((it for it in candidates if has(_own_anchor(memory, it).id) or has(it.id)), None)


@overload
def _own_anchor(memory: Memory, end: Anchor) -> Anchor: ...
@overload
def _own_anchor(memory: Memory, end: NodeId | Anchor) -> NodeId | Anchor: ...
def _own_anchor(memory: Memory, end: NodeId | Anchor) -> NodeId | Anchor:
    """An anchor as one of this project: in the user store those of others may have its name."""
    return end._replace(tag=memory.project_tag or "") if isinstance(end, Anchor) else end


def _is_qualified(text: str) -> bool:
    """Whether a word names an item and its container. A bare word may be a typing error."""
    return anchors.looks_qualified(text) and not text.isidentifier() and "/" not in text


def _is_missing_file(memory: Memory, text: str, root: str) -> bool:
    """Whether a word such as `net.rs` is the name of a file that is not here, not of an item."""
    _, dot, ending = text.rpartition(".")
    if not dot or "::" in text or "#" in text:
        return False
    return any(path.endswith(f".{ending}") for path in _files(memory, root))


def _similar_paths(memory: Memory, text: str, root: str) -> str:
    import difflib

    every = list(_files(memory, root))
    found = difflib.get_close_matches(text.removeprefix("./"), every, n=3)
    if not found:
        names = {os.path.basename(path): path for path in every}
        near = difflib.get_close_matches(os.path.basename(text), list(names), n=3)
        found = [names[name] for name in near]
    if found:
        return f"Did you mean {' or '.join(f'`{path}`' for path in found)}?"
    return "`ctx list` and `ctx search WORDS` show ids; an item is named with its module."


def _files(memory: Memory, root: str) -> Iterator[str]:
    """Files of the project from its root: from git, else from the folder, up to a limit."""
    checkout = (
        memory.project_memory.project.checkout
        if memory.project_memory
        else checkouts.find_checkout(root)
    )
    if checkout is not None:
        try:
            for path in git.belonging_files(checkout, root):
                yield os.path.relpath(os.path.join(checkout.top, path), root)
            return
        except GitFailure:
            pass
    left = _MOST_FILES
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names)[:left]:
            yield os.path.relpath(os.path.join(here, name), root)
        left -= len(names)
        if left <= 0:
            return


def _span(text: str, ends: list[NodeId | Anchor]) -> str:
    """Lines as evidence has them: `src/net.rs:10-20`, with the file that is related, if one is."""
    if not text:
        return ""
    found = _SPAN.fullmatch(text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 0 < first <= last:
        raise UsageError(
            f"{text[:40]!r} is not a span of lines.", hint="Write START:END, such as 10:20."
        )
    related = [end.name for end in reversed(ends) if isinstance(end, Anchor) and end.type == "file"]
    lines = f"{first}-{last}" if last > first else f"{first}"
    return f"{related[0]}:{lines}" if related else lines
