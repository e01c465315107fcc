"""The typed objects. Their fields define the format on disk.

A field is never removed, and its meaning never changes. A new field is added at the end with a
default. Defaults are not written, so an object that does not use the field keeps its bytes and its
id. There are no floats: confidence and weight are in per mille.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from ctx.ids import ObjectId, SessionId

# An object in an untrusted repository may contain anything instead of an id; ids become file names.
Id = Annotated[ObjectId, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
PerMille = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[int, msgspec.Meta(ge=-(2**60), le=2**60)]

CERTAIN = 1000


class Struct(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that can be part of a typed object."""


# History


class NarrativeRef(Struct, frozen=True):
    """One narrative document as it was when the commit was made."""

    path: str
    """Relative to `.ctx/narrative/`."""
    stream: str
    role: str
    blob_id: Id


class Commit(Struct, frozen=True):
    """A canonical commit: one point in the history of a project's memory."""

    parents: tuple[Id, ...]
    timestamp_unix: Seconds
    message: str
    root_tree: Id
    author: str = ""
    session_id: SessionId = SessionId("")
    record_batches: tuple[Id, ...] = ()
    edge_batches: tuple[Id, ...] = ()
    narrative_refs: tuple[NarrativeRef, ...] = ()
    cargo_snapshot: Id | None = None
    code_snapshot: Id | None = None
    diagnostics_snapshot: Id | None = None
    compacted: Id | None = None
    """The staging head that this commit was made from. It stays on this machine."""
    amends: Id | None = None
    """The commit that this one replaces."""
    replaced: tuple[Id, ...] = ()
    """All commits that it replaces, the last first: an amended commit may have amended another."""


class TreeEntryKind(StrEnum):
    BLOB = "blob"
    """What a path refers to: the content of a file, or in a code snapshot its items."""
    TREE = "tree"


class TreeEntry(Struct, frozen=True):
    name: str
    kind: TreeEntryKind
    id: Id


class Tree(Struct, frozen=True):
    """The entries of one folder, sorted by name."""

    entries: tuple[TreeEntry, ...]


class StepKind(StrEnum):
    SESSION_START = "session_start"
    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    COMMAND_RUN = "command_run"
    NOTE = "note"
    PLAN = "plan"
    COMPACT = "compact"


class WorkCommit(Struct, frozen=True):
    """One step of a session that has not been compacted yet."""

    parents: tuple[Id, ...]
    bases: tuple[Id, ...]
    """The heads on which the session started."""
    session_id: SessionId
    created_at: Seconds
    step_kind: StepKind
    payload: tuple[Id, ...] = ()
    narrative_refs: tuple[NarrativeRef, ...] = ()
    heads: tuple[Id, ...] = ()
    """The heads at this step, if they differ from those on which the session started."""


class FileVersion(Struct, frozen=True):
    """A file's content at one moment."""

    path: str
    """From the project's root, with `/`."""
    file_id: Id
    blob_id: Id
    byte_count: Count
    line_count: Count | None = None
    language: str = ""


class RecordBatch(Struct, frozen=True):
    """Records as the memory graph wrote them.

    They are kept as raw msgpack: a batch of a newer version passes through this one unchanged, also
    when batches are merged.
    """

    # A record that is valid takes more than a hundred bytes. One byte takes a hundred in memory.
    records: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=1_000_000)]
    created_at: int = 0
    blobs: tuple[Id, ...] = ()
    """What the records refer to, such as the output of a command."""
    unread: tuple[str, ...] = ()
    """Earlier records that the writer had not read, because they arrived while these were staged.
    """


# Relations


class Span(Struct, frozen=True):
    """A range of a file in bytes and, if known, in lines and columns from 1."""

    file_id: Id
    start_byte: Count
    end_byte: Count
    blob_id: Id | None = None
    start_line: Count | None = None
    start_column: Count | None = None
    end_line: Count | None = None
    end_column: Count | None = None


class EvidenceTool(StrEnum):
    CARGO = "cargo"
    PARSER = "parser"
    RUST_ANALYZER = "rust_analyzer"
    HUMAN = "human"
    LLM = "llm"
    HISTORY = "history"


class EdgeEvidence(Struct, frozen=True):
    """Why an edge is assumed."""

    tool: EvidenceTool
    confidence: PerMille = CERTAIN
    commit_id: Id | None = None
    span: Span | None = None
    blob_id: Id | None = None


