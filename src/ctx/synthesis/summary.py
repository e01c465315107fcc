"""The session summary, in eight sections."""

import re
from collections.abc import Iterable, Sequence

from ctx.capture.steps import Step
from ctx.hosts import tool_calls
from ctx.synthesis import dedupe, final_message, wording
from ctx.synthesis.check_commands import checks
from ctx.synthesis.decisions import settles
from ctx.synthesis.failures import is_failing
from ctx.synthesis.fixes import Fixes
from ctx.synthesis.net_changes import reverted_items
from ctx.synthesis.observations import LONGEST_LINE, LONGEST_NAME, MOST_FILES, Observation, Summary
from ctx.synthesis.sentences import Sentence
from ctx.synthesis.timeline import ChatMessage, Timeline, agrees, is_about_fixing

_MOST_LEARNED = 5
_MOST_COMPLETED = 6
_MOST_NEXT = 6
_MOST_NOTES = 8
_MOST_SEARCHES = 3
_MOST_READ = 5
_OPEN_TODO = re.compile(r"\[(?P<mark>[^\]]{0,20})\] (?P<what>.+)")
_NUMBERED = re.compile(r"task (\d{1,6})\Z")
_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,60}\bcommit\b")
_DECIDED = re.compile(r"(?:decided|agreed|chose|opted|settled|deliberately)\b", re.IGNORECASE)


def summarise(
    timeline: Timeline,
    told: Sequence[Observation],
    learned: Sequence[str],
    fixes: Fixes,
    done: Sequence[str],
) -> Summary | None:
    """The summary; None if nothing was requested or nothing was done."""
    is_asked = any(dedupe.words(said.text) for said in prompts(timeline))
    if not is_asked or not any(map(_has_substance, timeline.steps)):
        return None
    stopped_at = final_message.unreported_last_step(timeline)
    completed = (
        _completed_lines(told, done)
        if stopped_at is None
        else _completed_lines(*_before_last_turn(timeline, told, done))
    )
    concluded = [] if completed else final_message.conclusions(timeline)
    is_review = len(concluded) > final_message.MOST_ANSWERED
    findings = [*map(wording.without_lead, concluded)]
    found_out = [*learned, *findings] if is_review or not learned else learned
    read, more_read = _files(_read_paths(timeline))
    edited, more_edited = _files(_by_importance(timeline))
    return Summary(
        title(timeline, completed),
        request(timeline),
        _investigated_lines(timeline),
        tuple(_lines(found_out, _MOST_LEARNED)),
        completed,
        _next_steps(timeline, fixes, stopped_at),
        read,
        edited,
        _notes(timeline, told, fixes),
        more_read,
        more_edited,
        timeline.steps[-1].at,
        final_message.last_report(timeline) if stopped_at is None else (),
        _uncommitted(timeline)[:MOST_FILES],
    )


def _has_substance(step: Step) -> bool:
    return step.kind in ("read", "write", "command", "search", "agent")


def _investigated_lines(timeline: Timeline) -> tuple[str, ...]:
    """What the agent read and searched for before the first edit."""
    until = timeline.edits[0] if timeline.edits else len(timeline.steps)
    before = timeline.steps[:until]
    read = wording.distinct(step.path for step in before if step.kind == "read")
    searched = wording.distinct(
        wording.code(step.text) for step in before if step.kind == "search" and step.text.strip()
    )
    found = []
    if read:
        found.append(f"Read {wording.listed(read, _MOST_READ)}")
    if searched:
        found.append(f"Searched for {wording.listed(searched, _MOST_SEARCHES)}")
    return tuple(wording.shortened(each, LONGEST_LINE) for each in found)


def _completed_lines(told: Sequence[Observation], done: Sequence[str]) -> tuple[str, ...]:
    kinds = ("bugfix", "feature", "refactor")
    titles = [each.title for each in told if each.kind in kinds]
    return tuple(_lines([*titles, *map(wording.impersonal, done)], _MOST_COMPLETED))


def _lines(texts: Iterable[str], most: int) -> list[str]:
    """The texts as single lines, without repetitions."""
    found: list[str] = []
    for text in texts:
        line = wording.shortened(text, LONGEST_LINE).rstrip(".!")
        if line and len(found) < most and not dedupe.is_repeated(line, found):
            found.append(line)
    return found


