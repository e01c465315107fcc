"""Pairs of texts that mean the same, mined from what people wrote about their code.

    docstring ↔ function          Python, from wheels
    comment ↔ function            other languages, from git repositories
    message ↔ change              the same repositories' history
    heading ↔ section             their documents
    subject ↔ body                their commits
    words ↔ gloss, gloss ↔ use    WordNet: everyday English

    python pairs.py OUTPUT --wheels FOLDER --repositories FOLDER --wordnet FOLDER

Only wheels under permissive licences (MIT, BSD, Apache, ISC, PSF) are read; which repositories to
give is the caller's choice. None of it is kept: the table holds numbers, not texts.
"""

import argparse
import ast
import json
import random
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|CC0)", re.IGNORECASE
)
NOT_PERMISSIVE = re.compile(
    r"\b(L?GPL|AGPL|GNU|Mozilla|MPL|Proprietary|Commercial|EPL)", re.IGNORECASE
)
LONGEST_ABOUT, LONGEST_TEXT = 500, 700
_LARGEST_FILE = 400_000
_FROM_ONE_PLACE = 3_000


class Pair(NamedTuple):
    kind: str
    group: str
    """The package or repository. Negatives come from the same one: they are the hard ones."""
    about: str
    text: str


# Python packages


def of_wheel(path: Path) -> Iterator[Pair]:
    with zipfile.ZipFile(path) as wheel:
        if not is_permissive(wheel):
            return
        group = path.name.split("-")[0].lower()
        for info in wheel.infolist():
            if info.filename.endswith(".py") and info.file_size < _LARGEST_FILE:
                if re.search(r"(^|/)(tests?|_vendor|vendored?|vendored_packages)/", info.filename):
                    continue
                yield from of_python(group, wheel.read(info).decode("utf-8", "replace"))


def is_permissive(wheel: zipfile.ZipFile) -> bool:
    for name in wheel.namelist():
        if re.fullmatch(r"[^/]+\.dist-info/METADATA", name):
            head = wheel.read(name).decode("utf-8", "replace").partition("\n\n")[0]
            said = " ".join(re.findall(r"^(?:License|Classifier: License).*$", head, re.MULTILINE))
            return bool(PERMISSIVE.search(said)) and not NOT_PERMISSIVE.search(said)
    return False


def of_python(group: str, source: str) -> Iterator[Pair]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        doc = ast.get_docstring(node)
        if not doc or not len(doc) >= 20 or len(node.body) < 2:
            continue
        summary, _, rest = plain(doc).partition("\n\n")
        head = lines[node.lineno - 1 : node.body[0].lineno - 1]
        body = lines[(node.body[0].end_lineno or 0) : node.end_lineno]
        code = "\n".join([*head, *body])
        if isinstance(node, ast.ClassDef):
            code = code[:600]
        if len(summary) >= 20 and len(code) >= 60:
            yield Pair("function", group, summary, code)
        if len(summary) >= 20 and len(rest) >= 60:
            yield Pair("document", group, summary, rest)


# Repositories


COMMENT = re.compile(r"[ \t]*(///?!?|#|\*/?|/\*\*)(?![\[\w])[ \t]?(.*)")
ATTRIBUTE = re.compile(r"[ \t]*(@|#\[)")
FUNCTION = re.compile(
    r"[ \t]*(?:(?:pub|export|default|public|private|protected|static|final|async|override|abstract"
    r"|unsafe|const|internal|open|inline|virtual)(?:\([a-z]+\))?[ ])*"
    r"(?:fn|func|fun|function|def|class|struct|interface|trait|impl|type|enum|const|void|int|boolean"
    r"|[A-Z]\w*(?:<[^>]*>)?)[ ]"
)
CODE = {
    ".go",
    ".rs",
    ".js",
    ".jsx",
    ".ts",
    ".tsx",
    ".java",
    ".rb",
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".kt",
    ".swift",
    ".php",
    ".cs",
    ".scala",
}
PROSE = {".md", ".rst", ".adoc", ".markdown", ".txt"}


def git(repository: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=True
    )
    return answer.stdout.decode("utf-8", "replace")


def of_tree(group: str, repository: Path) -> Iterator[Pair]:
    chosen = []
    for line in git(repository, "ls-tree", "-r", "-l", "HEAD").splitlines():
        (_, _, blob, size), path = line.split("\t")[0].split(), line.split("\t")[1].strip('"')
        if not size.isdigit() or int(size) > 150_000:
            continue
        if re.search(
            r"(^|/)(vendor|node_modules|third_party|dist|fixtures|testdata|__tests__|tests?)/", path
        ):
            continue
        if Path(path).suffix in CODE | PROSE:
            chosen.append((blob, Path(path).suffix))
    random.Random(group).shuffle(chosen)
    chosen = chosen[:_FROM_ONE_PLACE]
    for (_, suffix), text in zip(
        chosen, blobs(repository, [blob for blob, _ in chosen]), strict=True
    ):
        yield from of_document(group, text) if suffix in PROSE else of_comments(group, text)


def blobs(repository: Path, names: list[str]) -> Iterator[str]:
    answer = subprocess.run(
        ["git", "-C", str(repository), "cat-file", "--batch"],
        input="\n".join(names).encode(),
        capture_output=True,
        check=True,
    ).stdout
    begin = 0
    for _ in names:
        head = answer.index(b"\n", begin)
        size = int(answer[begin:head].split()[-1])
        yield answer[head + 1 : head + 1 + size].decode("utf-8", "replace")
        begin = head + 2 + size


