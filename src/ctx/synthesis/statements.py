"""Observations in the words of those who spoke: the best excerpts of a session.

A correction is what the user corrects, forbids or prefers. Everything else is a statement: what the
user asked for and answered, what a commit message says, what the agent concluded. An excerpt that a
more precise observation or the request of the summary already contains is left out.
"""

from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import dedupe
from ctx.synthesis.excerpts import Excerpt, best, overlap, significant_words
from ctx.synthesis.observations import LONGEST_TITLE, Observation, ObservationKind, Synthesis
from ctx.synthesis.one_line_text import shortened
from ctx.synthesis.timeline import Timeline

_SAME = 0.6
_SETTLED = ("correction", "prompt", "answer", "commit")
"""Kinds that do not change while a session goes on."""
_BY_USER, _BY_AGENT = 900, 600


def with_statements(
    found: Synthesis, steps: Sequence[Step], excerpts: Sequence[Excerpt], *, is_over: bool
) -> Synthesis:
    """The synthesis of a session with the best excerpts, once the agent is idle."""
    if found.summary is None:
        return found
    known = [significant_words(f"{each.title} {each.text}") for each in found.observations]
    known.append(significant_words(found.summary.request))
    candidates = (
        excerpt
        for excerpt in excerpts
        if (is_over or excerpt.kind in _SETTLED)
        and not any(_contains(words, excerpt) for words in known)
    )
    timeline = Timeline(steps)
    added = [_observation(timeline, excerpt) for excerpt in best(candidates)]
    unique = {each.key: each for each in (*added, *found.observations)}
    return found._replace(observations=tuple(sorted(unique.values(), key=lambda each: each.at)))


def _contains(words: frozenset[str], excerpt: Excerpt) -> bool:
    own = significant_words(excerpt.text)
    return len(own) <= len(words) / _SAME and overlap(own, words) >= _SAME


def _observation(timeline: Timeline, excerpt: Excerpt) -> Observation:
    kind: ObservationKind = "correction" if excerpt.kind == "correction" else "statement"
    is_user = excerpt.source == "user"
    return Observation(
        dedupe.key(kind, excerpt.text),
        kind,
        shortened(excerpt.text, LONGEST_TITLE),
        excerpt.text,
        timeline.files_in(excerpt.text),
        (),
        (excerpt.step,),
        excerpt.at,
        _BY_USER if is_user else _BY_AGENT,
        "user" if is_user else "agent",
    )
