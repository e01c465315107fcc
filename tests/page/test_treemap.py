"""The heat map of files."""

from xml.etree import ElementTree

import pytest

from ctx.operations.code_folder import FileArea
from ctx.operations.code_trouble import NO_TROUBLE, Trouble
from ctx.page import treemap


def drawn(areas: list[FileArea], folder: str = "") -> list[ElementTree.Element]:
    text = str(treemap.heat_map(areas, folder, lambda path: f"/f?{len(path)}"))
    return list(ElementTree.fromstring(text).iter("rect"))


def test_rectangles_are_as_large_as_files_and_do_not_overlap() -> None:
    areas = [FileArea(f"src/m{number}.py", 10 * number, NO_TROUBLE) for number in range(1, 40)]
    areas += [FileArea("README.md", 300, NO_TROUBLE)]
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in drawn(areas)
    ]
    assert len(boxes) == len(areas)
    for number, (x, y, width, height) in enumerate(boxes):
        assert 0 <= x <= x + width <= 1000
        assert 0 <= y <= y + height <= 300
        for left, top, wide, high in boxes[number + 1 :]:
            across = x + width <= left + 0.2 or left + wide <= x + 0.2
            down = y + height <= top + 0.2 or top + high <= y + 0.2
            assert across or down
    sizes = sorted(width * height for _, _, width, height in boxes)
    assert sizes[-1] > 4 * sizes[0]


def test_the_warmest_file_has_the_warmest_colour() -> None:
    heats = {"a.py": 0.0, "b.py": 0.5, "c.py": 9.0, "d.py": 20.0}
    areas = [FileArea(path, 50, Trouble(heat=heat)) for path, heat in heats.items()]
    by_heat = sorted(box.attrib["class"] for box in drawn(areas))
    assert by_heat == ["heat-0", "heat-1", "heat-2", "heat-4"]
    # One old failure in a quiet project is not an alarm.
    (only,) = drawn([FileArea("a.py", 50, Trouble(heat=0.4))])
    assert only.attrib["class"] == "heat-1"


@pytest.mark.parametrize("areas", [[], [FileArea("a", 0, NO_TROUBLE)]])
def test_few_files(areas: list[FileArea]) -> None:
    assert len(drawn(areas)) == len(areas)
