"""Limits for reading a store that is not trusted yet.

A few hundred kilobytes can decompress to gigabytes, or refer to each other a million times. So a
command counts what it reads of an untrusted store, and stops at a limit. A trusted store has no
limits.

The limits come from real figures: a store of 1,000 commits with 3 nodes each has about 5,000
objects, 10,000 records and 10 MB. Reading up to the limits takes seconds.
"""

from ctx.errors import StoreTooLarge

MOST_OBJECTS = 100_000
"""Objects that are looked up, and documents that are read."""
MOST_RECORDS = 100_000
MOST_RECORD_BYTES = 32 * 1024 * 1024
"""Every word of a record goes into the index, which takes longer than decompressing it."""
MOST_BYTES = 256 * 1024 * 1024
"""Decompressed bytes of objects, and bytes of documents."""


class WorkLimit:
    """What one command may still read."""

    def __init__(self) -> None:
        self._objects_left = MOST_OBJECTS
        self._records_left = MOST_RECORDS
        self._record_bytes_left = MOST_RECORD_BYTES
        self.bytes_left = MOST_BYTES

    def count_object(self) -> None:
        self._objects_left -= 1
        if self._objects_left < 0:
            raise StoreTooLarge(_SENTENCE.format(f"{MOST_OBJECTS:,} objects"))

    def count_records(self, number: int, size: int) -> None:
        self._records_left -= number
        self._record_bytes_left -= size
        if self._records_left < 0:
            raise StoreTooLarge(_SENTENCE.format(f"{MOST_RECORDS:,} records"))
        if self._record_bytes_left < 0:
            raise StoreTooLarge(_SENTENCE.format(f"{MOST_RECORD_BYTES // 1024**2} MB of records"))

    def count_bytes(self, number: int) -> None:
        self.bytes_left -= number
        if self.bytes_left < 0:
            raise StoreTooLarge(_SENTENCE.format(f"{MOST_BYTES // 1024**2} MB"))


_SENTENCE = "This store is larger than one that is not trusted may be: more than {}."
