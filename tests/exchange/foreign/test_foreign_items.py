import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx import ids
from ctx.errors import UsageError
from ctx.exchange.foreign import foreign_items
from ctx.memory import model

MS = 1_705_312_800_000


@pytest.mark.parametrize(
    "value",
    [
        MS,
        MS // 1000,
        MS / 1000,
        MS * 1000,
        str(MS),
        "2024-01-15T10:00:00Z",
        "2024-01-15T10:00:00.000000000Z",
        "2024-01-15 10:00:00",
        "2024-01-15T11:00:00+01:00",
        b"2024-01-15T10:00:00Z",
    ],
)
def test_times_are_read_in_many_formats(value: object) -> None:
    assert foreign_items.moment(value) == MS


@pytest.mark.parametrize(
    "value", [None, "", 0, -5, True, "soon", float("nan"), float("inf"), 10**400, "9" * 400, []]
)
def test_invalid_times_are_ignored(value: object) -> None:
    assert foreign_items.moment(value) is None
    assert foreign_items.moment(value, MS) == MS


@given(st.text())
def test_a_tag_is_normalised(word: str) -> None:
    found = foreign_items.tag(word)
    if found is not None:
        assert model.tag(found) == found
    try:
        assert model.tag(word) == found
    except UsageError:
        return


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_can_be_stored(text: str) -> None:
    found, count = foreign_items.clean_text(text)
    found.encode("utf-8")
    assert "\0" not in found
    assert len(found) == len(text)
    assert sum(a != b for a, b in zip(text, found, strict=True)) == count


def test_nested_values_are_cleaned() -> None:
    value, count = foreign_items.cleaned_value({"a\0": ["\ud800", {"b": "\0\0"}], "n": 1})
    assert (value, count) == ({"a\ufffd": ["\ufffd", {"b": "\ufffd\ufffd"}], "n": 1}, 4)
    deep: object = "x"
    for _ in range(400):
        deep = [deep]
    found, _ = foreign_items.cleaned_value(deep)
    for _ in range(50):
        (found,) = found
    assert isinstance(found, str)


def test_values_without_a_json_form_are_kept_as_text() -> None:
    inf, nan = float("inf"), float("nan")
    odd = {"a": [inf, -inf, nan, 0.5, True, None, 10**400], "b": b"x\xff", "c": {"d": (1, {2})}}
    value, count = foreign_items.cleaned_value(odd)
    assert value == {
        "a": ["inf", "-inf", "nan", 0.5, True, None, 10**400],
        "b": "x\ufffd",
        "c": {"d": [1, "{2}"]},
    }
    assert count == 1


def test_an_id_can_be_given_its_time_later() -> None:
    without = foreign_items.derived_id(None, "a", 1)
    assert foreign_items.is_untimed(without)
    assert foreign_items.id_with_time(without, MS) == foreign_items.derived_id(MS, "a", 1)
    assert not foreign_items.is_untimed(foreign_items.id_with_time(without, MS))
    assert all(ids.is_ulid(foreign_items.derived_id(ms, "x")) for ms in (None, 0, MS, 1 << 60))
