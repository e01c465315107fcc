"""Sessions as scripts that are written by hand, one step after the other.

    prompt: Fix the test.
    read: src/auth.py
    search: refresh
    run: pytest -q
      failed 1
      finding: src/auth.py:12 | AssertionError | assert 2 == 1 | tests/test_auth.py::test_once
    say: It is called twice.
      | A second line of the same message.
    write: src/auth.py +3 -1
      modified function Session.refresh (self) -> Token
    run: pytest -q
      passed

What stands indented belongs to the step above it. `@sub` behind the word is what a subagent did.
"""

from ctx.capture.session_state import Session
from ctx.capture.steps import Kind, Step, StepFinding, SymbolChange

KINDS: dict[str, Kind] = {
    "prompt": "prompt",
    "say": "say",
    "read": "read",
    "write": "write",
    "run": "command",
    "search": "search",
    "todo": "plan",
    "asked": "plan",
    "plan": "plan",
    "agent": "agent",
    "mark": "mark",
    "title": "title",
    "name": "name",
}
TOOLS = {
    "todo": "TodoWrite",
    "asked": "AskUserQuestion",
    "plan": "ExitPlanMode",
    "run": "Bash",
    "read": "ParsedAnswer",
}
START_MS = 1_794_700_800_000


def session(session_id: str = "s1", project: str | None = "shop", folder: str = "/shop") -> Session:
    at = "2026-11-15T00:00:00Z"
    return Session(
        *(session_id, project, folder, None, "main", None, "claude-code", "", 0, None, "active"),
        *(at, at, None, "", "", None),
    )


def steps(script: str, session_id: str = "s1") -> list[Step]:
    """The steps of a script; each a minute after the one before."""
    found: list[Step] = []
    for line in script.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            found[-1] = _detail(found[-1], line.strip())
        else:
            found.append(_step(line, len(found), session_id))
    return found


def _step(line: str, number: int, session_id: str) -> Step:
    word, _, text = line.partition(": ")
    word, _, agent = word.partition("@")
    at = f"2026-11-15T{number // 60:02}:{number % 60:02}:00.000Z"
    event = f"{START_MS + number * 60_000}-1-{session_id}{number:04x}"
    step = Step(event, session_id, at, KINDS[word], TOOLS.get(word, ""), agent=agent, text=text)
    if word == "read":
        return step._replace(text="", path=text)
    if word == "write":
        path, *lines = text.split()
        added, removed = (int(each[1:]) for each in lines) if lines else (0, 0)
        return step._replace(text="", path=path, added=added, removed=removed)
    if word == "run":
        return step._replace(exit_code=0)
    return step


def _detail(step: Step, line: str) -> Step:
    word, _, rest = line.partition(" ")
    match word:
        case "|":
            return step._replace(text=f"{step.text}\n{rest}")
        case "failed":
            return step._replace(ok=False, exit_code=int(rest or 1), passed=False)
        case "passed":
            return step._replace(passed=True)
        case "printed":
            return step._replace(output=f"{step.output}{rest}\n")
        case "finding:":
            place, code, message, test = (part.strip() for part in rest.split("|"))
            path, _, number = place.partition(":")
            finding = StepFinding(path, int(number) if number else None, code, message, test)
            return step._replace(findings=(*step.findings, finding))
        case "new" | "modified" | "deleted":
            kind, name, *signature = rest.split(" ", 2)
            change = SymbolChange(word, kind, name, " ".join(signature), 1)
            return step._replace(changes=(*step.changes, change))
        case "+" | "-":
            return step._replace(excerpt=f"{step.excerpt}{word}{rest}\n")
        case _:
            raise ValueError(line)