def _before_last_turn(
    timeline: Timeline, told: Sequence[Observation], done: Sequence[str]
) -> tuple[list[Observation], list[str]]:
    """What was completed although the session was cut off: earlier turns, and fixed failures."""
    begin = timeline.prompts[-1].step.at
    last = " ".join(said.text for said in timeline.messages if said.step.at > begin)
    return (
        [each for each in told if each.kind == "bugfix" or each.at <= begin],
        [text for text in done if text not in last],
    )


def _stopped_line(step: Step | None) -> list[str]:
    if step is None:
        return []
    is_edit = step.path and step.ok
    after = f"an edit of {step.path}" if is_edit else f"{wording.code(step.text)} failed"
    return [f"The session stopped after {after}, without a report"]


def _next_steps(timeline: Timeline, fixes: Fixes, stopped_at: Step | None) -> tuple[str, ...]:
    left = [
        wording.impersonal(wording.without_lead(each))
        for each in final_message.remaining_work(timeline)
    ]
    return tuple(
        _lines([*fixes.failing, *_stopped_line(stopped_at), *left, *_todos(timeline)], _MOST_NEXT)
    )


def _todos(timeline: Timeline) -> list[str]:
    """Open items of the agent's last to-do list, and its open tasks."""
    lists = [
        step for step in timeline.steps if step.tool == tool_calls.TODO_LIST and step.kind == "plan"
    ]
    made: list[str] = []
    done: set[int] = set()
    for step in timeline.steps:
        if step.kind != "plan" or step.tool not in (tool_calls.NEW_TASK, tool_calls.CHANGED_TASK):
            continue
        found = _OPEN_TODO.match(step.text)
        number = _NUMBERED.match(found["what"]) if found else None
        if found and number and found["mark"] in ("x", "deleted"):
            done.add(int(number[1]))
        elif found and number is None and step.tool == tool_calls.NEW_TASK:
            made.append(found["what"].partition("\n")[0])
    left = [what for index, what in enumerate(made, 1) if index not in done]
    if lists:
        matches = map(_OPEN_TODO.match, lists[-1].text.splitlines())
        left += [each["what"] for each in matches if each and each["mark"] != "x"]
    return left


def _uncommitted(timeline: Timeline) -> tuple[str, ...]:
    commits = [
        index
        for index, step in enumerate(timeline.steps)
        if step.kind == "command" and step.ok and _COMMIT.search(step.text)
    ]
    edits = timeline.edits_between(commits[-1], len(timeline.steps)) if commits else ()
    return wording.distinct(timeline.steps[index].path for index in edits)


def _read_paths(timeline: Timeline) -> list[str]:
    """The files read, most frequent first."""
    counts: dict[str, int] = {}
    for step in timeline.steps:
        if step.kind == "read" and step.path:
            counts[step.path] = counts.get(step.path, 0) + 1
    return sorted(counts, key=lambda path: -counts[path])


def _by_importance(timeline: Timeline) -> list[str]:
    """The edited files: code before tests, most changed lines first."""
    size: dict[str, int] = {}
    for index in timeline.edits:
        step = timeline.steps[index]
        size[step.path] = size.get(step.path, 0) + step.added + step.removed
    return sorted(size, key=lambda path: (wording.is_test(path), -size[path]))


def _files(paths: Sequence[str]) -> tuple[tuple[str, ...], int]:
    return tuple(paths[:MOST_FILES]), max(0, len(paths) - MOST_FILES)


def _notes(timeline: Timeline, told: Sequence[Observation], fixes: Fixes) -> tuple[str, ...]:
    decided = [_decision_title(each.title) for each in told if each.kind == "decision"]
    used = wording.distinct(
        wording.code(check.shown)
        for step in timeline.steps
        if step.kind == "command" and not is_failing(step)
        for check in checks(step.text)
        if check.goal in ("test", "build", "lint")
    )
    checked = [f"Checked with {wording.listed(used, 3)}"] if used else []
    gone = wording.distinct(wording.code(each.name) for each in reverted_items(timeline))
    undone = [f"Added and taken out again: {wording.listed(gone, 3)}"] if gone else []
    notes = [*decided[:4], *fixes.failed_attempts, *undone, *checked]
    return tuple(wording.shortened(note, LONGEST_LINE) for note in notes[:_MOST_NOTES])


def _decision_title(title: str) -> str:
    """A title with `Decided:` in front, unless it already begins like a decision."""
    return title if _DECIDED.match(title) else f"Decided: {title}"


