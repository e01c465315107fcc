import math
import random
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest

from ctx import checkouts
from ctx.code import index_file
from ctx.code.history import commit_meanings
from ctx.code.history import history_refresh as history
from ctx.layout import Project
from tests.code.histories import Made, make

DIMENSIONS = 256


@pytest.fixture
def index() -> Iterator[Connection]:
    with closing(index_file.in_memory()) as connection:
        yield connection


def unit(random_numbers: random.Random) -> list[float]:
    values = [random_numbers.gauss(0, 1) for _ in range(DIMENSIONS)]
    return [value / math.hypot(*values) for value in values]


def test_a_fingerprint_has_the_sign_of_each_dimension() -> None:
    vector = [-1.0] * DIMENSIONS
    assert commit_meanings.fingerprint(vector) == bytes(32)
    vector[0], vector[15] = 1.0, 0.5
    assert commit_meanings.fingerprint(vector) == bytes([128, 1]) + bytes(30)


def test_the_similarity_is_the_product_with_the_signs(index: Connection) -> None:
    numbers = random.Random(1)
    vectors = {id: unit(numbers) for id in range(1, 31)}
    commit_meanings.add(
        index, ((id, commit_meanings.fingerprint(vector)) for id, vector in vectors.items())
    )
    asked = unit(numbers)
    with closing(index_file.in_memory()) as empty:
        assert commit_meanings.nearest(empty, asked, 5) == {}
    near = commit_meanings.nearest(index, asked, 5)
    exact = {
        id: sum(a if b > 0 else -a for a, b in zip(asked, vector, strict=True)) / 16
        for id, vector in vectors.items()
    }
    assert list(near) == sorted(exact, key=lambda id: -exact[id])[:5]
    assert near == pytest.approx({id: exact[id] for id in near})


def test_commits_that_are_gone_have_no_fingerprint(tmp_path: Path, index: Connection) -> None:
    root = make(
        tmp_path / "app",
        Made("Begin", {"a.py": "1"}),
        Made("Touch many", {f"{number}.py": "" for number in range(60)}),
        Made("Change it", {"a.py": "2"}),
    )

    def refresh() -> list[str]:
        checkout = checkouts.find_checkout(str(root))
        history.refresh(index, Project(str(root), checkout))
        return [subject for _, subject in commit_meanings.without_fingerprint(index)]

    assert sorted(refresh()) == ["Begin", "Change it"]
    missing = commit_meanings.without_fingerprint(index)
    commit_meanings.add(index, ((id, bytes(32)) for id, _ in missing))
    assert refresh() == []
    subprocess.run(["git", "reset", "-q", "--soft", "HEAD~1"], cwd=root, check=True)
    assert refresh() == []
    assert len(commit_meanings.nearest(index, [0.0] * DIMENSIONS, 10)) == 1
