import os
from pathlib import Path

import pytest

from ctx.errors import DeserializationFailed, RefNotFound, StagingConflict
from ctx.ids import SessionId
from ctx.objects import refs
from ctx.objects.refs import Heads, Refs
from tests.objects.samples import an_id

A, B, C = an_id(1), an_id(2), an_id(3)


def test_a_ref_moves_only_from_its_expected_value(tmp_path: Path) -> None:
    store = Refs(str(tmp_path / "refs"))
    name = refs.work(SessionId("s1"))
    store.move(name, None, A)
    with pytest.raises(StagingConflict, match="E008"):
        store.move(name, None, B)
    with pytest.raises(StagingConflict):
        store.move(name, B, C)
    store.move(name, A, B)
    assert store.read(name) == B
    store.move(name, B, None)
    assert store.read(name) is None
    with pytest.raises(StagingConflict):
        store.move(name, B, C)


def test_ref_names_are_listed(tmp_path: Path) -> None:
    store = Refs(str(tmp_path / "refs"))
    assert list(store.names()) == []
    for name in ("main", "work/b", "work/a"):
        store.move(name, None, A)
    (tmp_path / "refs" / "work" / "c.1-1.tmp").write_text("half")
    assert list(store.names()) == ["main", "work/a", "work/b"]
    assert [refs.session_of(name) for name in store.names()] == [None, "a", "b"]
    with pytest.raises(RefNotFound, match="E005"):
        store.require("work/z")


@pytest.mark.parametrize("content", [b"", b"x", A.encode(), A.encode() + b"\n\n", b"\xff" * 65])
def test_a_ref_without_a_valid_id_is_e004(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "main").write_bytes(content)
    with pytest.raises(DeserializationFailed, match="E004"):
        Refs(str(tmp_path)).read("main")


def test_heads_are_empty_files(tmp_path: Path) -> None:
    heads = Heads(str(tmp_path / "heads"))
    assert heads.named() == []
    heads.advance(A, [])
    heads.advance(B, [A])
    heads.advance(C, [])
    assert heads.named() == [B, C]
    heads.advance(B, [B, C, A])
    assert heads.named() == [B]
    assert os.path.getsize(tmp_path / "heads" / B) == 0
    (tmp_path / "heads" / "notes").write_text("")
    assert heads.named() == [B]
    assert heads.stray() == ["notes"]
