"""Recent work, within a share of the budget."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ctx import clock, tokens
from ctx.ids import NodeId, derived_ulid, short
from ctx.memory.model import Node
from ctx.narrative import log_files, markdown_blocks
from ctx.narrative.narrative_scan import GivenNarrative
from ctx.packs import recent_work
from ctx.packs.prompt_pack import Chunk
from tests.packs.packs import DAY_MS, NOW_MS

TODAY, YESTERDAY, LONG_AGO = (clock.iso(NOW_MS - n * DAY_MS)[:10] for n in (0, 1, 9))
TASK = Node(
    NodeId(derived_ulid(NOW_MS, "task")),
    *("task", "Shorten it\n\nBy half.", None, (), 9, None, "", ""),
    {},
)


def narrative(folder: Path) -> GivenNarrative:
    (folder / "log").mkdir(parents=True, exist_ok=True)
    for date, said in ((TODAY, "Did this"), (YESTERDAY, "Did that"), (LONG_AGO, "Was born")):
        entry = log_files.note(f"{said}\n\nAnd more about it.", NOW_MS, "Ada", "")
        (folder / "log" / f"{date}-1005-w4hz.md").write_text(entry)
    return GivenNarrative(str(folder), set)


def test_the_active_task_and_the_last_days_are_shown(tmp_path: Path) -> None:
    folder = narrative(tmp_path)
    assert recent_work.recent_work(folder, TASK, 7, NOW_MS, 1_000).text == (
        "## Active task\n\nShorten it\n\nBy half.\n\n"
        f"## {TODAY}\n\n## 10:05 Did this\n\n*Ada*\n\nAnd more about it.\n\n"
        f"## {YESTERDAY}\n\n## 10:05 Did that\n\n*Ada*\n\nAnd more about it."
    )
    assert "Was born" in recent_work.recent_work(folder, None, 30, NOW_MS, 1_000).text
    nowhere = GivenNarrative(str(tmp_path / "nowhere"), set)
    for where, days in ((folder, 0), (None, 7), (nowhere, 7)):
        assert recent_work.recent_work(where, None, days, NOW_MS, 1_000).text == ""


def test_long_text_is_cut_at_a_line(tmp_path: Path) -> None:
    folder = narrative(tmp_path)
    long = TASK._replace(content="Shorten it\n" + "\n".join(f"- step {n}" for n in range(100)))
    said = recent_work.recent_work(folder, long, 7, NOW_MS, 100).text
    assert said.startswith("## Active task\n\nShorten it\n- step 0\n")
    assert "\n…\n\n## " in said or said.endswith("\n…")


def test_stored_answers_are_left_out_by_title(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    lines = [
        "+ source 01M7GX2E7ZCG: Answer of m to: Why? (answer)",
        "> source 01M7GX2E7ZCG MENTIONS a",
    ]
    only, more = [("Changes", lines)], [("Changes", lines), ("Files", ["a.py"])]
    entries = {
        f"{YESTERDAY}-0900": log_files.note("Answer of m to: Why?\n\nSo it is.", NOW_MS, "Ada", ""),
        f"{TODAY}-1000": log_files.render(
            log_files.Entry("Answer of m to: Why?", NOW_MS, "Ada", "", "", only)
        ),
        f"{TODAY}-1001": log_files.render(
            log_files.Entry("Answer of m to: When?", NOW_MS, "Ada", "", "", more)
        ),
        f"{TODAY}-1002": log_files.note("Answers of all\n\nThey differ.", NOW_MS, "Ada", ""),
    }
    for name, text in entries.items():
        (tmp_path / "log" / f"{name}-w4hz.md").write_text(text)
    said = recent_work.recent_work(GivenNarrative(str(tmp_path), set), TASK, 7, NOW_MS, 1_000).text
    assert "So it is." in said
    assert recent_work.without_entries(said, "Answer of ") == (
        "## Active task\n\nShorten it\n\nBy half.\n\n"
        f"## {TODAY}\n\n## 10:01 Answer of m to: When?\n\n*Ada*\n\n### Files\n\n- a.py\n\n"
        "## 10:02 Answers of all\n\n*Ada*\n\nThey differ."
    )
    assert recent_work.without_entries("", "Answer of ") == ""


def test_chunks_of_the_pack_are_not_repeated() -> None:
    node = NodeId(derived_ulid(NOW_MS, "decision"))
    lines = (
        f"+ decision {short(node)}: Wait a while (tier:reference)",
        f"+ task {short(TASK.id)}: Shorten it",
    )
    sections = [("Changes", lines), ("Decisions", ("Wait a while",)), ("Files", ("a.py",))]
    entry = log_files.Entry("Did this", NOW_MS, "Ada", "s1", "Did this", sections)
    log_text = (
        f"## 10:05 Did this\n\n{markdown_blocks.nest_headings(log_files.render(entry), 1)}".rstrip()
    )
    lately = recent_work.RecentWork("## Active task\n\nShorten it", log_text)
    place = None, None, None, node
    chunk = Chunk(
        "Decision by Eve: Wait a while", node, "Because.", 0.5, "Decision", 9, *place, (), ()
    )
    of_task = chunk._replace(title="Task: Shorten it", object_id=TASK.id)
    assert recent_work.without_chunks(lately, TASK, ()) == lately.text
    one = recent_work.without_chunks(lately, TASK, [chunk])
    assert "Wait a while" not in one
    assert "### Decisions" not in one
    assert one.startswith("## Active task\n\nShorten it\n\n## 10:05")
    assert one.endswith(
        f"### Changes\n\n- `+` task {short(TASK.id)}: Shorten it\n\n### Files\n\n- a.py"
    )
    both = recent_work.without_chunks(lately, TASK, [chunk, of_task])
    assert "Shorten it" not in both
    assert "### Changes" not in both
    assert both.endswith("-->\n\n### Files\n\n- a.py")


@given(st.integers(0, 300), st.text(alphabet="ab \n日#", max_size=200))
def test_recent_work_stays_within_its_share(room: int, content: str) -> None:
    said = recent_work.recent_work(None, TASK._replace(content=content), 7, NOW_MS, room).text
    assert tokens.estimate(said) <= max(room, 0)
