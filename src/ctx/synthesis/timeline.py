"""The timeline of a session: its messages, goals and edits, by step index."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.steps import Step, title_of
from ctx.synthesis import cue_phrases, dedupe, sentences
from ctx.synthesis.command_words import shell_edit
from ctx.synthesis.pasted_text import split_pasted
from ctx.synthesis.sentences import Sentence

_LONGEST_TEXT = 60_000
_FIRST, _LAST = 60, 440
"""Of a very long session, only the first and last messages are read."""
_MOST_SENTENCES = 5_000
_MOST_PROMPT_SENTENCES = 200
_MOST_PATHS = 300
_MOST_NAMED = 5
_LONG_ENOUGH = 4
_FEWEST_WORDS = 3
_LONG_PROMPT, _LONG_PROMPT_HEAD = 800, 300
_CODE = re.compile(r"`([^`]{1,100})`")
_HEADING = re.compile(
    r"^ {0,3}#{1,3}[ \t]+(?:plan[:.][ \t]*)?(\S[^\n]{2,200})", re.MULTILINE | re.IGNORECASE
)
_NO_TITLE = re.compile(
    r"(?:the |implementation )?(?:plan|context|overview|summary|steps?|goals?|problem|background"
    r"|description|task)[:.]?\s*",
    re.IGNORECASE,
)
_LONGEST_LEAD = 120
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


class ChatMessage(NamedTuple):
    """A prompt, or a message from the agent."""

    at: int
    """The index of its step."""
    step: Step
    text: str
    sentences: tuple[Sentence, ...]


class Goal(NamedTuple):
    """The part of a session that works on one request."""

    name: str
    """The id of the step with the request."""
    start: int
    end: int
    """The index after its last step."""


class Timeline:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.title = title_of(steps)
        self.steps = _with_shell_edits(
            [step for step in steps if step.kind not in ("title", "name")]
        )
        self.edits = [
            index
            for index, step in enumerate(self.steps)
            if step.kind in ("write", "command") and step.ok and _is_inside(step.path)
        ]
        """Indexes of the edits of project files, including edits by a command."""
        self.remedies = [
            index
            for index, step in enumerate(self.steps)
            if step.kind == "command" and step.ok and not step.path and shell_edit(step.text)
        ]
        """Indexes of the commands that change files without naming them: a patch, an install, an
        automatic fix."""

    @cached_property
    def prompts(self) -> tuple[ChatMessage, ...]:
        """The user's prompts, without bare slash commands."""
        return tuple(
            said for said in self._messages_of_kind("prompt") if not _BARE_COMMAND.match(said.text)
        )

    @property
    def last_prompt_at(self) -> int:
        return self.prompts[-1].at if self.prompts else -1

    @cached_property
    def requests(self) -> tuple[ChatMessage, ...]:
        """The prompts that request something, as opposed to agreeing."""
        return tuple(said for said in self.prompts if not agrees(said.text))

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """The goals in order. A correction belongs to the goal that it corrects."""
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
        """Whether a prompt of this goal asks for a fix."""
        first = bisect_left(self._prompt_places, goal.start)
        last = bisect_left(self._prompt_places, goal.end)
        prompts = self.prompts[first:last]
        return any(is_about_fixing(said.text) for said in prompts)

    @cached_property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The agent's messages, without those of its subagents."""
        return self._messages_of_kind("say")

    @cached_property
    def first_edits(self) -> dict[str, int]:
        """The index of the first edit of each file."""
        found: dict[str, int] = {}
        for index in self.edits:
            found.setdefault(self.steps[index].path, index)
        return found

    @cached_property
    def changed_paths(self) -> frozenset[str]:
        """The files whose edits changed code items."""
        steps = (self.steps[index] for index in self.edits)
        return frozenset(step.path for step in steps if step.changes)

    @cached_property
    def first_new(self) -> dict[str, int]:
        """The index at which the session created each code item, by the last part of its name."""
        found: dict[str, int] = {}
        for index in self.edits:
            for change in self.steps[index].changes:
                if change.change == "new":
                    found.setdefault(last_name(change.name), index)
        return found

    @cached_property
    def prompt_texts(self) -> tuple[str, ...]:
        """The sentences of all prompts."""
        every = (each.text for said in self.prompts for each in said.sentences)
        return tuple(islice(every, _MOST_PROMPT_SENTENCES))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The edited files, then the files read, up to a limit."""
        read = (step.path for step in self.steps if step.kind == "read" and step.path)
        return tuple(dict.fromkeys([*self.first_edits, *read]))[:_MOST_PATHS]

    def files_in(self, text: str) -> tuple[str, ...]:
        """The files of the session that a text mentions by path or name."""
        found = []
        named = dedupe.words(" ".join(_CODE.findall(text)))
        for path in self.paths:
            name = path.rpartition("/")[2]
            stem = name.partition(".")[0].lower()
            is_meant = "." in name and (path in text or _is_whole_name(name, text))
            # `Queue.pop` is most likely in `queue.py`.
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

    def last_before(self, place: int) -> ChatMessage | None:
        """The agent's last message before an index."""
        index = bisect_left(self._places, place)
        return self.messages[index - 1] if index else None

    @cached_property
    def last_words(self) -> tuple[ChatMessage, ...]:
        """The agent's last message of each turn."""
        found = {}
        for place in [*self._prompt_places, len(self.steps)]:
            said = self.last_before(place)
            if said is not None:
                found[said.at] = said
        return tuple(found.values())

    @cached_property
    def reports(self) -> tuple[ChatMessage, ...]:
        """The last messages of turns without edits."""
        places = [0, *self._prompt_places]
        begins = [places[bisect_left(places, said.at) - 1] for said in self.last_words if said.at]
        spoken = [said for said in self.last_words if said.at]
        return tuple(
            said
            for said, begin in zip(spoken, begins, strict=True)
            if not self.edits_between(begin, said.at)
        )

    def closings(self, goal: Goal) -> tuple[ChatMessage, ...]:
        """The last messages of the turns of one goal."""
        return tuple(said for said in self.last_words if goal.start <= said.at < goal.end)

    def messages_between(self, after: int, before: int) -> tuple[ChatMessage, ...]:
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

    def _messages_of_kind(self, kind: str) -> tuple[ChatMessage, ...]:
        places = [
            index
            for index, step in enumerate(self.steps)
            if step.kind == kind and not step.agent and step.text.strip()
        ]
        if len(places) > _FIRST + _LAST:
            places = places[:_FIRST] + places[-_LAST:]
        found: dict[str, ChatMessage] = {}
        left = _MOST_SENTENCES
        for index in places:
            step = self.steps[index]
            text = without_injected(without_private(step.text[:_LONGEST_TEXT])).strip()
            # The hook and the transcript both report the same message.
            if text and text not in found:
                own = _own_words(text) if kind == "prompt" else text
                told = tuple(sentences.split_sentences(own) if left > 0 else ())
                found[text] = ChatMessage(index, step, text, told)
                left -= len(told)
        return tuple(found.values())


