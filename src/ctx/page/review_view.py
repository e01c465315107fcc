"""Review: what waits for a decision of the user."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ctx.errors import CtxError, UsageError
from ctx.memory.conflicts import LIFE
from ctx.operations import agent_proposals, learnings, review, visibility
from ctx.operations.review import PAGE
from ctx.operations.review_queue import FieldVersion, OpenField
from ctx.page.requests import Answer, GoTo, HtmlPage, PageRequest, PageRoute, last_change
from ctx.page.text_differences import DiffPart, compare
from ctx.workspace import Memory

_LONGEST_COMPARED = 4_000
_MOST_SELECTED = 200


class WrittenText(NamedTuple):
    """A text that was refused: what the user typed is not lost."""

    node: str = ""
    field: str = ""
    value: str = ""
    error: str = ""


def open_decisions(request: PageRequest) -> Answer:
    return _page(request, WrittenText())


def _page(request: PageRequest, written: WrittenText) -> HtmlPage:
    after = {name: request.number(name, 0) for name in ("learnings_after", "imports_after")}
    with request.reading() as memory:
        queue = review.review(memory, **after)
    values = {
        "queue": queue,
        "after": after,
        "size": PAGE,
        "written": written,
        "value_text": _value_text,
        "is_life": lambda field: field.field == LIFE,
        "differences": _differences,
    }
    title = f"Review ({queue.total:,})" if queue.total else "Review"
    return HtmlPage("review.html", title, values, 409 if written.error else 200)


def _value_text(field: OpenField, version: FieldVersion) -> str:
    if field.field == LIFE:
        return "The node stays." if version.value else "The node is deleted."
    if version.value is None:
        return ""
    return version.value if isinstance(version.value, str) else json.dumps(version.value)


def _differences(field: OpenField, version: FieldVersion) -> list[DiffPart]:
    """The text of a version, with what differs from the one in effect."""
    current, text = _value_text(field, field.versions[0]), _value_text(field, version)
    if version.number == 1 or max(len(current), len(text)) > _LONGEST_COMPARED:
        return [DiffPart("same", text)]
    return [part for part in compare(current, text) if part.text]


# Changes


def decide(request: PageRequest) -> Answer:
    """One of the buttons, such as `accept-proposal 01J…`."""
    what, _, name = request.field("do").partition(" ")
    if what not in _DECISIONS:
        raise UsageError(f"There is no action {what[:40]!r}.")
    with request.writing() as memory:
        message = _DECISIONS[what](memory, name)
        return GoTo("/review", message, last_change(memory))


def decide_all(request: PageRequest) -> Answer:
    """All proposals of agents. Each decision can be undone by itself."""
    accepting = _is_accepting(request.field("do"))
    with request.writing() as memory:
        for each in agent_proposals.proposals(memory):
            review.decide(memory, [each.id], accepting=accepting)
            if request.browser:
                verb = "Accepted" if accepting else "Rejected"
                request.browser.tell(f"{verb}: {each.title[:80]}", last_change(memory))
    return GoTo("/review")


def decide_imports(request: PageRequest) -> Answer:
    """The selected imports, as one change."""
    accepting = _is_accepting(request.field("do"))
    names = list(request.form.get("ids", ()))[:_MOST_SELECTED]
    if not names:
        return GoTo("/review", "Nothing is selected.")
    with request.writing() as memory:
        ids = [memory.graph.find(name) for name in names]
        (visibility.accept if accepting else visibility.hide)(memory, ids)
        verb = "Accepted" if accepting else "Rejected"
        count = "1 import" if len(ids) == 1 else f"{len(ids):,} imports"
        return GoTo("/review", f"{verb} {count}.", last_change(memory))


def write_version(request: PageRequest) -> Answer:
    """Another text than those of both sides."""
    name, field, value = (request.field(each) for each in ("node", "field", "value"))
    with request.writing() as memory:
        try:
            review.replace(memory, review.find(memory, name), field, value.strip())
        except CtxError as error:
            refused = WrittenText(name, field, value, error.message)
        else:
            return GoTo("/review", "Settled with your text.", last_change(memory))
    return _page(request, refused)


def _is_accepting(what: str) -> bool:
    if what not in ("accept", "reject"):
        raise UsageError(f"There is no action {what[:40]!r}.")
    return what == "accept"


def _decide_proposal(memory: Memory, name: str, *, accepting: bool) -> str:
    review.decide(memory, [name], accepting=accepting)
    return "Accepted what the agent proposed." if accepting else "Rejected the proposal."


def _decide_branch(memory: Memory, name: str, *, accepting: bool) -> str:
    review.decide(memory, [name], accepting=accepting)
    return "Agents are given it from now on." if accepting else "Rejected. Agents do not get it."


def _pick(memory: Memory, choice: str) -> str:
    """`2 01J… metadata who`: the version, the node and the field."""
    number, _, rest = choice.partition(" ")
    name, _, field = rest.partition(" ")
    if not (number.isascii() and number.isdecimal() and len(number) < 6):
        raise UsageError(f"There is no version {number[:20]!r}.")
    review.pick(memory, review.find(memory, name), field, int(number))
    return f"Settled with version {int(number)}."


def _confirm(memory: Memory, name: str) -> str:
    learnings.confirm(memory, memory.graph.find(name))
    return "Confirmed."


def _reject_learning(memory: Memory, name: str) -> str:
    learnings.reject(memory, memory.graph.find(name))
    return "Rejected. It will not be learned again."


def _accept_import(memory: Memory, name: str) -> str:
    visibility.accept(memory, [memory.graph.find(name)])
    return "Accepted: it counts as said by you."


def _reject_import(memory: Memory, name: str) -> str:
    visibility.hide(memory, [memory.graph.find(name)])
    return "Rejected: agents do not get it."


_DECISIONS: Mapping[str, Callable[[Memory, str], str]] = {
    "accept-proposal": lambda memory, name: _decide_proposal(memory, name, accepting=True),
    "reject-proposal": lambda memory, name: _decide_proposal(memory, name, accepting=False),
    "accept-branch": lambda memory, name: _decide_branch(memory, name, accepting=True),
    "reject-branch": lambda memory, name: _decide_branch(memory, name, accepting=False),
    "pick": _pick,
    "confirm-learning": _confirm,
    "reject-learning": _reject_learning,
    "accept-import": _accept_import,
    "reject-import": _reject_import,
}

ROUTES = [
    PageRoute("GET", "/review", open_decisions),
    PageRoute("POST", "/review", decide),
    PageRoute("POST", "/review/proposals", decide_all),
    PageRoute("POST", "/review/imports", decide_imports),
    PageRoute("POST", "/review/version", write_version),
]