def markdown(summary: Summary) -> str:
    """The summary as the text of a node, without empty sections."""
    sections = (
        ("Request", summary.request),
        ("Investigated", "; ".join(summary.investigated)),
        ("Learned", "; ".join(summary.learned)),
        ("Completed", "; ".join(summary.completed)),
        ("Next Steps", "; ".join(summary.next_steps)),
        ("Files Read", _join_with_rest(summary.files_read, summary.more_read)),
        ("Files Edited", _join_with_rest(summary.files_edited, summary.more_edited)),
        ("Notes", "; ".join(summary.notes)),
    )
    return "\n".join(f"**{name}:** {text}" for name, text in sections if text)


def _join_with_rest(paths: Sequence[str], more: int) -> str:
    return ", ".join([*paths, f"and {more} more"] if more else paths)


_MOST_GOALS = 3
_MOST_SENTENCES = 4
_LONGEST = 4_000
_LONGEST_GOAL = 110
_FEWEST_WORDS = 3
# `Add a cache.`
_FEWEST_AT_FIRST = 2
_POLITE = re.compile(
    r"(?:(?:hi|hey|hello|hallo|ok(?:ay)?|so|now|then|please|bitte|also|and|great|thanks|nice|cool"
    r"|ah|perfect|works|yes|yep|ja)[,.!:]*\s+|(?:can|could|would|will) you (?:please )?"
    r"|i(?:'d| would) like (?:you )?to |i (?:want|need) (?:you )?to |we (?:need|want|have) to "
    r"|let(?:'s|’s) |kannst du (?:bitte )?)",
    re.IGNORECASE,
)
_HAS_NO_SUBJECT = re.compile(r"(?:is|are|was|were|has|have|had|does|will|would)\b", re.IGNORECASE)
_TRAILING_REQUEST = re.compile(
    r"[,;–—] *(?:can|could|would|will|please|bitte)\b[^,;]*\Z", re.IGNORECASE
)
_COMMAND_NAME = re.compile(r"/[\w:-]+\s+")
# Clients write this when the user accepts a plan; the plan has its own title.
_PLAN = re.compile(
    r"[^\n]{0,80}\bplan:?\s{1,9}#[ \t]{1,9}(?:plan\b[: \t]*)?(?P<title>[^\n]{0,200})", re.IGNORECASE
)
_ERROR = re.compile(
    r"^[ \t>]*((?:[\w.]{0,80}(?:Error|Exception)|error|panic)\b[^\n]{3,200})", re.MULTILINE
)
_TRACE = re.compile(r"\sat \S{1,200} [\[(].*\Z", re.DOTALL)
_STATES = re.compile(
    r"(?:(?:gut|interesting|hm+|right|okay|ok|ah|so|yes|ja)[,.!]*\s+)*(?:it['’]?s|it is|that['’]?s"
    r"|that is|option \w|the (?:first|second|third) one|we (?:will|are|have a|use)"
    r"|they|i (?:think|see|am)|das \w+ (?:ist|bleibt|war)"
    r"|das (?:ist|bleibt|war))\b",
    re.IGNORECASE,
)
# Paths, links, pasted code and several lines make no title.
_UNSUITABLE_TITLE = re.compile(r"[\n<>{}|\\@#]|\w/\w|^/|https?:")
_ASKS = re.compile(r"\?|\b(?:please|bitte|can you|could you|kannst du)\b", re.IGNORECASE)


def prompts(timeline: Timeline) -> tuple[ChatMessage, ...]:
    """The prompts that request something, or all prompts if none does."""
    every = timeline.requests or timeline.prompts
    return tuple(said for said in every if not _is_given_up(timeline, said)) or every


def _is_given_up(timeline: Timeline, said: ChatMessage) -> bool:
    """Whether a short prompt is followed at once by another prompt."""
    after = timeline.steps[said.at + 1 : said.at + 2]
    is_short = len(dedupe.words(said.text)) < _FEWEST_WORDS
    return is_short and any(step.kind == "prompt" for step in after)


