"""What stands in for an object is read where the object is named."""

from pathlib import Path

import pytest

from ctx.errors import ObjectNotFound
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Layered, blob
from ctx.objects.replaced_objects import Replaced
from ctx.objects.staged_objects import StagedStore

OLD, NEW, NEWER, OTHER = map(blob, (b"old", b"new", b"newer", b"other"))


@pytest.fixture
def replaced(tmp_path: Path) -> Replaced:
    return Replaced(str(tmp_path / "replaced"))


@pytest.fixture
def store(tmp_path: Path, replaced: Replaced) -> LooseStore:
    return LooseStore(str(tmp_path / "objects"), replaced=replaced)


def test_what_was_never_replaced_is_itself(store: LooseStore, replaced: Replaced) -> None:
    store.write([OLD])
    assert replaced.current(OLD.id) == OLD.id
    assert store.read(OLD.id) == OLD
    assert not Path(replaced.folder).exists()


def test_a_reader_follows_from_one_to_the_next(store: LooseStore, replaced: Replaced) -> None:
    store.write([NEWER])
    replaced.note([(OLD.id, NEW.id), (NEW.id, NEWER.id)])
    for named in (OLD.id, NEW.id, NEWER.id):
        assert store.read(named) == NEWER
        assert named in store
    assert store.matching(OLD.id[:8]) == {OLD.id}
    assert OTHER.id not in store


def test_a_file_is_empty_and_private(replaced: Replaced) -> None:
    replaced.note([(OLD.id, NEW.id)])
    (file,) = Path(replaced.folder).iterdir()
    assert file.name == f"{OLD.id}.{NEW.id}"
    assert file.stat().st_size == 0
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_was_replaced_does_not_come_back(store: LooseStore, replaced: Replaced) -> None:
    store.write([NEW])
    replaced.note([(OLD.id, NEW.id)])
    assert store.write([OLD]) == 0
    assert list(store.ids()) == [NEW.id]


def test_while_the_old_one_is_still_there_the_new_one_counts(
    store: LooseStore, replaced: Replaced
) -> None:
    store.write([OLD, NEW])
    replaced.note([(OLD.id, NEW.id)])
    assert store.read(OLD.id) == NEW


def test_a_name_that_leads_nowhere_hides_nothing(store: LooseStore, replaced: Replaced) -> None:
    store.write([OLD])
    replaced.note([(OLD.id, NEW.id)])
    assert store.read(OLD.id) == OLD
    with pytest.raises(ObjectNotFound):
        store.read(NEW.id)


def test_a_circle_ends(store: LooseStore, replaced: Replaced) -> None:
    store.write([NEW])
    replaced.note([(OLD.id, NEW.id), (NEW.id, OLD.id)])
    assert store.read(OLD.id) == NEW
    assert store.read(NEW.id) == NEW


def test_of_two_successors_everybody_takes_the_same(store: LooseStore, replaced: Replaced) -> None:
    replaced.note([(OLD.id, NEW.id), (OLD.id, OTHER.id)])
    first, second = sorted((NEW, OTHER))
    assert replaced.standing_in(OLD.id) == [first.id, second.id, OLD.id]
    store.write([second])
    assert store.read(OLD.id) == second
    store.write([first])
    assert store.read(OLD.id) == first


def test_what_was_replaced_again_elsewhere_is_read_as_it_is_here(
    store: LooseStore, replaced: Replaced
) -> None:
    store.write([NEW])
    replaced.note([(OLD.id, NEW.id), (NEW.id, NEWER.id)])
    assert replaced.standing_in(OLD.id) == [NEWER.id, NEW.id, OLD.id]
    assert store.read(OLD.id) == NEW


def test_what_is_no_name_is_passed_over(replaced: Replaced) -> None:
    replaced.note([(OLD.id, NEW.id)])
    for name in ("README", f"{OLD.id}.", f".{OLD.id}", f"{OTHER.id}.{OTHER.id}"):
        (Path(replaced.folder) / name).touch()
    assert replaced.successors() == {OLD.id: [NEW.id]}


def test_another_store_may_have_what_stands_in(tmp_path: Path, replaced: Replaced) -> None:
    committed = LooseStore(str(tmp_path / "objects"), replaced=replaced)
    staged = StagedStore(str(tmp_path / "stage"), replaced=replaced)
    staged.write([NEW])
    replaced.note([(OLD.id, NEW.id)])
    both = Layered(committed, staged)
    assert OLD.id in both
    assert both.read(OLD.id) == NEW
    committed.write([NEW])
    staged.name_too([OLD.id], committed)
    assert staged.read(OLD.id) == NEW
