"""An object store in memory, for tests and experiments."""

from collections.abc import Iterable, Iterator

from ctx.errors import HashMismatch, ObjectNotFound
from ctx.ids import ObjectId
from ctx.objects.object_store import Object, id_of, parse


class InMemoryStore:
    """Keeps canonical bytes by id and verifies them on reading, as on disk."""

    def __init__(self) -> None:
        self.canonical: dict[ObjectId, bytes] = {}

    def write(self, objects: Iterable[Object]) -> int:
        before = len(self.canonical)
        self.canonical.update((item.id, item.canonical) for item in objects)
        return len(self.canonical) - before

    def read(self, id: ObjectId) -> Object:
        canonical = self.canonical.get(id)
        if canonical is None:
            raise ObjectNotFound(f"Object {id} does not exist.")
        if id_of(canonical) != id:
            raise HashMismatch(f"Object {id} does not hold what its name says.")
        return parse(id, canonical)

    def __contains__(self, id: ObjectId) -> bool:
        return id in self.canonical

    def ids(self) -> Iterator[ObjectId]:
        yield from sorted(self.canonical)
