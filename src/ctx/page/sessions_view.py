"""Sessions: a timeline of all, and one as a story with the evidence for each line."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from ctx import clock, markdown
from ctx.errors import UsageError
from ctx.operations import judge, session_story, session_timeline, sessions, undo, why
from ctx.operations.session_story import SessionStory, StoryFailure, StoryOptions
from ctx.operations.session_timeline import SessionEntry
from ctx.operations.session_turns import StoryTurn
from ctx.operations.verdicts import TAGS
from ctx.operations.why import chunk_kind, counts_text
from ctx.page import html_text
from ctx.page.rendering import first_line, local_time
from ctx.page.requests import Answer, Download, GoTo, HtmlPage, PageRequest, PageRoute

_LONGEST = 12_000
_LONGEST_PROMPT = 600
_MOST_FILES = 40


_DAY_MINUTES = 24 * 60
_NARROWEST = 8
"""Minutes: a shorter session is drawn this wide."""
_LONGEST_SHOWN = 1_500
"""Characters of a text on the page, unless its step is opened by its address."""


_FORMS: Mapping[str, Callable[[str], Markup]] = {
    "code": lambda text: escape(markdown.visible(text)),
    "line": html_text.inline_markdown,
    "text": html_text.markdown_html,
}


class Bar(NamedTuple):
    """A session in the picture of a day, in minutes."""

    id: str
    start: int
    length: int
    label: str


class Lane(NamedTuple):
    """The sessions of one host on a day."""

    host: str
    bars: tuple[Bar, ...]


class Day(NamedTuple):
    day: str
    sessions: tuple[SessionEntry, ...]
    lanes: tuple[Lane, ...]


def timeline(request: PageRequest) -> Answer:
    wants_all = request.text("all") == "1"
    with request.reading() as memory:
        project = None if wants_all else memory.project
        options = session_timeline.Options(
            project,
            request.text("host"),
            request.text("q"),
            request.text("until"),
            request.text("before"),
            request.text("after"),
            since=request.text("since"),
            zone=request.zone,
        )
        page = session_timeline.list_page(memory, options)
        own_project = memory.project
    kept = {"q": options.text, "host": options.host}
    kept |= {"since": options.since, "until": options.until}
    is_filtered = any(kept.values())
    kept |= {"all": "1"} if wants_all else {}
    values = {
        "page": page,
        "days": _days(page.sessions, request.zone),
        "options": options,
        "wants_all": wants_all,
        "own_project": own_project,
        "is_filtered": is_filtered,
        "newer": _address(kept, after=page.newer) if page.newer else "",
        "older": _address(kept, before=page.older) if page.older else "",
        "duration": _duration,
        "kinds": _kinds_line,
    }
    return HtmlPage("sessions.html", "Sessions", values)


def _address(kept: dict[str, str], **position: str) -> str:
    wanted = {name: value for name, value in (kept | position).items() if value}
    return f"/sessions?{urlencode(wanted)}"


def _days(listed: Sequence[SessionEntry], zone: tzinfo) -> list[Day]:
    """The sessions by the day on which they were last active."""
    days = []
    for day, entries in groupby(listed, key=lambda each: str(local_time(each.last_at, zone))[:10]):
        of_day = tuple(entries)
        hosts = dict.fromkeys(each.host for each in of_day)
        lanes = tuple(
            Lane(host, tuple(_bar(each, zone) for each in of_day if each.host == host))
            for host in hosts
        )
        days.append(Day(day, of_day, lanes))
    return days


def _bar(entry: SessionEntry, zone: tzinfo) -> Bar:
    begins, ends = local_time(entry.started_at, zone), local_time(entry.last_at, zone)
    if begins is None or ends is None:
        return Bar(entry.id, 0, 0, entry.title)
    end = ends.hour * 60 + ends.minute
    start = begins.hour * 60 + begins.minute if begins.date() == ends.date() else 0
    start = min(start, _DAY_MINUTES - _NARROWEST)
    label = f"{begins:%H:%M}–{ends:%H:%M} {entry.title or entry.id}"
    return Bar(entry.id, start, max(_NARROWEST, end - start), label)


def _duration(started_at: str, last_at: str) -> str:
    """How long it took: `42 min`, `3 h 5 min`, `2 d`."""
    start, end = clock.parse_iso(started_at), clock.parse_iso(last_at)
    if start is None or end is None:
        return ""
    minutes = max(0, end - start) // 60_000
    if minutes < 60:
        return f"{minutes} min" if minutes else "under a minute"
    if minutes < 2 * _DAY_MINUTES:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // _DAY_MINUTES} d"


def _kinds_line(kinds: Mapping[str, int]) -> str:
    """`2 decisions, 1 discovery`."""
    return ", ".join(f"{number:,} {_plural(kind, number)}" for kind, number in kinds.items())


def _plural(kind: str, number: int) -> str:
    if number == 1:
        return kind
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("x") else f"{kind}s"


# One session


def one(request: PageRequest) -> Answer:
    options = StoryOptions(
        request.number("page", 0),
        request.text("step"),
        request.text("q"),
        request.text("receipt"),
    )
    with request.reading() as memory:
        story = session_story.story(memory, request.path["session"], options)
    session = story.details.session
    name = story.details.title or session.request or f"Session {session.id}"
    values = {
        "view": "sessions",
        "story": story,
        "session": session,
        "name": name,
        "duration": _duration(session.started_at, session.last_at),
        "opened": options.step,
        "longest": _LONGEST_SHOWN,
        "counts_text": counts_text,
        "chunk_kind": chunk_kind,
        "copied": as_markdown(story),
        "mark": lambda text, form="code": _marked(text, story.text, form),
        "around": lambda text: _around(text, story.text),
    }
    return HtmlPage("session.html", name, values)


def _marked(text: str, wanted: str, form: str = "code") -> Markup:
    """A text in which each hit of the search is marked."""
    if wanted:
        hit = re.compile(f"({re.escape(wanted)})", re.IGNORECASE)
        text = hit.sub(r"\1".join(html_text.MARKS), text)
    return html_text.marked(text, _FORMS[form])


def _around(text: str, wanted: str) -> str:
    """The part of a long text that has the first hit."""
    at = max(0, text.lower().find(wanted.lower()))
    if len(text) <= _LONGEST_SHOWN:
        return text
    start = max(0, at - _LONGEST_SHOWN // 3)
    return ("…" if start else "") + text[start : start + _LONGEST_SHOWN] + "…"


def download(request: PageRequest) -> Answer:
    """The page of the story as a markdown file, for a browser without scripts."""
    options = StoryOptions(request.number("page", 0))
    with request.reading() as memory:
        story = session_story.story(memory, request.path["session"], options)
    name = f"session-{story.details.session.id[:12]}.md"
    return Download(name, "text/markdown; charset=utf-8", as_markdown(story).encode())


def confirm_deletion(request: PageRequest) -> Answer:
    with request.reading() as memory:
        planned = sessions.delete(memory, request.path["session"], dry_run=True)
    values = {"view": "sessions", "planned": planned}
    return HtmlPage("session_delete.html", "Delete a session", values)


def delete(request: PageRequest) -> Answer:
    with request.writing() as memory:
        done = sessions.delete(memory, request.path["session"], dry_run=False)
    what = f"Deleted the session “{first_line(done.what, 60) or done.session}”."
    if done.change:
        what += " Undo restores the nodes, not the session."
    return GoTo("/sessions", what, done.change or "")


def mark(request: PageRequest) -> Answer:
    """Mark an item of a receipt as wrong or useless, or take that back."""
    receipt, wanted = request.field("receipt"), request.field("verdict")
    named = quote(receipt, safe="")
    back = f"/sessions/{quote(request.path['session'], safe='')}?receipt={named}#receipt-{named}"
    with request.writing() as memory:
        explained = why.why(memory, receipt)
        item = judge.find_item(explained, request.field("item"))
        if wanted == "undo" and item.verdict:
            undone = undo.undo_change(memory, item.verdict.change, dry_run=False)
            return GoTo(back, "Taken back.", undone.by or "", "Redo")
        word = next((each for each in TAGS if each == wanted), None)
        if word is None:
            raise UsageError(f"There is no action {wanted[:40]!r}.")
        done = judge.judge(memory, explained, item, word, request.field("instead"))
    return GoTo(back, f"Marked as {word}.", done.change or "")


ROUTES = [
    PageRoute("GET", "/sessions", timeline),
    PageRoute("GET", "/sessions/{session}", one),
    PageRoute("GET", "/sessions/{session}/markdown", download),
    PageRoute("POST", "/sessions/{session}/verdict", mark),
    PageRoute("GET", "/sessions/{session}/delete", confirm_deletion),
    PageRoute("POST", "/sessions/{session}/delete", delete),
]


def as_markdown(story: SessionStory) -> str:
    """The turns of the story's page, and what the whole session came to."""
    lines = [*_head(story)]
    for turn in story.turns:
        lines += _turn(turn)
    lines += _section("Failures and fixes", map(_failure, story.failures))
    lines += _section("Decisions", (markdown.flat(each.text) for each in story.decisions))
    lines += _section(
        "Files",
        (
            markdown.code(each.path)
            + (f" (+{each.added} −{each.removed})" if each.writes else " (read)")
            for each in story.files[:_MOST_FILES]
        ),
    )
    lines += _section(
        "Memory",
        (f"{each.kind}: {markdown.flat(each.title)} ({each.short_id})" for each in story.memory),
    )
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]}…\n"


