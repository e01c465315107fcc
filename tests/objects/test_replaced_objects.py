"""Reading a replaced object gives its replacement."""

from pathlib import Path

import pytest

from ctx.errors import ObjectNotFound
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import LayeredReader, blob
from ctx.objects.replaced_objects import ReplacedObjects
from ctx.objects.staged_objects import StagedStore

OLD, NEW, NEWER, OTHER = map(blob, (b"old", b"new", b"newer", b"other"))


@pytest.fixture
def replaced(tmp_path: Path) -> ReplacedObjects:
    return ReplacedObjects(str(tmp_path / "replaced"))


@pytest.fixture
def store(tmp_path: Path, replaced: ReplacedObjects) -> LooseStore:
    return LooseStore(str(tmp_path / "objects"), replaced=replaced)


def test_chains_of_replacements_are_followed(store: LooseStore, replaced: ReplacedObjects) -> None:
    store.write([OLD])
    assert (replaced.current(OLD.id), store.read(OLD.id)) == (OLD.id, OLD)
    assert not Path(replaced.folder).exists()
    replaced.note([(OLD.id, NEW.id)])
    (file,) = Path(replaced.folder).iterdir()
    assert (file.name, file.stat().st_size) == (f"{OLD.id}.{NEW.id}", 0)
    assert file.stat().st_mode & 0o777 == 0o600
    # A missing replacement does not hide the object.
    assert store.read(OLD.id) == OLD
    with pytest.raises(ObjectNotFound):
        store.read(NEW.id)
    # The replacement counts although the old object exists; of several, the last that exists.
    store.write([NEW])
    replaced.note([(NEW.id, NEWER.id)])
    assert replaced.standing_in(OLD.id) == [NEWER.id, NEW.id, OLD.id]
    assert store.read(OLD.id) == NEW
    store.write([NEWER])
    for named in (OLD.id, NEW.id, NEWER.id):
        assert store.read(named) == NEWER
        assert named in store
    assert store.matching(OLD.id[:8]) == {OLD.id}
    assert OTHER.id not in store


def test_a_replaced_object_is_not_written_again(
    store: LooseStore, replaced: ReplacedObjects
) -> None:
    store.write([NEW])
    replaced.note([(OLD.id, NEW.id)])
    assert store.write([OLD]) == 0
    assert list(store.ids()) == [NEW.id]
    # A circle of replacements ends.
    replaced.note([(NEW.id, OLD.id)])
    assert store.read(OLD.id) == store.read(NEW.id) == NEW


def test_of_two_replacements_the_choice_is_deterministic(
    store: LooseStore, replaced: ReplacedObjects
) -> None:
    replaced.note([(OLD.id, NEW.id), (OLD.id, OTHER.id)])
    first, second = sorted((NEW, OTHER))
    assert replaced.standing_in(OLD.id) == [first.id, second.id, OLD.id]
    store.write([second])
    assert store.read(OLD.id) == second
    store.write([first])
    assert store.read(OLD.id) == first


def test_invalid_file_names_are_ignored(replaced: ReplacedObjects) -> None:
    replaced.note([(OLD.id, NEW.id)])
    for name in ("README", f"{OLD.id}.", f".{OLD.id}", f"{OTHER.id}.{OTHER.id}"):
        (Path(replaced.folder) / name).touch()
    assert replaced.successors() == {OLD.id: [NEW.id]}


def test_the_replacement_can_be_in_another_store(tmp_path: Path, replaced: ReplacedObjects) -> None:
    committed = LooseStore(str(tmp_path / "objects"), replaced=replaced)
    staged = StagedStore(str(tmp_path / "stage"), replaced=replaced)
    staged.write([NEW])
    replaced.note([(OLD.id, NEW.id)])
    both = LayeredReader(committed, staged)
    assert OLD.id in both
    assert both.read(OLD.id) == NEW
    committed.write([NEW])
    staged.name_too([OLD.id], committed)
    assert staged.read(OLD.id) == NEW
