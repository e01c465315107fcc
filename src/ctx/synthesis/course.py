"""The course of a session: who said what, and what was edited when, by places in its steps."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.steps import Step
from ctx.synthesis import cues, junk, sentences
from ctx.synthesis.sentences import Sentence
from ctx.synthesis.shell_edits import shell_edit

_LONGEST_TEXT = 60_000
_FIRST, _LAST = 60, 440
"""Of very many messages, those at the beginning and at the end."""
_MOST_SENTENCES = 5_000
_MOST_ASKED = 200
_MOST_PATHS = 300
_MOST_NAMED = 5
_LONG_ENOUGH = 4
_FEWEST_WORDS = 3
_CODE = re.compile(r"`([^`]{1,100})`")
_BARE_COMMAND = re.compile(r"\s*/[\w:-]+\s*\Z")
_AGREES = re.compile(
    r"\s*(?:(?:yes|yep|yeah|y|ok(?:ay)?|sure|sounds? good|do it|do that|go (?:ahead|on|for it)"
    r"|continue|proceed|let(?:'s|’s) do (?:that|it|this)|perfect|great|good|nice|agreed|exactly"
    r"|right|correct|please|then|lgtm|ship it|thanks?|thank you|ja|genau|mach das|weiter)\b"
    r"[\s.!,:–-]*){1,4}\Z",
    re.IGNORECASE,
)
_ABOUT_FIXING = re.compile(
    r"\b(?:fix(?:es|ed|ing)?|bugs?|fail(?:s|ed|ing|ures?)?|broken|breaks?|crash(?:es|ed|ing)?"
    r"|wrong|regress\w*|debug|traceback|panics?|flaky|stack ?trace|is red|(?:does|is)(?:n't"
    r"| not) work(?:ing)?|not work(?:ing)?|no longer works?|(?:get|getting|got|gives?|throws?|see"
    r"|this|following) (?:an? |me |the |this )*(?:\w+ )?(?:error|exception)|(?:error"
    r"|exception) (?:when|in|on|at|after)|[A-Z]\w+Error|behebe|fehler|kaputt|repariere?)\b",
    re.IGNORECASE,
)


class Said(NamedTuple):
    """A prompt, or a message of the agent."""

    at: int
    """Its place among the steps."""
    step: Step
    text: str
    sentences: tuple[Sentence, ...]


class Goal(NamedTuple):
    """A stretch of the session in which one thing was asked for."""

    name: str
    """The step that asked for it."""
    start: int
    end: int
    """The place behind its last step."""


class Course:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = _with_shell_edits(steps)
        self.edits = [
            index
            for index, step in enumerate(self.steps)
            if step.kind in ("write", "command") and step.ok and _is_inside(step.path)
        ]
        """Places of the edits of files that belong to the project, also by a command."""
        self.remedies = [
            index
            for index, step in enumerate(self.steps)
            if step.kind == "command" and step.ok and not step.path and shell_edit(step.text)
        ]
        """Places of the commands that changed something without saying which file: a patch, an
        install, an automatic fix."""

    @cached_property
    def prompts(self) -> tuple[Said, ...]:
        """What a person asked and told, without commands that have nothing behind them."""
        return tuple(said for said in self._said("prompt") if not _BARE_COMMAND.match(said.text))

    @cached_property
    def requests(self) -> tuple[Said, ...]:
        """The prompts that ask for something, rather than agree to it."""
        return tuple(said for said in self.prompts if not agrees(said.text))

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """What was asked for, one after the other. A correction belongs to what it corrects."""
        if not self.requests:
            return (Goal("", 0, len(self.steps)),)
        asked = [self.requests[0], *filter(_is_goal, self.requests[1:])]
        starts = [0, *(said.at for said in asked[1:])]
        ends = [*starts[1:], len(self.steps)]
        return tuple(
            Goal(said.step.id, start, end)
            for said, start, end in zip(asked, starts, ends, strict=True)
        )

    def goal_at(self, place: int) -> Goal:
        return self.goals[max(0, bisect_right(self._starts, place) - 1)]

    def is_about_fixing(self, goal: Goal) -> bool:
        """Whether somebody asked to put something right."""
        first = bisect_left(self._prompt_places, goal.start)
        last = bisect_left(self._prompt_places, goal.end)
        prompts = self.prompts[first:last]
        return any(is_about_fixing(said.text) for said in prompts)

    @cached_property
    def messages(self) -> tuple[Said, ...]:
        """What the agent said, without its subagents."""
        return self._said("say")

    @cached_property
    def first_edits(self) -> dict[str, int]:
        """Where each file was edited first."""
        found: dict[str, int] = {}
        for index in self.edits:
            found.setdefault(self.steps[index].path, index)
        return found

    @cached_property
    def changed_paths(self) -> frozenset[str]:
        """The files in which items of code were changed."""
        steps = (self.steps[index] for index in self.edits)
        return frozenset(step.path for step in steps if step.changes)

    @cached_property
    def first_new(self) -> dict[str, int]:
        """Where each item of code was made that this session has made, by its last name."""
        found: dict[str, int] = {}
        for index in self.edits:
            for change in self.steps[index].changes:
                if change.change == "new":
                    found.setdefault(last_name(change.name), index)
        return found

    @cached_property
    def prompt_texts(self) -> tuple[str, ...]:
        """What was asked for, sentence by sentence."""
        every = (each.text for said in self.prompts for each in said.sentences)
        return tuple(islice(every, _MOST_ASKED))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files that were edited, then those that were read; not more than anybody names."""
        read = (step.path for step in self.steps if step.kind == "read" and step.path)
        return tuple(dict.fromkeys([*self.first_edits, *read]))[:_MOST_PATHS]

    def files_in(self, text: str) -> tuple[str, ...]:
        """The files of the session that a text names, by their path or their name."""
        found = []
        named = junk.words(" ".join(_CODE.findall(text)))
        for path in self.paths:
            name = path.rpartition("/")[2]
            stem = name.partition(".")[0].lower()
            is_meant = "." in name and (path in text or _stands_alone(name, text))
            # `Queue.pop` is in `queue.py`, most likely.
            if is_meant or (len(stem) >= _LONG_ENOUGH and stem in named):
                found.append(path)
                if len(found) == _MOST_NAMED:
                    break
        return tuple(found)

    def edits_between(self, after: int, before: int) -> list[int]:
        return self.edits[bisect_right(self.edits, after) : bisect_left(self.edits, before)]

    def remedies_between(self, after: int, before: int) -> list[int]:
        first, last = bisect_right(self.remedies, after), bisect_left(self.remedies, before)
        return self.remedies[first:last]

    def last_before(self, place: int) -> Said | None:
        """The last message of the agent before a place."""
        index = bisect_left(self._places, place)
        return self.messages[index - 1] if index else None

    @cached_property
    def last_words(self) -> tuple[Said, ...]:
        """The last messages of the agent before a person spoke again, or nobody did."""
        found = {}
        for place in [*self._prompt_places, len(self.steps)]:
            said = self.last_before(place)
            if said is not None:
                found[said.at] = said
        return tuple(found.values())

    @cached_property
    def reports(self) -> tuple[Said, ...]:
        """The last words of turns in which nothing was edited."""
        places = [0, *self._prompt_places]
        begins = [places[bisect_left(places, said.at) - 1] for said in self.last_words if said.at]
        spoken = [said for said in self.last_words if said.at]
        return tuple(
            said
            for said, begin in zip(spoken, begins, strict=True)
            if not self.edits_between(begin, said.at)
        )

    def closings(self, goal: Goal) -> tuple[Said, ...]:
        """Those that belong to a goal."""
        return tuple(said for said in self.last_words if goal.start <= said.at < goal.end)

    def messages_between(self, after: int, before: int) -> tuple[Said, ...]:
        first, last = bisect_right(self._places, after), bisect_left(self._places, before)
        return self.messages[first:last]

    @cached_property
    def _prompt_places(self) -> list[int]:
        return [said.at for said in self.prompts]

    @cached_property
    def _starts(self) -> list[int]:
        return [goal.start for goal in self.goals]

    @cached_property
    def _places(self) -> list[int]:
        return [said.at for said in self.messages]

    def _said(self, kind: str) -> tuple[Said, ...]:
        places = [
            index
            for index, step in enumerate(self.steps)
            if step.kind == kind and not step.agent and step.text.strip()
        ]
        if len(places) > _FIRST + _LAST:
            places = places[:_FIRST] + places[-_LAST:]
        found: dict[str, Said] = {}
        left = _MOST_SENTENCES
        for index in places:
            step = self.steps[index]
            text = without_injected(without_private(step.text[:_LONGEST_TEXT])).strip()
            # The hook and the transcript tell the same message.
            if text and text not in found:
                told = tuple(sentences.of(text) if left > 0 else ())
                found[text] = Said(index, step, text, told)
                left -= len(told)
        return tuple(found.values())


