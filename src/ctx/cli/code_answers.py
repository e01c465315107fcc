"""The text output of `ctx code`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ctx.cli.output import Block, Line, Table, count, listing, since, size
from ctx.code.coverage import Coverage

if TYPE_CHECKING:
    from ctx.code.item_changes import ItemChange
    from ctx.code.lookup import LocatedItem, OutlineEntry
    from ctx.code.packages.package_queries import IndexedPackage, PackageDependency
    from ctx.codebase.code_index import IndexReport, IndexStatus
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


def outline(found: "FileOutline") -> list[Block]:
    rows = [(str(each.line), _indented(each)) for each in found.items]
    return [*_headed(found), Table(("line", "item"), rows, ("number", "text"))]


def outline_with_docs(found: "FileOutline") -> list[Block]:
    rows = [(str(each.line), _indented(each), each.doc) for each in found.items]
    return [
        *_headed(found),
        Table(("line", "item", "about"), rows, ("number", "", "text")),
    ]


def _headed(found: "FileOutline") -> list[Block]:
    facts = [found.language or "", count(found.lines, "line")]
    if found.problems:
        facts.append(count(found.problems, "place") + " not parsed")
    blocks: list[Block] = [Line(f"{found.path}: {', '.join(filter(None, facts))}", "heading")]
    if found.skipped:
        blocks.append(Line(f"Not parsed: {found.skipped}."))
    elif not found.items:
        blocks.append(Line("It defines nothing."))
    return blocks


def _indented(each: "OutlineEntry") -> str:
    return "  " * each.depth + (each.signature or f"{each.kind} {each.name}")


def calls(found: "CodeCalls") -> list[Block]:
    blocks = _meant(found.items)
    is_by = found.direction == "callers"
    if not found.calls:
        return [*blocks, Line("No callers." if is_by else "No calls into this project.")]
    # The other end is shown if it is not the requested item itself, but for example a method of the
    # class.
    asked = {each.id for each in found.items}
    far = len(asked) > 1 or any(
        (call.callee if is_by else call.caller).id not in asked for call in found.calls
    )
    rows = [_call(call, is_by=is_by, far=far) for call in found.calls]
    headings = ["where", "who" if is_by else "what", "sure", "times"]
    kinds = ["id", "", "dim", "dim"]
    if far:
        headings.insert(2, "calls" if is_by else "called by")
        kinds.insert(2, "dim")
    blocks.append(Line("Called by" if is_by else "Calls", "heading"))
    blocks.append(Table(headings, rows, kinds))
    if found.more:
        blocks.append(Line(f"  … and {found.more:,} more (--limit)", "dim"))
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


def imports(found: "CodeImports") -> list[Block]:
    blocks = _meant(found.items)
    if found.imports:
        rows = [
            (
                str(each.line),
                _written(each),
                each.target.name if each.target else "-",
                f"{each.target.path}:{each.target.line}" if each.target else "",
            )
            for each in found.imports
        ]
        blocks.append(Line("Imports", "heading"))
        headings = ("line", "written", "is", "where")
        blocks.append(Table(headings, rows, ("number", "", "", "id")))
    else:
        blocks.append(Line("No imports."))
    if not found.importers:
        return [*blocks, Line("Not imported anywhere.")]
    importing = [
        (f"{each.path}:{each.line}", each.importer.name, each.imported.name)
        for each in found.importers
    ]
    blocks.append(Line("Imported by", "heading"))
    blocks.append(Table(("where", "who", "what"), importing, ("id", "", "")))
    if found.more:
        blocks.append(Line(f"  … and {found.more:,} more (--limit)", "dim"))
    return blocks


def _written(each: "CodeImport") -> str:
    text = f"{each.module}: {each.item}" if each.item else each.module
    last = (each.item or each.module).replace("/", ".").replace("::", ".").rpartition(".")[2]
    return f"{text} as {each.bound}" if each.bound and each.bound != last else text


def _meant(items: "Iterable[LocatedItem]") -> list[Block]:
    rows = [(f"{each.path}:{each.line}", each.name, each.signature) for each in items]
    return listing(("where", "name", "signature"), rows, ("id", "", "text"))


def cycles(found: "Cycles") -> list[Block]:
    if not found.cycles:
        return [Line("No cycles.")]
    blocks: list[Block] = []
    for of, between, how in (
        ("files", "files", "import"),
        ("items", "items", "call"),
    ):
        several = [each for each in found.cycles if each.of == of]
        if several:
            told = count(len(several), "group")
            blocks.append(Line(f"{told} of {between} that {how} each other", "heading"))
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


def packages(found: "PackageList") -> list[Block]:
    if not found.name:
        return _all_packages(found.packages)
    blocks: list[Block] = []
    for each in found.packages:
        version = f" {each.version}" if each.version else ""
        blocks.append(Line(f"{each.name}{version}: {each.ecosystem}, {each.manifest}", "heading"))
        if each.targets:
            rows = [(target.kind, target.name, target.path) for target in each.targets]
            blocks.append(Line("Builds"))
            blocks += listing(("kind", "name", "path"), rows, ("type", "", "id"))
        needs = [_needed(needed.name, needed.manifest, needed) for needed in each.dependencies]
        blocks.append(Line("Depends on" if needs else "No dependencies."))
        blocks.append(Table(_NEEDED, needs, ("", "type", "", "dim", "id")))
    needing = [_needed(each.package, each.manifest, each.dependency) for each in found.needed_by]
    if needing:
        who = (
            "Needed by"
            if found.packages
            else f"{found.name} is not part of this project. Needed by"
        )
        blocks.append(Line(who, "" if found.packages else "heading"))
        blocks.append(Table(_NEEDED, needing, ("", "type", "", "dim", "id")))
    elif len(found.packages) == 1:
        blocks.append(Line("No package here depends on it."))
    return blocks


def _all_packages(found: "Sequence[IndexedPackage]") -> list[Block]:
    if not found:
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
        for each in found
    ]
    headings = ("package", "version", "of", "manifest", "targets", "needs")
    return [Table(headings, rows, ("", "", "type", "id", "dim", "dim"))]


def _needed(
    package: str, manifest: str, needed: "PackageDependency"
) -> tuple[str, str, str, str, str]:
    how = ["optional"] if needed.optional else []
    if needed.features:
        how.append(f"with {' and '.join(needed.features)}")
    return package, needed.kind, needed.requirement, ", ".join(how), manifest


def history(found: "FileHistory") -> list[Block]:
    blocks: list[Block] = []
    if not found.commits:
        what = f"touched {found.path}" if found.path else f"mentions {found.words}"
        blocks.append(Line(f"No commit {what}{' yet' if found.path else ''}."))
    rows = [
        (each.commit, each.time[:10], each.subject, count(len(each.files), "file"))
        for each in found.commits
    ]
    blocks.append(Table(("commit", "day", "subject", "files"), rows, ("id", "dim", "text", "dim")))
    if found.together:
        blocks.append(Line("Changed together with", "heading"))
        beside = [
            (each.path, count(each.times, "time"), f"{round(100 * each.share)} %")
            for each in found.together
        ]
        blocks.append(Table(("path", "times", "share"), beside, ("", "dim", "dim")))
    if not found.complete:
        blocks.append(Line(f"Of the newest {found.read:,} commits.", "dim"))
    return blocks


def changed(found: "CodeChanges") -> list[Block]:
    from ctx.code.qualified import separator

    if not found.files:
        return [Line(f"No item differs from {found.since}.")]
    told = ", ".join(
        f"{number:,} {word}"
        for word, number in (
            ("new", found.new),
            ("modified", found.modified),
            ("deleted", found.deleted),
        )
        if number
    )
    since_what = found.since if found.commit else "the beginning: there is no commit yet"
    blocks: list[Block] = [Line(f"{told or 'No item differs'} since {since_what}")]
    for file in found.files:
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


def status(found: "IndexStatus") -> list[Block]:
    return [Line(found.root, "heading"), *_coverage(found.coverage, found.path, found.bytes)]


def indexed(done: "IndexReport") -> list[Block]:
    read = done.added + done.changed
    moved = f"{count(read, 'file')} read, {done.removed:,} gone"
    blocks: list[Block] = [Line(f"The code index is up to date: {moved}.")]
    blocks += _coverage(done.coverage, done.path, done.bytes)
    rows = [(each.path, each.reason) for each in done.left_out]
    if rows:
        blocks.append(Line("Left out", "heading"))
        blocks += listing(("path", "why"), rows)
    return blocks


def _coverage(found: Coverage, path: str, bytes: int) -> list[Block]:
    facts = [
        ("files", f"{found.files:,}, {found.parsed:,} of them read"),
        ("items", f"{found.items:,}"),
        ("edges", f"{found.edges:,}"),
        ("problems", f"in {count(found.problems, 'file')}" if found.problems else ""),
        ("unresolved", count(found.unresolved, "file") if found.unresolved else ""),
        ("left out", f"{found.left_out:,}" if found.left_out else ""),
        ("age", since(found.refreshed_at) if found.refreshed_at else "not complete yet"),
        ("index", f"{path} ({size(bytes)})"),
    ]
    blocks: list[Block] = [
        Table(("field", "value"), [fact for fact in facts if fact[1]], ("field", ""))
    ]
    if found.languages:
        rows = [
            (each.language, count(each.files, "file"), count(each.lines, "line"))
            for each in found.languages
        ]
        blocks.append(Line("Languages", "heading"))
        blocks += listing(("language", "files", "lines"), rows)
    if found.skipped:
        skipped = [(each.reason, count(each.files, "file")) for each in found.skipped]
        blocks.append(Line("Not read", "heading"))
        blocks += listing(("why", "files"), skipped)
    return blocks
