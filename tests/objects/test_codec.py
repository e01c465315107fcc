import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.errors import DeserializationFailed
from ctx.objects import codec
from ctx.objects.object_store import typed
from ctx.objects.object_types import Commit, RecordBatch, Typed
from tests import effort
from tests.objects.samples import SAMPLES, an_id, any_typed

GOLDEN = Path(__file__).parent.parent / "golden" / "objects"


@pytest.mark.slow
@settings(max_examples=effort.times(100), deadline=None)
@given(any_typed())
def test_decode_is_the_inverse_of_encode(value: Typed) -> None:
    payload = codec.encode(value)
    assert codec.decode(payload) == value
    assert codec.encode(value) == payload


@settings(max_examples=effort.times(100), deadline=None)
@given(any_typed())
def test_every_id_in_a_value_is_found(value: Typed) -> None:
    found = codec.named_ids(codec.encode(value))
    assert set(_ids_in(msgspec.to_builtins(value, enc_hook=lambda _: None))) <= found


def _ids_in(value: object) -> list[str]:
    match value:
        case str() if len(value) == 64:
            return [value] if set(value) <= set("0123456789abcdef") else []
        case dict():
            return [id for item in value.values() for id in _ids_in(item)]
        case list() | tuple():
            return [id for item in value for id in _ids_in(item)]
        case _:
            return []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.msgpack")), ids=lambda p: p.stem)
def test_objects_of_every_release_can_be_read(path: Path) -> None:
    known = json.loads((path.parent / "ids.json").read_text())
    payload = path.read_bytes()
    value = codec.decode(payload)
    assert value == SAMPLES[path.stem]
    assert not isinstance(value, codec.UnknownObject)
    assert codec.encode(value) == payload
    assert typed(value).id == known[path.stem]


def test_there_are_golden_objects_of_every_type() -> None:
    assert {codec.type_name(value) for value in SAMPLES.values()} == set(codec.TYPES)
    assert {path.stem for path in (GOLDEN / "0.1").glob("*.msgpack")} == set(SAMPLES)


def test_a_process_with_another_hash_seed_writes_the_same_bytes() -> None:
    program = (
        "import json; from ctx.objects.object_store import typed;"
        "from tests.objects.samples import SAMPLES;"
        "print(json.dumps({n: typed(v).id for n, v in SAMPLES.items()}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4242"}
    root = Path(__file__).parent.parent.parent
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=environment, check=True, capture_output=True
    ).stdout
    assert json.loads(printed) == {name: typed(value).id for name, value in SAMPLES.items()}


def test_a_type_of_a_newer_version_is_kept_as_unknown() -> None:
    payload = msgspec.msgpack.encode(["constellation", 3, {"stars": [an_id(5)]}])
    assert codec.decode(payload) == codec.UnknownObject("constellation", 3)
    assert codec.is_newer(payload)
    assert codec.named_ids(payload) == {an_id(5)}


def test_fields_of_a_newer_version_are_skipped() -> None:
    name, _, fields = msgspec.msgpack.decode(codec.encode(SAMPLES["commit"]))
    newer = msgspec.msgpack.encode([name, 2, {**fields, "mood": {"calm": an_id(77)}}])
    assert codec.decode(newer) == SAMPLES["commit"]
    assert codec.is_newer(newer)
    assert an_id(77) in codec.named_ids(newer)


def test_a_default_is_not_written() -> None:
    bare = codec.encode(Commit((), 0, "", an_id(1)))
    assert b"author" not in bare
    assert b"amends" not in bare


def test_records_of_any_kind_are_kept_unchanged() -> None:
    unknown = msgspec.msgpack.encode({"kind": "of tomorrow", "z": 1, "a": [1.5, None]})
    batch = codec.decode(codec.encode(RecordBatch((msgspec.Raw(unknown),))))
    assert isinstance(batch, RecordBatch)
    assert bytes(batch.records[0]) == unknown


@pytest.mark.parametrize(
    "id", ["../../../etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", ""]
)
def test_an_invalid_id_is_e004(id: str) -> None:
    payload = msgspec.msgpack.encode(
        ["tree", 1, {"entries": [{"name": "x", "kind": "blob", "id": id}]}]
    )
    with pytest.raises(DeserializationFailed, match="E004"):
        codec.decode(payload)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    payload = bytearray(codec.encode(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))]))
    payload[draw(st.integers(0, 2000)) % len(payload)] ^= draw(st.integers(1, 255))
    return bytes(payload)


@settings(max_examples=effort.times(200), deadline=None)
@given(st.binary(max_size=200) | damaged())
def test_any_bytes_decode_or_are_e004(payload: bytes) -> None:
    try:
        codec.decode(payload)
    except DeserializationFailed as error:
        assert error.code == "E004"
