"""The story of a session as markdown, to paste it elsewhere."""

from collections.abc import Iterator

from ctx import markdown
from ctx.operations.session_story import SessionStory, StoryFailure
from ctx.operations.session_turns import StoryTurn

_LONGEST = 12_000
_LONGEST_PROMPT = 600
_MOST_FILES = 40


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