def _own_words(prompt: str) -> str:
    """A prompt without pasted text; of text that is only pasted, the heading or first sentence."""
    own, pasted = split_pasted(prompt)
    is_lead = own.endswith(":") and len(own) < _LONGEST_LEAD
    if (own and not is_lead) or not pasted:
        return own
    headings = (heading[1] for heading in _HEADING.finditer(pasted))
    titles = [title for title in headings if not _NO_TITLE.fullmatch(title)]
    return titles[0] if titles else next((it.text for it in sentences.split_sentences(pasted)), own)


def _with_shell_edits(steps: Sequence[Step]) -> Sequence[Step]:
    """The steps, with a path added to the commands that edit a file."""
    known = {step.path: None for step in steps if step.path and not step.path.startswith("/")}
    return [
        step._replace(path=path)
        if step.kind == "command" and not step.path and (path := _shell_path(step.text, known))
        else step
        for step in steps
    ]


def _shell_path(command: str, known: Mapping[str, None]) -> str:
    """The first file that a command changes, relative to the project's root where known."""
    edit = shell_edit(command)
    for path in edit.paths if edit else ():
        if not path.startswith("/"):
            return path
        # The paths of other steps reveal the project's root.
        inside = next(
            (each for each in islice(known, _MOST_PATHS) if path.endswith(f"/{each}")), ""
        )
        if inside:
            return inside
    return ""


def _is_inside(path: str) -> bool:
    """Whether a path is inside the project; notes and experiments elsewhere do not count."""
    return bool(path) and not path.startswith(("/", "..", "~"))


def _is_goal(said: ChatMessage) -> bool:
    first = said.sentences[0].text if said.sentences else said.text[:400]
    return (
        len(dedupe.words(said.text)) >= _FEWEST_WORDS
        and cue_phrases.weight(cue_phrases.CORRECTIONS, first) < cue_phrases.ENOUGH
    )


def is_about_fixing(prompt: str) -> bool:
    """Whether a prompt asks for a fix. Of a long prompt, the beginning says what it asks for."""
    head = prompt[:2_000] if len(prompt) <= _LONG_PROMPT else prompt[:_LONG_PROMPT_HEAD]
    return _ABOUT_FIXING.search(head) is not None


def agrees(prompt: str) -> bool:
    """Whether a prompt does nothing but agree."""
    return len(prompt) < 80 and _AGREES.match(prompt) is not None


def last_name(name: str) -> str:
    """`refresh` of `auth.Session.refresh` or `auth::Session::refresh`."""
    return re.split(r"::|[.#/]", name)[-1]


def _is_whole_name(name: str, text: str) -> bool:
    """Whether a name occurs in a text on its own, not as the end of a longer name."""
    at = text.find(name)
    if at < 0:
        return False
    before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
    return not (before.isalnum() or before in ("_", "-", ".")) and not after.isalnum()