def request(timeline: Timeline) -> str:
    """The first request, and later ones that change the goal."""
    every = prompts(timeline)
    asked = [said for said in every if len(dedupe.words(_as_request(said))) >= _FEWEST_AT_FIRST]
    first, *later = asked or every
    told = [wording.shortened(_as_request(first), LONGEST_LINE)]
    for said in later:
        goal = wording.shortened(_as_request(said), _LONGEST_GOAL)
        is_goal = (
            len(dedupe.words(goal)) >= _FEWEST_WORDS
            and not dedupe.is_repeated(goal, told)
            and not settles(said)
            and not final_message.postpones_work(said)
            and not _only_states(said)
        )
        if is_goal and len(told) <= _MOST_GOALS:
            told.append(goal)
    whole = wording.sentence(told[0])
    if len(told) > 1:
        whole += f" Then: {wording.sentence('; '.join(goal.rstrip('.') for goal in told[1:]))}"
    return wording.shortened(whole, 2 * LONGEST_LINE)


def title(timeline: Timeline, completed: Sequence[str]) -> str:
    """The first request if it is short and plain, or else the title that the session was given."""
    given = timeline.title
    if given.text and (given.is_by_user or not _is_title(prompts(timeline)[0].text)):
        return wording.shortened(given.text.rstrip(". "), LONGEST_NAME)
    return _own_title(timeline, completed)


def _is_title(prompt: str) -> bool:
    text = prompt.strip()
    is_plain = len(text) <= LONGEST_NAME and not _UNSUITABLE_TITLE.search(text)
    return is_plain and len(dedupe.words(_plain(text))) >= _FEWEST_WORDS


def _own_title(timeline: Timeline, completed: Sequence[str]) -> str:
    """The first request, or the completed work if the request says too little."""
    for said in prompts(timeline)[:_MOST_GOALS]:
        plan = _PLAN.match(said.text)
        if plan and len(dedupe.words(plan["title"])) >= _FEWEST_AT_FIRST:
            return wording.shortened(plan["title"].rstrip(".?! "), LONGEST_NAME)
        each = [_request_in(sentence) for sentence in said.sentences[:_MOST_SENTENCES]]
        each.append(_as_request(said))
        for fewest in (_FEWEST_WORDS, _FEWEST_AT_FIRST):
            telling = (asked for asked in each if len(dedupe.words(asked)) >= fewest)
            best = next(telling, "")
            if best and not agrees(said.text):
                return wording.shortened(best.rstrip(".?! "), LONGEST_NAME)
    best = completed[0] if completed else _as_request(prompts(timeline)[0])
    return wording.shortened(best.rstrip(".?! ") or best, LONGEST_NAME)


def _request_in(sentence: Sentence) -> str:
    is_lead = sentence.text.endswith(":") or not dedupe.words(sentence.text)
    # Its subject is in the heading above it, or was cut off with an abbreviation.
    is_rest = _HAS_NO_SUBJECT.match(sentence.text) and not sentence.is_question
    return "" if is_lead or is_rest else _TRAILING_REQUEST.sub("", _plain(sentence.text))


def _as_request(said: ChatMessage) -> str:
    """A prompt without pasted text and polite phrases."""
    words, is_listed = "", False
    for each in said.sentences[:_MOST_SENTENCES]:
        if dedupe.words(each.text) and not each.text.endswith(":"):
            words += f"{'; ' if is_listed and each.is_item else ' '}{each.text}"
            is_listed = each.is_item
    words = _plain(words.strip() or said.text[:_LONGEST])
    error = _ERROR.search(said.text[:_LONGEST])
    if error and len(dedupe.words(words)) < _FEWEST_AT_FIRST:
        # The prompt is just `fix` with pasted output below it.
        words = f"{words.rstrip('.!: ')}: {error[1]}"
    return wording.line(words)


def _plain(text: str) -> str:
    words = _without_command(text)
    for _ in range(4):
        polite = _POLITE.match(words)
        if polite is None or polite.end() == len(words):
            break
        words = words[polite.end() :]
    words = _TRACE.sub("", words) or words
    return wording.capital(wording.line(words).removesuffix(" please"))


def _without_command(words: str) -> str:
    """A prompt without its slash command, unless too few words remain: `/review src/a.py`."""
    behind = _COMMAND_NAME.sub("", words, count=1) if words.startswith("/") else words
    return behind if len(dedupe.words(behind)) >= _FEWEST_WORDS else words


def _only_states(said: ChatMessage) -> bool:
    """Whether a prompt only states something and requests nothing."""
    return (
        _STATES.match(said.text) is not None
        and not _ASKS.search(said.text)
        and not is_about_fixing(said.text)
    )
