import pytest

import harbor
from harbor import Ship, Tugboat, measure, weather, write_down
from harbor.berths import quay


@pytest.fixture
def tug() -> Tugboat:
    return Tugboat("Hans")


def test_pulls(tug: Tugboat) -> None:
    ship = Ship.named("Grete")
    tug.pull(ship)
    tug.rope.loosen().fasten(ship)
    assert tug.pulls is ship
    assert weather.today().wind() == 3
    write_down(measure(quay.Berth(None)))


class TestQuay:
    quay = quay.Quay()

    def test_first(self) -> None:
        self.quay.first.take(harbor.Ship("a"))
        harbor.ships.tug.make_rope(harbor.Tugboat("b"))
