"""From an event to a step, for every event of a client.

`tests/golden/claude_code/steps.json` shows the step of each sample of a real client.
`CTX_TEST_RENEW=1 pytest tests/capture/test_capture.py` writes it anew.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctx.agents.claude_code import payloads, tools
from ctx.agents.known_hosts import HOSTS
from ctx.capture import capture, capture_rules, event_store, steps
from ctx.capture.capture import DroppedEvent
from ctx.capture.capture_rules import EVERYTHING, CaptureRules
from ctx.capture.steps import Step, StepFinding, SymbolChange
from ctx.config.resolve import survey
from ctx.hook_files import spool
from ctx.hosts.events import Event, Heading
from ctx.layout import Place
from tests import effort
from tests.agents.claude_code.hook_processes import SAMPLES

STEPS = SAMPLES.parent / "steps.json"
RENEW = os.environ.get("CTX_TEST_RENEW") == "1"
AT = "2026-01-20T11:00:00Z"
ID = "1768906800123-4242-9f3a1c77"
ROOT = "/home/dev/shop"


def event(name: str, folder: str = ROOT, **said: Any) -> Event:
    """The event as it is stored, with long texts cut."""
    tool = said.get("tool_name")
    return stored_event(Heading(ID, "s", name, AT, folder, tool, said.get("tool_use_id")), said)


def stored_event(heading: Heading, said: Mapping[str, Any]) -> Event:
    """The event, restored from its row."""
    body = event_store.body(payloads.without_contents(said, heading.tool))
    return payloads.restore(heading, json.loads(body))


def tool_use(tool: str, response: Any = None, **given: Any) -> Event:
    return event("PostToolUse", tool_name=tool, tool_input=given, tool_response=response)


def command_run(command: str, response: Any = "", **said: Any) -> Event:
    given = {"command": command}
    return event("PostToolUse", tool_name="Bash", tool_input=given, tool_response=response, **said)


def failed_command(command: str, error: str, tool: str = "Bash") -> Event:
    given = {"command": command}
    return event("PostToolUseFailure", tool_name=tool, tool_input=given, error=error)


def step_or_reason(said: Event, rules: CaptureRules = EVERYTHING) -> dict[str, Any] | str:
    """The body of the step, or why there is none."""
    found = capture.step_of(said, rules, ROOT)
    return found.reason if isinstance(found, DroppedEvent) else json.loads(steps.body(found))


def rules(*settings: str, ignoring: str = "", tmp: str = ROOT) -> CaptureRules:
    if ignoring:
        with open(os.path.join(tmp, capture_rules.IGNORE_FILE), "w") as file:
            file.write(ignoring)
    config = survey("", None, {}, settings)
    return capture_rules.rules(
        config, Place(tmp, "shop", "current_task"), "/home/dev/.ctx", "/home/dev"
    )


def test_samples_become_the_expected_steps() -> None:
    found = {}
    words = {name: word for word, name in spool.EVENTS.items()}
    default = rules()
    for path in sorted(SAMPLES.glob("*.json")):
        word = words.get(path.stem.split(".")[0])
        if word in (None, spool.PRE_EDIT):
            continue
        heard = event_store.read(f"{ID}.{word}", path.read_bytes(), HOSTS)
        heard = stored_event(Heading(*heard[:7]), heard.payload)
        # None of the folders is a repository here.
        step = capture.step_of(heard, default, heard.folder)
        found[path.stem] = (
            {"status": "step", "reason": None, "body": json.loads(steps.body(step))}
            if isinstance(step, Step)
            else {"status": "dropped", "reason": step.reason, "body": None}
        )
    if RENEW:
        STEPS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(STEPS.read_text())


# What is said

NOTHING = "it is empty or private"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Make it faster.", {"kind": "prompt", "text": "Make it faster."}),
        ("/deploy now", {"kind": "prompt", "text": "/deploy now"}),
        ("/ is the root", {"kind": "prompt", "text": "/ is the root"}),
        ("a <private>b</private> c", {"kind": "prompt", "text": "a  c"}),
        ("<private>all of it", NOTHING),
        ("  \n", NOTHING),
        (None, NOTHING),
        ("/compact keep names", "it is a command of the client"),
        ("<task-notification>\n<task-id>b</task-id>", "the client wrote it"),
        ("<!-- ctx: 1 node, 9 tokens -->\n\nx\n\n<!-- ctx:end -->\n", "ctx injected it"),
        (
            "<system-reminder>SessionStart hook …</system-reminder>\nGo on.",
            {"kind": "prompt", "text": "Go on."},
        ),
    ],
)
def test_prompts(prompt: object, expected: object) -> None:
    assert step_or_reason(event("UserPromptSubmit", prompt=prompt)) == expected


def test_long_texts_keep_their_ends() -> None:
    step = capture.step_of(event("UserPromptSubmit", prompt="a" * 9_000 + "z"), EVERYTHING, ROOT)
    assert isinstance(step, Step)
    assert len(step.text) <= 4_000
    assert step.text.startswith("aaa")
    assert step.text.endswith("az")
    step = capture.step_of(event("Stop", last_assistant_message="b" * 15_000), EVERYTHING, ROOT)
    assert isinstance(step, Step)
    assert len(step.text) <= 8_000


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (event("Stop", last_assistant_message="Done."), {"kind": "say", "text": "Done."}),
        (event("AssistantMessage", text="I look."), {"kind": "say", "text": "I look."}),
        (
            event(
                "Stop", last_assistant_message='A.\n\n<ctx:remember type="fact">x</ctx:remember>'
            ),
            {"kind": "say", "text": "A."},
        ),
        (
            event("Stop", last_assistant_message="<ctx:status/>"),
            "it contains only injected or private text",
        ),
        (event("Stop"), "it is empty"),
        (
            event("SubagentStop", agent_id="a1", agent_type="x", last_assistant_message="Found."),
            {"kind": "say", "agent": "a1", "text": "Found."},
        ),
        (
            event("SubagentStop", agent_id="a1", agent_type="", last_assistant_message="Summary"),
            "the client wrote it",
        ),
        (event("SessionStart", source="startup"), {"kind": "mark", "text": "began"}),
        (event("SessionStart", source="resume"), {"kind": "mark", "text": "went on"}),
        (event("SessionEnd", reason="other"), {"kind": "mark", "text": "ended"}),
        (event("PreCompact", trigger="auto"), {"kind": "mark", "text": "compacted"}),
        (event("UserInterrupt"), {"kind": "mark", "text": "interrupted"}),
        (event("StopFailure", error="x"), {"kind": "mark", "text": "failed"}),
        (event("Notification", message="x"), "events of this kind are not captured"),
    ],
)
def test_messages_and_markers_become_steps(said: Event, expected: object) -> None:
    assert step_or_reason(said) == expected


# Commands

FAILING = """\
============================= FAILURES =============================
____________________________ test_total ____________________________
    def test_total():
