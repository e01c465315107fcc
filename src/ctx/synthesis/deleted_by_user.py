"""Keeps observations that the user deleted out of the session summary."""

from collections.abc import Sequence

from ctx.synthesis.observations import Observation, Summary


def without(found: Summary, deleted: Sequence[Observation]) -> Summary:
    """A summary without the lines that repeat deleted observations."""
    if not deleted:
        return found
    titles = [_words(each.title) for each in deleted]
    gone = [_words(f"{each.title} {each.text}") for each in deleted]

    def left(lines: Sequence[str]) -> tuple[str, ...]:
        said = [(line, _words(line.removeprefix("Decided: "))) for line in lines]
        return tuple(
            line
            for line, words in said
            if not any(words in text for text in gone)
            and not any(title in words for title in titles)
        )

    return found._replace(
        learned=left(found.learned), completed=left(found.completed), notes=left(found.notes)
    )


def _words(text: str) -> str:
    return " ".join(text.rstrip("….!").lower().split())