def _head(story: SessionStory) -> Iterator[str]:
    session = story.details.session
    yield f"# {markdown.flat(story.details.title or session.request or session.id)}"
    yield ""
    yield (
        f"Session {session.id} in {session.client}, {session.started_at} – {session.last_at},"
        f" {session.status}"
    )
    yield ""


def _turn(turn: StoryTurn) -> list[str]:
    lines = []
    if turn.prompt:
        lines += [f"**{markdown.flat(turn.prompt.step.text[:_LONGEST_PROMPT])}**", ""]
    for group in turn.groups:
        if group.group not in ("say", "mark"):
            failed = f" ({group.failed} failed)" if group.failed else ""
            lines.append(f"- {group.line}{failed}: {markdown.flat(group.names)}")
    if turn.answer:
        lines.append(f"- {markdown.flat(turn.answer.line)}")
    return [*lines, ""] if lines else []


def _failure(failure: StoryFailure) -> str:
    said = f": {markdown.flat(failure.messages[0])}" if failure.messages else ""
    failed = f"{markdown.code(failure.command)} failed{said}"
    if failure.passed is None:
        return failed
    files = ", ".join(map(markdown.code, failure.files))
    return f"{failed}; passed{f' after changes to {files}' if files else ''}"


def _section(title: str, entries: Iterator[str]) -> list[str]:
    listed = [f"- {each}" for each in entries]
    return [f"## {title}", "", *listed, ""] if listed else []