class Endpoint(Struct, frozen=True):
    """One end of an edge: a kind of thing, and its name within that kind."""

    kind: str
    id: str


class BatchEdge(Struct, frozen=True, rename={"from_": "from"}):
    from_: Endpoint
    label: str
    to: Endpoint
    evidence: EdgeEvidence
    weight: PerMille | None = None


class EdgeBatch(Struct, frozen=True):
    """Edges that were found together. The commits record which commit added them."""

    edges: tuple[BatchEdge, ...]
    created_at: Count


# Snapshots


class TargetKind(StrEnum):
    LIB = "lib"
    BIN = "bin"
    TEST = "test"
    BENCH = "bench"
    EXAMPLE = "example"
    PROC_MACRO = "proc_macro"
    BUILD_SCRIPT = "build_script"


class Target(Struct, frozen=True):
    target_id: Id
    name: str
    kind: TargetKind
    src_path: str
    crate_types: tuple[str, ...] = ()


class Package(Struct, frozen=True):
    package_id: str
    name: str
    version: str
    manifest_path: str
    edition: str
    targets: tuple[Target, ...] = ()


class DependencyKind(StrEnum):
    NORMAL = "normal"
    DEV = "dev"
    BUILD = "build"


class ResolvedDependency(Struct, frozen=True):
    from_package_id: str
    to_package_id: str
    kind: DependencyKind
    optional: bool = False
    features_enabled: tuple[str, ...] = ()


class CargoSnapshot(Struct, frozen=True):
    """A cargo workspace as `cargo metadata` described it."""

    workspace_root: str
    packages: tuple[Package, ...]
    resolve: tuple[ResolvedDependency, ...] = ()


class ItemKind(StrEnum):
    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    STRUCT = "struct"
    ENUM = "enum"
    TRAIT = "trait"
    INTERFACE = "interface"
    IMPL = "impl"
    MODULE = "module"
    CONST = "const"
    STATIC = "static"
    TYPE_ALIAS = "type_alias"
    MACRO = "macro"


class Visibility(StrEnum):
    PUBLIC = "public"
    CRATE = "crate"
    SUPER = "super"
    PRIVATE = "private"


class Module(Struct, frozen=True):
    module_id: Id
    module_path: tuple[str, ...]
    file_id: Id
    declared_span: Span | None = None


class Item(Struct, frozen=True):
    item_id: Id
    module_id: Id
    kind: ItemKind
    name: str
    visibility: Visibility
    declared_span: Span
    stable_key: str = ""
    signature_hash: str = ""
    body_hash: str = ""
    doc_blob_id: Id | None = None
    signature: str = ""
    doc: str = ""
    """The first sentence of its documentation."""


class ImportKind(StrEnum):
    SINGLE = "single"
    GLOB = "glob"
    SELF = "self"
    SUPER = "super"
    CRATE = "crate"


class Import(Struct, frozen=True):
    module_id: Id
    span: Span
    kind: ImportKind
    resolved_to_item: Id | None = None
    resolved_to_module: Id | None = None
    path: str = ""
    """The name that it refers to, as written."""


class Implementation(Struct, frozen=True):
    module_id: Id
    span: Span
    self_type: str = ""
    trait: str = ""
    provides_items: tuple[Id, ...] = ()


class CodeSnapshot(Struct, frozen=True):
    """The items of one source file. The files of a project are the leaves of a tree."""

    language: str
    modules: tuple[Module, ...] = ()
    items: tuple[Item, ...] = ()
    imports: tuple[Import, ...] = ()
    implementations: tuple[Implementation, ...] = ()


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    HINT = "hint"


class Diagnostic(Struct, frozen=True):
    severity: Severity
    message_blob_id: Id
    code: str = ""
    spans: tuple[Span, ...] = ()
    related_blob_id: Id | None = None


class DiagnosticsSnapshot(Struct, frozen=True):
    """What a tool reported: `rustc`, `clippy`, `cargo test`, `pytest`, or any other by name."""

    tool: str
    timestamp: Seconds
    diagnostics: tuple[Diagnostic, ...] = ()


Typed = (
    Commit
    | Tree
    | WorkCommit
    | FileVersion
    | RecordBatch
    | EdgeBatch
    | CargoSnapshot
    | CodeSnapshot
    | DiagnosticsSnapshot
)