def _with_shell_edits(steps: Sequence[Step]) -> Sequence[Step]:
    """The steps, with the file that a command has changed."""
    known = {step.path: None for step in steps if step.path and not step.path.startswith("/")}
    return [
        step._replace(path=path)
        if step.kind == "command" and not step.path and (path := _shell_path(step.text, known))
        else step
        for step in steps
    ]


def _shell_path(command: str, known: Mapping[str, None]) -> str:
    """The first file that a command changes, from the project's root as far as that is known."""
    edit = shell_edit(command)
    for path in edit.paths if edit else ():
        if not path.startswith("/"):
            return path
        # Where the project lies, the other steps tell.
        inside = next(
            (each for each in islice(known, _MOST_PATHS) if path.endswith(f"/{each}")), ""
        )
        if inside:
            return inside
    return ""


def _is_inside(path: str) -> bool:
    """Notes and experiments that lie elsewhere are nobody's work."""
    return bool(path) and not path.startswith(("/", "..", "~"))


def _is_goal(said: Said) -> bool:
    first = said.sentences[0].text if said.sentences else said.text[:400]
    return (
        len(junk.words(said.text)) >= _FEWEST_WORDS
        and cues.weight(cues.CORRECTIONS, first) < cues.ENOUGH
    )


def is_about_fixing(prompt: str) -> bool:
    """Whether something is to be put right, by the words of a prompt."""
    return _ABOUT_FIXING.search(prompt[:2_000]) is not None


def agrees(prompt: str) -> bool:
    """Whether a prompt only says yes."""
    return len(prompt) < 80 and _AGREES.match(prompt) is not None


def last_name(name: str) -> str:
    """`refresh` of `auth.Session.refresh` or `auth::Session::refresh`."""
    return re.split(r"::|[.#/]", name)[-1]


def _stands_alone(name: str, text: str) -> bool:
    """Whether a name stands in a text, and is not the end of a longer one."""
    at = text.find(name)
    if at < 0:
        return False
    before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
    return not (before.isalnum() or before in ("_", "-", ".")) and not after.isalnum()
