"""Observations in the words of those who spoke: the best excerpts of a session.

A rule is what the user forbids or prefers in general, a correction what they correct in the work at
hand. Everything else is a statement: what the user asked for and answered, what a commit message
says, what the agent concluded. An excerpt that a more precise observation or the request of the
summary already contains is left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ctx import terms
from ctx.capture.steps import Step
from ctx.ids import NodeId
from ctx.synthesis import dedupe
from ctx.synthesis.observations import LONGEST_TITLE, Observation, ObservationKind, Synthesis
from ctx.synthesis.session_excerpts import (
    PROCESS_TERMS,
    Excerpt,
    best,
    from_first_rule,
    is_contained,
    is_rule,
)
from ctx.synthesis.synthesise import is_at_rest
from ctx.synthesis.timeline import Timeline
from ctx.synthesis.wording import shortened

MOST = 15
"""The most observations of a session."""

_EXPECTS = re.compile(r"\bshould (?:now |then )?(?:be|work|let|fix|show|allow|resolve|pass)\b")
_STATED = 0.8
_FEWEST_SHARED_WORDS = 2
_OF_USER = ("rule", "correction")
"""Kinds of what the user said, whoever else repeats it."""
_SETTLED = ("correction", "prompt", "answer", "commit")
"""Kinds that do not change while a session goes on."""
_KEPT = 2_000
"""The least that an excerpt is worth that a model keeps, in thousandths."""
_BY_USER, BY_AGENT = 900, 600
_WORTH = {"decision": 1_500, "bugfix": 1_200, "discovery": 1_200, "feature": 500, "refactor": 300}
"""What the observations are worth that are not excerpts, in thousandths."""


class Choice(NamedTuple):
    """What a model said about an excerpt that it keeps."""

    kind: ObservationKind
    object: str
    """What the excerpt is about, if its own words do not say it."""
    replaces: tuple[NodeId, ...]


class Choices(NamedTuple):
    """What a model chose among the excerpts of a session."""

    kept: Mapping[tuple[str, int], Choice]
    """By step and part."""
    shown: frozenset[str]
    """The steps with the excerpts that it was shown."""

    def of(self, excerpt: Excerpt) -> Choice | None:
        return self.kept.get((excerpt.step, excerpt.part))

    def weighed(self, excerpts: Sequence[Excerpt]) -> Iterator[Excerpt]:
        """The excerpts, without those of the agent that the model was shown and did not keep."""
        for excerpt in excerpts:
            if self.of(excerpt):
                yield excerpt._replace(worth=max(excerpt.worth, _KEPT))
            elif excerpt.source == "user" or excerpt.step not in self.shown:
                yield excerpt


NO_CHOICES = Choices({}, frozenset())


def with_statements(
    found: Synthesis,
    steps: Sequence[Step],
    excerpts: Sequence[Excerpt],
    *,
    is_over: bool,
    choices: Choices = NO_CHOICES,
) -> Synthesis:
    """The synthesis of a session with the best excerpts, once the agent is idle."""
    if not is_over and not is_at_rest(steps):
        return found
    disputed = [terms.significant(each.text) for each in excerpts if each.is_disputed]
    undone = [terms.significant(each.text) for each in excerpts if each.is_reversed]
    prompts = [terms.significant(each.text) for each in excerpts if each.kind == "correction"]

    def is_kept(line: str) -> bool:
        """Whether no correction is about what a line says. One about a detail leaves it true."""
        words = terms.significant(line) - PROCESS_TERMS
        is_meant = any(len(words & prompt) >= _FEWEST_SHARED_WORDS for prompt in prompts)
        return _is_fact(line, disputed if is_meant else undone)

    observations = [each for each in found.observations if is_kept(each.title)]
    known = [terms.significant(f"{each.title} {each.text}") for each in observations]
    request = terms.significant(found.summary.request if found.summary else "")
    timeline = Timeline(steps)
    first = timeline.prompts[0].step.id if timeline.prompts else ""

    def is_news(excerpt: Excerpt) -> bool:
        """Whether no observation has it, nor the request of the summary."""
        words = terms.significant(excerpt.text)
        return not any(is_contained(words, other) for other in known) and (
            _is_lasting(excerpt, first) or not is_contained(words, request)
        )

    candidates = (
        excerpt
        for excerpt in choices.weighed(excerpts)
        if (is_over or excerpt.kind in _SETTLED) and is_news(excerpt)
    )
    ranked = [
        (excerpt.worth, _observation(timeline, excerpt, choices.of(excerpt)))
        for excerpt in best(candidates)
    ]
    replaced = [
        (excerpt, choice.replaces)
        for excerpt in excerpts
        if (choice := choices.of(excerpt)) and not is_news(excerpt)
    ]
    for each in observations:
        ids = (
            ids for it, ids in replaced if it.step in each.evidence and it.source == each.said_by
        )
        lasting = _mark_as_lasting(each)._replace(replaces=tuple(chain.from_iterable(ids)))
        ranked.append((_WORTH.get(each.kind, 0), lasting))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].at, pair[1].key))
    unique = {each.key: each for _, each in reversed(ranked[:MOST])}
    ordered = tuple(sorted(unique.values(), key=lambda each: each.at))
    summary = found.summary and found.summary._replace(
        completed=tuple(filter(is_kept, found.summary.completed)),
        learned=tuple(filter(is_kept, found.summary.learned)),
        ended=tuple(filter(is_kept, found.summary.ended)),
    )
    return Synthesis(ordered, summary)


def _is_fact(line: str, disputed: Sequence[frozenset[str]]) -> bool:
    """Whether a line states what is so, and comes from no message that the user disputed."""
    words = terms.significant(line)
    return not _EXPECTS.search(line) and not any(
        words and len(words & other) >= _STATED * len(words) for other in disputed
    )


def _is_lasting(excerpt: Excerpt, first: str) -> bool:
    """Whether an excerpt is kept beside the request of the summary, which is shown in short.

    The first prompt is the request itself, unless it has rules.
    """
    return excerpt.kind == "correction" and (excerpt.step != first or is_rule(excerpt.text))


def _mark_as_lasting(found: Observation) -> Observation:
    """A decision of the user that is a rule is marked as lasting."""
    is_lasting = found.kind == "decision" and found.said_by == "user" and is_rule(found.title)
    return found._replace(is_lasting=is_lasting)


def _observation(timeline: Timeline, excerpt: Excerpt, choice: Choice | None) -> Observation:
    kind: ObservationKind = "statement"
    text = excerpt.text
    is_user = excerpt.source == "user"
    if excerpt.kind == "correction" and is_rule(text):
        kind, text = "rule", from_first_rule(text)
    elif excerpt.kind == "correction":
        kind = "correction"
    key = dedupe.key(kind, text)
    if choice and kind == "statement" and (is_user or choice.kind not in _OF_USER):
        kind = choice.kind
    about = f"To “{choice.object}”: " if choice and choice.object else ""
    return Observation(
        key,
        kind,
        shortened(text, LONGEST_TITLE),
        f"{about}{text}",
        timeline.files_in(text),
        (),
        (excerpt.step,),
        excerpt.at,
        _BY_USER if is_user else BY_AGENT,
        "user" if is_user else "agent",
        excerpt.worth,
        excerpt.kind,
        kind == "rule",
        choice.replaces if choice else (),
    )
