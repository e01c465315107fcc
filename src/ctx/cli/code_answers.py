"""The text output of `ctx code`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ctx.cli.output import Block, Line, Table, age_text, beyond_limit, count, listing, size
from ctx.code.coverage import Coverage

if TYPE_CHECKING:
    from ctx.code.item_changes import ItemChange
    from ctx.code.lookup import LocatedItem, OutlineEntry
    from ctx.code.packages.package_queries import IndexedPackage, PackageDependency
    from ctx.codebase.indexing import IndexReport, IndexStatus
    from ctx.operations.code_changed import ChangedFile, CodeChanges
    from ctx.operations.code_cycles import Cycle, Cycles
    from ctx.operations.code_history import FileHistory
    from ctx.operations.code_queries import (
        CodeCall,
        CodeCalls,
        CodeImport,
        CodeImports,
        FileOutline,
        PackageList,
    )

_LONGEST_LOOP = 6
_NEEDED = ("package", "kind", "versions", "how", "manifest")


def outline(file: "FileOutline") -> list[Block]:
    rows = [(str(each.line), _outline_line(each)) for each in file.items]
    return [*_outline_heading(file), Table(("line", "item"), rows, ("number", "text"))]


def outline_with_docs(file: "FileOutline") -> list[Block]:
    rows = [(str(each.line), _outline_line(each), each.doc) for each in file.items]
    return [
        *_outline_heading(file),
        Table(("line", "item", "about"), rows, ("number", "", "text")),
    ]


def _outline_heading(file: "FileOutline") -> list[Block]:
    facts = [file.language or "", count(file.lines, "line")]
    if file.problems:
        facts.append(count(file.problems, "place") + " not parsed")
    blocks: list[Block] = [Line(f"{file.path}: {', '.join(filter(None, facts))}", "heading")]
    if file.skipped:
        blocks.append(Line(f"Not parsed: {file.skipped}."))
    elif not file.items:
        blocks.append(Line("It defines nothing."))
    return blocks


def _outline_line(each: "OutlineEntry") -> str:
    return "  " * each.depth + (each.signature or f"{each.kind} {each.name}")


def calls(result: "CodeCalls") -> list[Block]:
    blocks = _item_listing(result.items)
    is_by = result.direction == "callers"
    if not result.calls:
        return [*blocks, Line("No callers." if is_by else "No calls into this project.")]
    # The other end is shown if it is not the requested item itself, but for example a method of the
    # class.
    requested = {each.id for each in result.items}
    far = len(requested) > 1 or any(
        (call.callee if is_by else call.caller).id not in requested for call in result.calls
    )
    rows = [_call(call, is_by=is_by, far=far) for call in result.calls]
    headings = ["where", "who" if is_by else "what", "sure", "times"]
    kinds = ["id", "", "dim", "dim"]
    if far:
        headings.insert(2, "calls" if is_by else "called by")
        kinds.insert(2, "dim")
    blocks.append(Line("Called by" if is_by else "Calls", "heading"))
    blocks.append(Table(headings, rows, kinds))
    blocks += beyond_limit(result.more)
    return blocks


def _call(call: "CodeCall", *, is_by: bool, far: bool) -> list[str]:
    near, other = (call.caller, call.callee) if is_by else (call.callee, call.caller)
    # A caller is shown at the line of the call; a callee at its first line.
    where = f"{call.path}:{call.line}" if is_by else f"{near.path}:{near.line}"
    times = f"{call.times} times" if call.times > 1 else ""
    row = [where, "  " * (call.depth - 1) + near.name, call.confidence, times]
    if far:
        row.insert(2, other.name)
    return row


def imports(result: "CodeImports") -> list[Block]:
    blocks = _item_listing(result.items)
    if result.imports:
        rows = [
            (
                str(each.line),
                _import_text(each),
                each.target.name if each.target else "-",
                f"{each.target.path}:{each.target.line}" if each.target else "",
            )
            for each in result.imports
        ]
        blocks.append(Line("Imports", "heading"))
        headings = ("line", "written", "is", "where")
        blocks.append(Table(headings, rows, ("number", "", "", "id")))
    else:
        blocks.append(Line("No imports."))
    if not result.importers:
        return [*blocks, Line("Not imported anywhere.")]
    importing = [
        (f"{each.path}:{each.line}", each.importer.name, each.imported.name)
        for each in result.importers
    ]
    blocks.append(Line("Imported by", "heading"))
    blocks.append(Table(("where", "who", "what"), importing, ("id", "", "")))
    blocks += beyond_limit(result.more)
    return blocks


def _import_text(each: "CodeImport") -> str:
    text = f"{each.module}: {each.item}" if each.item else each.module
    last = (each.item or each.module).replace("/", ".").replace("::", ".").rpartition(".")[2]
    return f"{text} as {each.bound}" if each.bound and each.bound != last else text


def _item_listing(items: "Iterable[LocatedItem]") -> list[Block]:
    rows = [(f"{each.path}:{each.line}", each.name, each.signature) for each in items]
    return listing(("where", "name", "signature"), rows, ("id", "", "text"))


def cycles(result: "Cycles") -> list[Block]:
    if not result.cycles:
        return [Line("No cycles.")]
    blocks: list[Block] = []
    for of, between, how in (
        ("files", "files", "import"),
        ("items", "items", "call"),
    ):
        several = [each for each in result.cycles if each.of == of]
        if several:
            summary = count(len(several), "group")
            blocks.append(Line(f"{summary} of {between} that {how} each other", "heading"))
            rows = [(str(len(each.members)), _loop(each)) for each in several]
            blocks += listing((of, "for example"), rows, ("number", "text"))
    return blocks


def _loop(cycle: "Cycle") -> str:
    way: Sequence[str] = cycle.loop
    if len(way) > _LONGEST_LOOP:
        way = (*way[: _LONGEST_LOOP - 1], "…")
    return (
        " → ".join((*way, cycle.loop[0]))
        if way
        else ", ".join(each.name for each in cycle.members[:_LONGEST_LOOP])
    )


def packages(result: "PackageList") -> list[Block]:
    if not result.name:
        return _all_packages(result.packages)
    blocks: list[Block] = []
    for each in result.packages:
        version = f" {each.version}" if each.version else ""
        blocks.append(Line(f"{each.name}{version}: {each.ecosystem}, {each.manifest}", "heading"))
        if each.targets:
            rows = [(target.kind, target.name, target.path) for target in each.targets]
            blocks.append(Line("Builds"))
            blocks += listing(("kind", "name", "path"), rows, ("type", "", "id"))
        needs = [
            _dependency_row(needed.name, needed.manifest, needed) for needed in each.dependencies
        ]
        blocks.append(Line("Depends on" if needs else "No dependencies."))
        blocks.append(Table(_NEEDED, needs, ("", "type", "", "dim", "id")))
    needing = [
        _dependency_row(each.package, each.manifest, each.dependency) for each in result.needed_by
    ]
    if needing:
        who = (
            "Needed by"
            if result.packages
            else f"{result.name} is not part of this project. Needed by"
        )
        blocks.append(Line(who, "" if result.packages else "heading"))
        blocks.append(Table(_NEEDED, needing, ("", "type", "", "dim", "id")))
    elif len(result.packages) == 1:
        blocks.append(Line("No package here depends on it."))
    return blocks


def _all_packages(every: "Sequence[IndexedPackage]") -> list[Block]:
    if not every:
        return [Line("No package manifest found.")]
    rows = [
        (
            each.name,
            each.version,
            each.ecosystem,
            each.manifest,
            count(len(each.targets), "target"),
            f"needs {len(each.dependencies):,}",
        )
        for each in every
    ]
    headings = ("package", "version", "of", "manifest", "targets", "needs")
    return [Table(headings, rows, ("", "", "type", "id", "dim", "dim"))]


def _dependency_row(
    package: str, manifest: str, needed: "PackageDependency"
) -> tuple[str, str, str, str, str]:
    how = ["optional"] if needed.optional else []
    if needed.features:
        how.append(f"with {' and '.join(needed.features)}")
    return package, needed.kind, needed.requirement, ", ".join(how), manifest


def history(result: "FileHistory") -> list[Block]:
    blocks: list[Block] = []
    if not result.commits:
        what = f"touched {result.path}" if result.path else f"mentions {result.words}"
        blocks.append(Line(f"No commit {what}{' yet' if result.path else ''}."))
    rows = [
        (each.commit, each.time[:10], each.subject, count(len(each.files), "file"))
        for each in result.commits
    ]
    blocks.append(Table(("commit", "day", "subject", "files"), rows, ("id", "dim", "text", "dim")))
    if result.together:
        blocks.append(Line("Changed together with", "heading"))
        beside = [
            (each.path, count(each.times, "time"), f"{round(100 * each.share)} %")
            for each in result.together
        ]
        blocks.append(Table(("path", "times", "share"), beside, ("", "dim", "dim")))
    if not result.complete:
        blocks.append(Line(f"Of the newest {result.read:,} commits.", "dim"))
    return blocks


def changed_blocks(changes: "CodeChanges") -> list[Block]:
    from ctx.code.qualified_names import separator

    if not changes.files:
        return [Line(f"No item differs from {changes.since}.")]
    summary = ", ".join(
        f"{number:,} {word}"
        for word, number in (
            ("new", changes.new),
            ("modified", changes.modified),
            ("deleted", changes.deleted),
        )
        if number
    )
    since_what = changes.since if changes.commit else "the beginning: there is no commit yet"
    blocks: list[Block] = [Line(f"{summary or 'No item differs'} since {since_what}")]
    for file in changes.files:
        blocks.append(Line(_file(file), "heading"))
        if file.skipped:
            blocks.append(Line(f"  not compared: {file.skipped}", "dim"))
        joint = separator(file.language or "")
        rows = [_change(each, each.name.rpartition(joint)[0]) for each in file.items]
        blocks.append(
            Table(("change", "line", "item", "what"), rows, ("type", "number", "text", "dim"))
        )
    return blocks


def _file(file: "ChangedFile") -> str:
    name = f"{file.was} → {file.path}" if file.change == "renamed" else file.path
    return f"{name} ({file.change})"


def _change(each: "ItemChange", owner: str) -> tuple[str, str, str, str]:
    shown = each.signature or (f"{each.kind} {each.name}" if each.name else "the file itself")
    if owner and each.signature:
        shown = f"{shown} in {owner}"
    return each.change, str(each.line), shown, " and ".join(each.parts)


def status(index: "IndexStatus") -> list[Block]:
    return [Line(index.root, "heading"), *_coverage(index.coverage, index.path, index.bytes)]


def index_blocks(done: "IndexReport") -> list[Block]:
    read = done.added + done.changed
    moved = f"{count(read, 'file')} read, {done.removed:,} gone"
    blocks: list[Block] = [Line(f"The code index is up to date: {moved}.")]
    blocks += _coverage(done.coverage, done.path, done.bytes)
    rows = [(each.path, each.reason) for each in done.left_out]
    if rows:
        blocks.append(Line("Left out", "heading"))
        blocks += listing(("path", "why"), rows)
    return blocks


def _coverage(coverage: Coverage, path: str, bytes: int) -> list[Block]:
    facts = [
        ("files", f"{coverage.files:,}, {coverage.parsed:,} of them read"),
        ("items", f"{coverage.items:,}"),
        ("edges", f"{coverage.edges:,}"),
        ("problems", f"in {count(coverage.problems, 'file')}" if coverage.problems else ""),
        ("unresolved", count(coverage.unresolved, "file") if coverage.unresolved else ""),
        ("left out", f"{coverage.left_out:,}" if coverage.left_out else ""),
        ("age", age_text(coverage.refreshed_at) if coverage.refreshed_at else "not complete yet"),
        ("index", f"{path} ({size(bytes)})"),
    ]
    blocks: list[Block] = [
        Table(("field", "value"), [fact for fact in facts if fact[1]], ("field", ""))
    ]
    if coverage.languages:
        rows = [
            (each.language, count(each.files, "file"), count(each.lines, "line"))
            for each in coverage.languages
        ]
        blocks.append(Line("Languages", "heading"))
        blocks += listing(("language", "files", "lines"), rows)
    if coverage.skipped:
        skipped = [(each.reason, count(each.files, "file")) for each in coverage.skipped]
        blocks.append(Line("Not read", "heading"))
        blocks += listing(("why", "files"), skipped)
    return blocks
