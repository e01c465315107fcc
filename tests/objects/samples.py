"""One value of every typed object, with every field set, and a strategy for any value."""

import types
import typing
from enum import Enum
from typing import Any

import msgspec
from hypothesis import strategies as st

from ctx.ids import ObjectId, SessionId
from ctx.objects import codec, object_types
from ctx.objects.object_types import (
    BatchEdge,
    CargoSnapshot,
    CodeSnapshot,
    Commit,
    DependencyKind,
    Diagnostic,
    DiagnosticsSnapshot,
    EdgeBatch,
    EdgeEvidence,
    Endpoint,
    EvidenceTool,
    FileVersion,
    Implementation,
    Import,
    ImportKind,
    Item,
    ItemKind,
    Module,
    NarrativeRef,
    Package,
    RecordBatch,
    ResolvedDependency,
    Severity,
    Span,
    StepKind,
    Target,
    TargetKind,
    Tree,
    TreeEntry,
    TreeEntryKind,
    Typed,
    Visibility,
    WorkCommit,
)


def an_id(number: int) -> ObjectId:
    return ObjectId(f"{number:064x}")


SPAN = Span(an_id(1), 10, 20, an_id(2), 3, 4, 5, 6)
NARRATIVE = NarrativeRef("tasks/task_0001-retry-ab12.md", "main", "task", an_id(3))

SAMPLES: dict[str, Typed] = {
    "commit": Commit(
        parents=(an_id(1), an_id(2)),
        timestamp_unix=1_768_903_200,
        message="feat: retry\n\nWith jitter – 再試行",
        root_tree=an_id(4),
        author="A Person <a@example.org>",
        session_id=SessionId("retry-feature-001"),
        record_batches=(an_id(5),),
        edge_batches=(an_id(6),),
        narrative_refs=(NARRATIVE,),
        cargo_snapshot=an_id(7),
        code_snapshot=an_id(8),
        diagnostics_snapshot=an_id(9),
        compacted=an_id(10),
        amends=an_id(11),
    ),
    "amending_commit": Commit(
        parents=(an_id(1),),
        timestamp_unix=1_768_903_300,
        message="feat: retry twice",
        root_tree=an_id(4),
        amends=an_id(11),
        replaced=(an_id(11), an_id(12)),
    ),
    "tree": Tree(
        (
            TreeEntry("lib.rs", TreeEntryKind.BLOB, an_id(1)),
            TreeEntry("net", TreeEntryKind.TREE, an_id(2)),
        )
    ),
    "work_commit": WorkCommit(
        parents=(an_id(1),),
        bases=(an_id(2), an_id(3)),
        session_id=SessionId("cli"),
        created_at=1_768_903_200,
        step_kind=StepKind.FILE_WRITE,
        payload=(an_id(4), an_id(5)),
        narrative_refs=(NARRATIVE,),
    ),
    "work_commit_after_a_pull": WorkCommit(
        parents=(an_id(1),),
        bases=(an_id(2),),
        session_id=SessionId("cli"),
        created_at=1_768_903_200,
        step_kind=StepKind.NOTE,
        payload=(an_id(4),),
        heads=(an_id(3),),
    ),
    "file_version": FileVersion("src/main.rs", an_id(1), an_id(2), 1234, 56, "rust"),
    "record_batch": RecordBatch(
        (msgspec.Raw(msgspec.msgpack.encode({"kind": "node", "n": 1})), msgspec.Raw(b"\xc0")), 77
    ),
    "record_batch_of_staged": RecordBatch(
        (msgspec.Raw(b"\xc0"),), blobs=(an_id(1),), unread=("01HQ1A2B3C4D5E6F7G8H9J0K1M",)
    ),
    "edge_batch": EdgeBatch(
        (
            BatchEdge(
                Endpoint("task", "01HQ1A2B3C4D5E6F7G8H9J0K1M"),
                "MENTIONS",
                Endpoint("file", "src/main.rs"),
                EdgeEvidence(EvidenceTool.HUMAN, 900, an_id(1), SPAN, an_id(2)),
                500,
            ),
        ),
        1_768_903_200,
    ),
    "cargo_snapshot": CargoSnapshot(
        "/work",
        (
            Package(
                "core 0.1.0",
                "core",
                "0.1.0",
                "Cargo.toml",
                "2021",
                (Target(an_id(1), "core", TargetKind.LIB, "src/lib.rs", ("lib",)),),
            ),
        ),
        (ResolvedDependency("core", "tokio", DependencyKind.DEV, True, ("net", "rt")),),
    ),
    "code_snapshot": CodeSnapshot(
        "rust",
        (Module(an_id(1), ("core", "net"), an_id(2), SPAN),),
        (
            Item(
                an_id(3),
                an_id(1),
                ItemKind.FUNCTION,
                "connect",
                Visibility.PUBLIC,
                SPAN,
                "core::net::connect",
                "aa",
                "bb",
                an_id(4),
            ),
        ),
        (Import(an_id(1), SPAN, ImportKind.GLOB, an_id(3), an_id(1)),),
        (Implementation(an_id(1), SPAN, "Client", "Connect", (an_id(3),)),),
    ),
    "diagnostics_snapshot": DiagnosticsSnapshot(
        "rustc",
        1_768_903_200,
        (Diagnostic(Severity.ERROR, an_id(1), "E0433", (SPAN,), an_id(2)),),
    ),
}


def any_typed() -> st.SearchStrategy[Typed]:
    """Any value of any typed object, drawn from the fields' own types."""
    classes = [cls for _, cls in codec.TYPES.values()]
    return st.one_of([_struct(cls) for cls in classes])


_IDS = st.binary(min_size=32, max_size=32).map(bytes.hex)
_RAW = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
).map(lambda value: msgspec.Raw(msgspec.msgpack.encode(value)))


def _struct(cls: type[Any]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return st.builds(cls, **{name: _field(hint) for name, hint in hints.items()})


def _field(hint: Any) -> st.SearchStrategy[Any]:
    origin = typing.get_origin(hint)
    if hint is object_types.Id:
        return _IDS
    if hint is object_types.PerMille:
        return st.integers(0, 1000)
    if hint is object_types.Seconds:
        return st.integers(-(2**60), 2**60)
    if hint is object_types.Count:
        return st.integers(0, 2**63)
    if origin is typing.Annotated:
        return _field(typing.get_args(hint)[0])
    if origin is types.UnionType or origin is typing.Union:
        return st.one_of([_field(option) for option in typing.get_args(hint)])
    if origin is tuple:
        return st.lists(_field(typing.get_args(hint)[0]), max_size=3).map(tuple)
    if hint is type(None):
        return st.none()
    if hint is str or hint is SessionId:
        return st.text()
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(-(2**63), 2**63 - 1)
    if hint is msgspec.Raw:
        return _RAW
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    return _struct(hint)
