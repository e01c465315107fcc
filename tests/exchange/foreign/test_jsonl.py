from pathlib import Path

from ctx import ids
from ctx.exchange.foreign import jsonl
from ctx.exchange.foreign.foreign_items import Item, LocatedDraft, SkippedItem
from ctx.memory.model import Draft


def read(*lines: str | bytes) -> list[Item]:
    return list(jsonl.items(line.encode() if isinstance(line, str) else line for line in lines))


def one(line: str) -> Draft:
    (item,) = read(line)
    assert isinstance(item, LocatedDraft)
    assert item.place == "line 1"
    return item.draft


def test_every_field_of_a_line_is_read() -> None:
    assert one(
        '{"id": "01HM5Q0000AAAAAAAAAAAAAAAA", "type": "decision", "content": "We use SQLite",'
        ' "summary": "SQLite", "tags": ["project:shop", "a b"], "metadata": {"why": "simple"},'
        ' "created_at": "2024-01-15T12:00:00+02:00", "updated_at": 1705399200000, "author": "me"}'
    ) == Draft(
        id="01HM5Q0000AAAAAAAAAAAAAAAA",  # type: ignore[arg-type]
        type="decision",
        content="We use SQLite",
        created_at="2024-01-15T10:00:00Z",
        updated_at="2024-01-16T10:00:00Z",
        summary="SQLite",
        tags=("project:shop", "a-b"),
        metadata={"author": "me", "why": "simple"},
    )


def test_content_alone_is_enough() -> None:
    draft = one('{"content": "A fact"}')
    assert draft == Draft(draft.id, "fact", "A fact", "", "")
    assert ids.is_ulid(draft.id)


def test_the_id_comes_from_the_line_or_from_its_content() -> None:
    assert one('{"content": "A"}').id == one('{"tags": ["new"], "content": " A "}').id
    assert one('{"content": "A"}').id != one('{"content": "B"}').id
    assert one('{"content": "A"}').id != one('{"content": "A", "type": "task"}').id
    assert one('{"id": 7, "content": "A"}').id == one('{"id": "7", "content": "B"}').id


def test_bad_lines_are_reported_by_number() -> None:
    deep = '{"content": ' + "[" * 100_000 + "]" * 100_000 + "}"
    items = read("\ufeff{}", "", "nonsense", b'{"content": "\xff"}', '{"content": 1}', "[]", deep)
    assert items == [
        SkippedItem("line 1", "it has no content"),
        SkippedItem("line 3", "it is not a JSON object"),
        SkippedItem("line 4", "it is not UTF-8 at its byte 14"),
        SkippedItem("line 5", "it has no content"),
        SkippedItem("line 6", "it is not a JSON object"),
        SkippedItem("line 7", "it is not a JSON object"),
    ]
    assert read('{"content": "x", "metadata": {"a": NaN}}')[0] == SkippedItem(
        "line 1", "it is not a JSON object"
    )


def test_a_line_with_invalid_fields_is_kept() -> None:
    draft = one(
        '{"content": "x", "type": 5, "tags": "a, b,tier:hot", "metadata": [1], "created_at": true}'
    )
    assert (draft.type, draft.tags, draft.created_at) == ("fact", ("a", "b", "tier-hot"), "")
    assert one('{"content": "x", "type": "rule"}')[1:2] == ("pattern",)


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"content": "{number}"}}\n' for number in range(2000)) + "{")
    with jsonl.reading(str(path)) as reading:
        assert reading.total == 2000
        assert len(list(reading.items)) == 2001