>       assert total([1, 2]) == 3
E       assert 2 == 3

tests/test_shop.py:9: AssertionError
===================== short test summary info ======================
FAILED tests/test_shop.py::test_total - assert 2 == 3
1 failed, 4 passed in 0.05s
"""


def test_a_failed_command_keeps_its_error_and_findings() -> None:
    step = step_or_reason(failed_command("pytest -q", f"Exit code 1\n{FAILING}"))
    assert isinstance(step, dict)
    output = step.pop("output")
    assert output.startswith("====")
    assert output.endswith("in 0.05s")
    assert step == {
        "kind": "command",
        "text": "pytest -q",
        "ok": False,
        "exit_code": 1,
        "passed": False,
        "findings": [
            ["tests/test_shop.py", 9, "", "assert 2 == 3", "tests/test_shop.py::test_total"]
        ],
    }


def test_a_step_names_few_files_and_has_few_bytes() -> None:
    errors = "\n".join(f'src/part{n}.py:{n}: error: Name "x" is not defined' for n in range(1, 7))
    said = failed_command("mypy src", f"Exit code 1\n{errors}\nFound 6 errors in 6 files")
    findings = capture_of(said, EVERYTHING).findings
    assert len(findings) == 6
    few = capture_of(said, rules("ingestion.max_files_per_step=2"))
    assert few.findings == findings[:2]
    small = capture_of(said, rules("ingestion.max_bytes_per_step=120"))
    assert small.text == "mypy src"
    assert 0 < len(small.findings) < 6
    texts = [small.text, small.output, *(t for f in small.findings for t in f if type(t) is str)]
    assert sum(map(len, texts)) <= 120
    long = event("UserPromptSubmit", prompt="é" * 2_000)
    assert capture_of(long, rules("ingestion.max_bytes_per_step=101")).text == "é" * 50
    began = event("SessionStart", source="startup")
    assert capture_of(began, rules("ingestion.max_bytes_per_step=1")).text == "began"


def capture_of(said: Event, how: CaptureRules) -> Step:
    step = capture.step_of(said, how, ROOT)
    assert isinstance(step, Step)
    return step


def test_tests_that_fail_although_the_command_does_not() -> None:
    step = capture.step_of(
        command_run("pytest -q | tail -20 || true", {"stdout": FAILING, "stderr": ""}),
        EVERYTHING,
        ROOT,
    )
    assert isinstance(step, Step)
    assert (step.ok, step.exit_code, step.passed) == (True, 0, False)
    assert step.findings == (
        StepFinding("tests/test_shop.py", 9, "", "assert 2 == 3", "tests/test_shop.py::test_total"),
    )
    assert "assert 2 == 3" in step.output


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (command_run("ls -la", {"stdout": "a\nb"}), {"text": "ls -la", "exit_code": 0}),
        (
            command_run("pytest -q", {"stdout": "...\n12 passed, 1 skipped in 0.41s"}),
            {"text": "pytest -q", "exit_code": 0, "passed": True, "output": "12 passed, 1 skipped"},
        ),
        (
            command_run("npx tsc --noEmit"),
            {"text": "npx tsc --noEmit", "exit_code": 0, "passed": True},
        ),
        (
            event(
                *("PostToolUse",),
                tool_name="Bash",
                tool_input={"command": "pytest"},
                tool_output={"stdout": "3 passed in 0.1s"},
            ),
            {"text": "pytest", "exit_code": 0, "passed": True, "output": "3 passed"},
        ),
        (command_run("tsc | head"), {"text": "tsc | head", "exit_code": 0}),
        (command_run("cat log.txt", {"stdout": FAILING}), {"text": "cat log.txt", "exit_code": 0}),
        (command_run("sleep 9", {"backgroundTaskId": "b1"}), {"text": "sleep 9"}),
        (
            command_run("make", {"stdout": "half", "interrupted": True}),
            {"text": "make", "ok": False, "output": "half"},
        ),
        (command_run("make", "plain text of an older client"), {"text": "make", "exit_code": 0}),
        (
            command_run("cat > a.txt <<'EOF'\nmany\nlines\nEOF\necho done"),
            {"text": "cat > a.txt <<'EOF' …\necho done", "exit_code": 0},
        ),
        (failed_command("false", "Exit code 1"), {"text": "false", "ok": False, "exit_code": 1}),
        (
            failed_command("make", "Exit code 2\n\x1b[31mno rule\x1b[0m"),
            {"text": "make", "ok": False, "exit_code": 2, "output": "no rule"},
        ),
        (
            failed_command("x", "Exit code 1\na <private>b</private>"),
            {"text": "x", "ok": False, "exit_code": 1, "output": "a"},
        ),
        (failed_command("rm -rf /", "Permission to use Bash has been denied."), "it was not run"),
        (command_run("ctx recall retries | head -5"), "it calls ctx itself"),
        (command_run("cd /x && ctx add note 'x'"), "it calls ctx itself"),
        (command_run("python -m ctx status"), "it calls ctx itself"),
        (
            command_run("make test && ctx add note 'all of it'", {"stdout": "1 passed"}),
            {"text": "make test", "exit_code": 0},
        ),
        (
            command_run('git commit -m "ctx; ctx now"'),
            {"text": 'git commit -m "ctx; ctx now"', "exit_code": 0, "message": "ctx; ctx now"},
        ),
        (command_run(""), "it is empty"),
        (
            failed_command("cat .env", "Exit code 1\nKEY=1"),
            {"text": "cat .env", "ok": False, "exit_code": 1},
        ),
    ],
)
def test_commands(said: Event, expected: dict[str, Any] | str) -> None:
    whole = {"kind": "command", **expected} if isinstance(expected, dict) else expected
    assert step_or_reason(said) == whole


_HALVES = "gh" + "p_", "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.parametrize(
    "between",
    [*("\x1b[0m", "\x1b[m\x1b[K", "<private>x</private>"), "<system-reminder>z</system-reminder>"],
)
def test_a_secret_split_by_removed_text_is_redacted(between: str) -> None:
    secret = between.join(_HALVES)
    for said in (
        failed_command("make", f"Exit code 1\nError: \x1b[01;31m\x1b[K{secret} is no key"),
        failed_command("pytest -q", f"Exit code 1\n{FAILING.replace('assert 2 == 3', secret)}"),
        event("UserPromptSubmit", prompt=f"Use {secret} please"),
        event("Stop", last_assistant_message=f"I used {secret}."),
        tool_use("TodoWrite", todos=[{"content": f"Use {secret}", "status": "pending"}]),
        tool_use("Write", {"type": "create"}, file_path=f"{ROOT}/a.txt", content=f"x {secret}\n"),
        failed_command(f"deploy --token {secret}", "Exit code 1"),
        command_run(f'git commit -m "Use {secret}"'),
    ):
        step = step_or_reason(said)
        assert isinstance(step, dict)
        assert _HALVES[1] not in json.dumps(step)


def test_private_text_across_several_fields_is_removed() -> None:
    todos = [{"content": "a <private> hidden"}, {"content": "hidden </private> b"}]
    step = step_or_reason(tool_use("TodoWrite", todos=todos))
    assert step == {"kind": "plan", "text": "[ ] a\n[ ] b"}
    response = {"filePath": f"{ROOT}/b.txt", "originalFile": "x <private> a\n"}
    edit = {"old_string": "x <private> a", "new_string": "hidden </private> y"}
    step = step_or_reason(tool_use("Edit", response, file_path=f"{ROOT}/b.txt", **edit))
    assert isinstance(step, dict)
    assert "hidden" not in json.dumps(step)


def test_a_secret_split_by_colour_codes_is_redacted() -> None:
    error = "Exit code 1\n" + "\x1b[m".join(_HALVES)
    body = event_store.body({"error": error, "tool_input": {"command": "make"}})
    assert _HALVES[1] not in body


# Files

BEFORE = "def total(items):\n    return sum(items)\n\n\ndef gone():\n    pass\n"
AFTER = "def total(items, tax):\n    return sum(items) + tax\n\n\ndef made():\n    pass\n"
CHANGES = (
    SymbolChange("modified", "function", "total", "def total(items, tax)", 1),
    SymbolChange("deleted", "function", "gone", "def gone()", 5),
    SymbolChange("new", "function", "made", "def made()", 5),
)
PATH = f"{ROOT}/src/shop.py"


def edits() -> list[dict[str, str]]:
    return [
        {
            "old_string": "(items):\n    return sum(items)",
            "new_string": "(items, tax):\n    return sum(items) + tax",
        },
        {"old_string": "gone", "new_string": "made"},
    ]


@pytest.mark.parametrize(
    "said",
    [
        tool_use(
            "Write", {"type": "update", "originalFile": BEFORE}, file_path=PATH, content=AFTER
        ),
        tool_use(
            "Edit", {"originalFile": BEFORE}, file_path=PATH, old_string=BEFORE, new_string=AFTER
        ),
        tool_use("MultiEdit", {"originalFileContents": BEFORE}, file_path=PATH, edits=edits()),
        tool_use("MultiEdit", {"originalFile": BEFORE}, file_path=PATH, edits=edits()),
    ],
)
def test_a_write_step_has_counts_and_symbol_changes(said: Event) -> None:
    step = capture.step_of(said, EVERYTHING, ROOT)
    assert isinstance(step, Step)
    assert (step.kind, step.path, step.added, step.removed) == ("write", "src/shop.py", 3, 3)
    assert set(step.changes) == set(CHANGES)
    assert step.excerpt.splitlines()[:2] == ["-def total(items):", "-    return sum(items)"]


def test_a_new_file() -> None:
    said = tool_use(
        "Write", {"type": "create", "originalFile": None}, file_path=PATH, content=AFTER
    )
    step = capture.step_of(said, EVERYTHING, ROOT)
    assert isinstance(step, Step)
    assert [(each.change, each.name) for each in step.changes] == [
        ("new", "total"),
        ("new", "made"),
    ]
    assert (step.added, step.removed) == (6, 0)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Without the file as it was, nobody knows what the lines belong to.
        (
            tool_use("Edit", {}, file_path=PATH, old_string="a", new_string="b\nc"),
            {"path": "src/shop.py", "added": 2, "removed": 1, "excerpt": "-a\n+b\n+c"},
        ),
        (
            tool_use("Write", {"type": "update"}, file_path=PATH, content="x = 1\n"),
            {"path": "src/shop.py", "added": 1, "excerpt": "+x = 1"},
        ),
        (
            tool_use("NotebookEdit", {}, notebook_path=f"{ROOT}/a.ipynb", new_source="x = 1"),
            {"path": "a.ipynb", "added": 1, "excerpt": "+x = 1"},
        ),
        # Broken code would seem to have lost what stands behind the mistake.
        (
            tool_use("Write", {"originalFile": BEFORE}, file_path=PATH, content="def total(:\n"),
            {
                "path": "src/shop.py",
                "added": 1,
                "removed": 6,
                "excerpt": "-def total(items):\n-    return sum(items)\n-def gone():\n-    pass\n"
                "+def total(:",
            },
        ),
        (
            tool_use("Write", {}, file_path=f"{ROOT}/.env", content="KEY=secret-value"),
            {"path": ".env"},
        ),
        (
            tool_use("Write", {}, file_path="/elsewhere/notes.txt", content="a"),
            {"path": "/elsewhere/notes.txt", "added": 1, "excerpt": "+a"},
        ),
        (
            tool_use("Write", {}, file_path=PATH, content="a\n<private>b\n</private>c"),
            {"path": "src/shop.py", "added": 2, "excerpt": "+a\n+c"},
        ),
        (
            tool_use("Edit", {}, file_path=PATH, old_string="a", new_string="a"),
            "it changes nothing",
        ),
        (tool_use("Edit", {}, file_path=PATH), "it does not contain what was written"),
        (
            tool_use("Write", {}, file_path=f"{ROOT}/.ctx/x.md", content="a"),
            "it belongs to ctx itself",
        ),
    ],
)
def test_writes(said: Event, expected: dict[str, Any] | str) -> None:
    whole = {"kind": "write", **expected} if isinstance(expected, dict) else expected
    assert step_or_reason(said) == whole


def test_a_file_that_is_read() -> None:
    file = {"filePath": PATH, "content": BEFORE, "numLines": 6, "startLine": 1, "totalLines": 6}
    said = tool_use("Read", {"type": "text", "file": file}, file_path=PATH)
    assert BEFORE not in json.dumps(said.payload)
    assert step_or_reason(said) == {"kind": "read", "path": "src/shop.py"}
    part = {**file, "startLine": 10, "numLines": 5, "totalLines": 90}
    said = tool_use("Read", {"file": part}, file_path=PATH, offset=10, limit=5)
    assert step_or_reason(said) == {"kind": "read", "path": "src/shop.py", "text": "lines 10-14"}
    # Older clients gave the text alone.
    assert step_or_reason(tool_use("Read", BEFORE, file_path=PATH)) == {
        "kind": "read",
        "path": "src/shop.py",
    }
    assert (
        step_or_reason(failed_command("", "File does not exist.", tool="Read")) == "the call failed"
    )


# Other tools


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            tool_use("Task", {}, description="Look", prompt="Find the cause."),
            {"kind": "agent", "text": "Look\nFind the cause."},
        ),
        (
            tool_use("TaskCreate", {}, subject="A", description="do A"),
            {"kind": "plan", "text": "[ ] A: do A"},
        ),
        (
            tool_use("TaskUpdate", {}, taskId="1", status="completed"),
            {"kind": "plan", "text": "[x] task 1"},
        ),
        (
            tool_use(
                "TodoWrite", {}, todos=[{"content": "A", "status": "completed"}, {"content": "B"}]
            ),
            {"kind": "plan", "text": "[x] A\n[ ] B"},
        ),
        (tool_use("ExitPlanMode", {}, plan="First A."), {"kind": "plan", "text": "First A."}),
        (
            tool_use("AskUserQuestion", {"answers": {"Which store?": "SQLite"}}),
            {"kind": "plan", "text": "Which store? SQLite"},
        ),
        (tool_use("WebSearch", {}, query="sqlite wal"), {"kind": "search", "text": "sqlite wal"}),
        (
            tool_use("WebFetch", {}, url="https://x.org/a"),
            {"kind": "search", "text": "https://x.org/a"},
        ),
        (
            tool_use("Skill", {}, skill="demo", args="abc"),
            {"kind": "plan", "text": "skill demo abc"},
        ),
        (tool_use("Skill", {}, skill="ctx"), "it calls ctx itself"),
        (tool_use("mcp__ctx__recall", [], query="x"), "it calls ctx itself"),
        (tool_use("mcp__demo__find", [], query="q1"), {"kind": "search", "text": "find: q1"}),
        (tool_use("Grep", {}, pattern="x"), "the tool is excluded"),
        (tool_use("TaskOutput", {}, task_id="x"), "the tool is excluded"),
        (tool_use("SomethingNew", {}, x=1), "calls of this tool are not captured"),
    ],
)
def test_other_tools(said: Event, expected: object) -> None:
    assert step_or_reason(said, rules()) == expected


# Rules


def test_events_about_ignored_paths_are_dropped(tmp_path: Any) -> None:
    root = str(tmp_path)

    def step(said: Event, found: CaptureRules) -> str:
        result = capture.step_of(said._replace(folder=root), found, root)
        return result.reason if isinstance(result, DroppedEvent) else "taken"

    write = tool_use("Write", {}, file_path=f"{root}/secret/a.py", content="a")
    read = tool_use("Read", {}, file_path=f"{root}/keep/a.log")
    run = command_run("cat secret/a.py")
    every = [write, read, run]
    plain = rules(tmp=root)
    assert [step(each, plain) for each in every] == ["taken"] * 3
    named = rules(tmp=root, ignoring="secret/\n*.log\n!keep/a.log\n[\n")
    assert [step(each, named) for each in every] == [
        "the path is excluded",
        "taken",
        "the path is excluded",
    ]
    # What a person leaves out, a project's file cannot bring back.
    both = rules('capture.ignore_paths=["*.log"]', tmp=root)
    assert step(read, both) == "the path is excluded"
    assert step(read, rules("capture.ignore_projects=sh*", tmp=root)).startswith("the project is")
    assert step(read, rules("capture.ignore_projects=shopping", tmp=root)) == "taken"
    assert step(read, rules(f"capture.ignore_projects={root}", tmp=root)).startswith("the project")
    assert step(read, rules("capture.enabled=false", tmp=root)) == "capture.enabled is false"
    assert step(tool_use("mcp__x__y", []), rules('capture.ignore_tools=["mcp__*"]', tmp=root)) == (
        "the tool is excluded"
    )


@pytest.mark.parametrize(
    "command",
    [
        *(
            "cat secret/notes.txt",
            "cat ./secret/* ",
            "cd secret && cat notes.txt",
            "pytest secret/",
        ),
        *("(cd secret && make)", "make -C secret", "cat<secret/notes.txt", "cat sec*/notes.txt"),
        *(
            "cat {secret,x}/notes.txt",
            "git show HEAD:secret/notes.txt",
            "./tool -fsecret/notes.txt",
        ),
        *(
            "curl -d @secret/notes.txt http://x",
            "docker run -v ./secret:/x y",
            "cat link/notes.txt",
        ),
        *("python -c \"open('secret/notes.txt')\"", "./tool --file=secret/notes.txt", "ls secret"),
        *(
            'cat "$PWD/secret/notes.txt"',
            "F=secret/notes.txt; cat $F",
            "cat `echo secret/notes.txt`",
        ),
        *("pytest secret/notes.txt::test_x", "python - <<E\nopen('secret/notes.txt')\nE"),
        *("cd sub && cat ../secret/notes.txt", "cd sub && cat hidden.txt"),
    ],
)
def test_commands_that_name_an_ignored_path_are_dropped(tmp_path: Any, command: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "notes.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    named = rules(tmp=str(tmp_path), ignoring="secret/\nsub/hidden.txt\n")
    said = failed_command(command, "Exit code 1\nnot to be kept")._replace(folder=str(tmp_path))
    assert capture.step_of(said, named, str(tmp_path)) == DroppedEvent("the path is excluded")


def test_an_ignored_project_is_ignored_from_every_folder(tmp_path: Any) -> None:
    root, other = str(tmp_path / "shop"), str(tmp_path / "other")
    found = rules(f"capture.ignore_projects={other}")
    for said in (
        failed_command(f"cat {other}/a.py", "Exit code 1\nnot to be kept"),
        failed_command("cat ../other/a.py", "Exit code 1\nnot to be kept"),
        tool_use("Write", {}, file_path=f"{other}/a.py", content="a"),
        tool_use("Read", {}, file_path="../other/a.py"),
    ):
        step = capture.step_of(said._replace(folder=root), found, root)
        assert step == DroppedEvent("the path is excluded")


def test_a_failed_go_test_is_located_in_its_file(tmp_path: Any) -> None:
    """The report names the module instead of the folder."""
    (tmp_path / "internal" / "limiter").mkdir(parents=True)
    (tmp_path / "internal" / "limiter" / "limiter_test.go").write_text("package limiter\n")
    printed = (
        "--- FAIL: TestAllow (0.00s)\n    {}:22: 103 requests allowed, want 100\nFAIL\n"
        "FAIL\texample.org/gate/internal/limiter\t0.035s\nFAIL\n"
    )
    for name, path in (("limiter_test.go", "internal/limiter/limiter_test.go"), ("testing.go", "")):
        said = failed_command("go test ./...", f"Exit code 1\n{printed.format(name)}")
        step = capture.step_of(
            said._replace(folder=str(tmp_path)), rules(tmp=str(tmp_path)), str(tmp_path)
        )
        assert isinstance(step, Step)
        assert [each.path for each in step.findings] == [path]


def test_output_lines_about_ignored_paths_are_dropped(tmp_path: Any) -> None:
    named = rules(tmp=str(tmp_path), ignoring="secret/\n")
    printed = "secret/a.py:1: error: not to be kept\nsrc/b.py:2: error: Bad  [misc]\n"
    said = failed_command("mypy .", f"Exit code 1\n{printed}")._replace(folder=str(tmp_path))
    step = capture.step_of(said, named, str(tmp_path))
    assert isinstance(step, Step)
    assert step.output == "src/b.py:2: error: Bad  [misc]"
    assert [each.path for each in step.findings] == ["src/b.py"]
    # A word that is no file is only a word.
    other = failed_command("grep -r secret src", "Exit code 1")._replace(folder=str(tmp_path))
    assert isinstance(capture.step_of(other, named, str(tmp_path)), Step)


# Whatever is said

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("file_path", "content", "command", "edits", "file", "x")), inner
        )
    ),
    max_leaves=10,
)
TOOLS = sorted([*tools._CALLS, "Bash", "mcp__a__b", "Other"])
NAMES = sorted([*spool.EVENTS.values(), *capture._EVENTS])
FIELDS = ("prompt", "last_assistant_message", "text", "tool_input", "tool_response", "error")


@settings(max_examples=effort.times(40), deadline=None, derandomize=True)
@given(
    st.sampled_from(NAMES),
    st.none() | st.sampled_from(TOOLS),
    st.dictionaries(st.sampled_from((*FIELDS, "agent_id", "tool_output", "source")), JSON),
    st.sampled_from((ROOT, "", "a", "/x\0y")),
)
@example("PostToolUse", "Write", {"tool_input": {"file_path": "\0", "content": "a"}}, "/x\0y")
def test_any_event_gives_a_step_or_a_reason(
    name: str, tool: str | None, said: dict[str, Any], folder: str
) -> None:
    heading = Heading(ID, "s", name, AT, folder, tool, None)
    raw, stored = payloads.restore(heading, said), stored_event(heading, said)
    for each in (raw, stored):
        found = capture.step_of(each, EVERYTHING, ROOT)
        if isinstance(found, Step):
            row = (ID, "s", AT, tool, None, steps.body(found))
            assert steps.read(row) == found
        else:
            assert found.reason


def test_a_recap_is_kept_without_its_boilerplate() -> None:
    text = (
        "This session is being continued from a previous conversation.\nSummary:\n1. The user"
        " wants tabs.\n\nIf you need specific details from before compaction, read the transcript."
    )
    assert step_or_reason(event("ConversationRecap", text=text)) == {
        "kind": "recap",
        "text": "1. The user wants tabs.",
    }
    assert (
        step_or_reason(event("ConversationRecap", text="<private>x</private>")) == "it says nothing"
    )


def test_a_title_is_one_short_line_without_secrets() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = f"Rotate {secret}\nat last"
    assert step_or_reason(event("SessionTitle", text=text)) == {
        "kind": "title",
        "text": "Rotate [redacted:github-token] at last",
    }
    body = step_or_reason(event("SessionTitle", text="x" * 500, titled_by="user"))
    assert body == {"kind": "name", "text": "x" * 120}
    assert step_or_reason(event("SessionTitle", text=" ")) == "it is empty or private"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('git commit -m "Round half up"', "Round half up"),
        ("cd a && git -C b commit -qam 'One' -m 'Because two'", "One\n\nBecause two"),
        (
            (
                "git commit -m \"$(cat <<'EOF'\nfix: lock once\n\nIt was taken twice.\n\n"
                'Co-Authored-By: A <a@b>\nEOF\n)"'
            ),
            "fix: lock once\n\nIt was taken twice.",
        ),
        ("git commit --amend --no-edit", ""),
        ("echo commit -m 'x'", ""),
    ],
)
def test_a_commit_message_is_read_from_the_command(command: str, message: str) -> None:
    body = step_or_reason(command_run(command))
    assert isinstance(body, dict)
    assert body.get("message", "") == message