def of_comments(group: str, source: str) -> Iterator[Pair]:
    lines = source.splitlines()
    comment: list[str] = []
    for number, line in enumerate(lines):
        if said := COMMENT.match(line):
            comment.append(said[2])
        elif comment and not ATTRIBUTE.match(line):
            about = plain("\n".join(comment)).partition("\n\n")[0]
            comment = []
            if len(about) < 25 or re.search(
                r"copyright|licen[sc]e|eslint|TODO", about, re.IGNORECASE
            ):
                continue
            if FUNCTION.match(line):
                yield Pair("function", group, about, _block(lines[number : number + 40]))


def _block(lines: Sequence[str]) -> str:
    """Up to where the indentation comes back to that of the first line."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    for number, line in enumerate(lines[1:], 2):
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return "\n".join(lines[:number])
    return "\n".join(lines)


def of_document(group: str, text: str) -> Iterator[Pair]:
    # Underlined headings become those with signs in front.
    text = re.sub(
        r"^(\S.{2,80})\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$", r"# \1", text, flags=re.MULTILINE
    )
    sections = re.split(r"^[#=]{1,5}[ \t]+(\S.{3,100})$", text, flags=re.MULTILINE)
    title = ""
    for heading, body in zip(sections[1::2], sections[2::2], strict=True):
        title = title or heading
        body = plain(body)
        if len(body) >= 80:
            about = heading if heading == title else f"{title}: {heading}"
            yield Pair("document", group, plain(about), body)
        for one, two in zip(paragraphs := re.split(r"\n{2,}", body), paragraphs[1:], strict=False):
            if min(len(one), len(two)) >= 120:
                yield Pair("neighbours", group, one, two)


def of_history(group: str, repository: Path, limit: int) -> Iterator[Pair]:
    log = git(
        repository, "log", "--no-merges", f"-n{limit}", "--format=%x01%s%x02%b%x03", "-p", "-U3",
        "--diff-filter=M", "--no-renames", "--", *(f"*{suffix}" for suffix in (*CODE, ".py")),
    )  # fmt: skip
    for entry in log.split("\x01")[1:]:
        message, _, patch = entry.partition("\x03")
        subject, _, body = message.partition("\x02")
        body = plain(
            re.sub(r"^[A-Za-z-]+-[Bb]y:.*$|^\(?cherry.picked.*$", "", body, flags=re.MULTILINE)
        )
        if len(body) >= 60 and len(subject) >= 15:
            yield Pair("message", group, subject, body)
        hunks = re.split(r"^@@ .*? @@ ?", patch, flags=re.MULTILINE)[1:]
        if (
            not 1 <= len(hunks) <= 6
            or len(subject) < 15
            or re.match(r"bump|release|merge|update dep|v?\d", subject, re.IGNORECASE)
        ):
            continue
        for hunk in hunks[:2]:
            after = "\n".join(
                line[1:] for line in hunk.split("\ndiff --git")[0].splitlines() if line[:1] in " +"
            )
            if len(after) >= 80:
                yield Pair("change", group, f"{subject}\n{body[:300]}".strip(), after)


# WordNet


def of_wordnet(folder: Path) -> Iterator[Pair]:
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("utf-8", "replace").splitlines():
            if line.startswith("  "):
                continue
            fields, _, gloss = line.partition(" | ")
            count = int(fields.split()[3], 16)
            names = [fields.split()[4 + 2 * place].replace("_", " ") for place in range(count)]
            meaning, *uses = re.split(r'; "', gloss.strip())
            names = [re.sub(r"\(\w+\)$", "", name) for name in names]
            yield Pair("gloss", part, ", ".join(names), meaning)
            for use in uses:
                yield Pair("use", part, f"{names[0]}: {meaning}", use.strip('" '))


# All of them


def plain(text: str) -> str:
    """Prose without markup, links and directives."""
    text = re.sub(r"```.*?```|<!--.*?-->|<[^>\n]{1,200}>", " ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]\n]*)\]\([^)\n]*\)|https?://\S+", r"\1", text)
    text = re.sub(r"^\.\. .*$|^:\w+:.*$|^[ \t]*[-=~^*]{3,}[ \t]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`([^`\n]*)`|[`*]+", r"\1", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"\n\s*\n+", "\n\n", text)).strip()


def is_english(pair: Pair) -> bool:
    """As far as letters tell. The table has no pieces of other scripts."""
    foreign = sum(character > "\x7f" for character in pair.text)
    return pair.about.isascii() and foreign <= len(pair.text) / 20


def mined(wheels: Path | None, repositories: Path | None, wordnet: Path | None) -> Iterator[Pair]:
    for path in sorted(wheels.glob("*.whl")) if wheels else ():
        found = list(of_wheel(path))
        random.Random(path.name).shuffle(found)
        yield from found[:_FROM_ONE_PLACE]
    for path in sorted(repositories.iterdir()) if repositories else ():
        group = path.name.lower()
        found = list(of_tree(group, path / "repo"))
        random.Random(group).shuffle(found)
        yield from found[: 4 * _FROM_ONE_PLACE]
        yield from of_history(group, path / "repo", _FROM_ONE_PLACE)
    if wordnet:
        yield from of_wordnet(wordnet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--repositories", type=Path)
    parser.add_argument("--wordnet", type=Path)
    options = parser.parse_args()
    counts: dict[str, int] = {}
    with options.output.open("w", encoding="utf-8") as output:
        for pair in mined(options.wheels, options.repositories, options.wordnet):
            if is_english(pair):
                cut = pair._replace(about=pair.about[:LONGEST_ABOUT], text=pair.text[:LONGEST_TEXT])
                output.write(json.dumps(cut) + "\n")
                counts[pair.kind] = counts.get(pair.kind, 0) + 1
    print(counts, file=sys.stderr)


if __name__ == "__main__":
    main()
