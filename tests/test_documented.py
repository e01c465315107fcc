"""What the documentation names exists, and what exists is documented.

`docs/reference` is generated, so it is complete (`test_docs.py`). This is about pages that people
write.
"""

import re
from pathlib import Path

import pytest

from ctx.agents.host_setup import known_setups
from ctx.cli import options
from ctx.cli.commands import COMMANDS, command_named, completed
from ctx.config import schema
from ctx.mcp import resources
from ctx.mcp.prompts import PROMPTS
from ctx.mcp.tools import TOOLS
from ctx.page.api_handlers import ENDPOINTS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HAND_WRITTEN = [
    page
    for page in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
    # A changelog also names what is no longer there.
    if page.parent.name != "reference" and page.name != "CHANGELOG.md"
]


def documented_commands(page: Path) -> list[str]:
    """Command lines of ctx in the code of a page, without what is only quoted output."""
    text = page.read_text()
    lines = re.findall(
        r"`(ctx [^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines += re.findall(r"^(?:\$ )?(ctx .+)$", block, re.MULTILINE)
    return lines


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_commands_and_options_exist(page: Path) -> None:
    for line in documented_commands(page):
        words = re.split(r"\s(?:\||&&|<|>|#)\s|\s{2,}", line)[0].replace("'", "").split()[1:]
        names = [word for word in words if not word.startswith("-")]
        if not names or not re.fullmatch(r"[a-z-]+", names[0]):
            continue
        assert names[0] in COMMANDS, f"{page.name}: {line}"
        if names[0] == "help":
            continue
        module, parser = command_named(names[0])
        inner = options.subcommands_of(parser)
        if inner:
            rest = words[words.index(names[0]) + 1 :]
            rest = completed(module, rest)
            subcommand = next((word for word in rest if not word.startswith("-")), "")
            is_word = re.fullmatch(r"[a-z-]+", subcommand)
            assert not is_word or subcommand in inner, f"{page.name}: {line}"
        parsers = [parser, *inner.values()]
        known = {option for each in parsers for option in each._option_string_actions}
        known |= {"-C", "--db", "--set"}
        # In a table, one line may name several options: `--a|--b`.
        used = {part.partition("=")[0] for word in words for part in word.split("|")}
        unknown = {word for word in used if re.fullmatch(r"--[a-z][a-z-]*", word)} - known
        assert not unknown, f"{page.name}: {line}"


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_settings_exist(page: Path) -> None:
    sections = {known.section for known in schema.SETTINGS.values()}
    for section, key in re.findall(r"`([a-z]+)\.([a-z_]+)`", page.read_text()):
        if section in sections and key not in ("py", "md", "db", "toml", "json", "sql", "log"):
            assert f"{section}.{key}" in schema.SETTINGS, f"{page.name}: {section}.{key}"


def test_every_route_is_documented_and_no_other() -> None:
    routes = {(each.method, each.path) for each in ENDPOINTS}
    documented: set[tuple[str, str]] = set()
    table = re.findall(r"^\| (`.+?) \| ", (DOCS / "http-api.md").read_text(), re.MULTILINE)
    for cell in table:
        method, path = "", ""
        for code in re.findall(r"`([^`]+)`", cell):
            if code.startswith("…"):
                # The same request at another address: `POST /review/proposals`, `…/learnings`.
                path = path.rpartition("/")[0] + code.removeprefix("…")
            else:
                method, path = code.split()
            documented.add((method, path))
    assert documented == routes


def test_every_mcp_tool_resource_and_prompt_is_documented_and_no_other() -> None:
    page = (DOCS / "mcp.md").read_text()
    tools = page.partition("## Tools\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^### (?!Errors)(\w+)$", tools, re.MULTILINE)) == set(TOOLS)
    assert set(re.findall(r"^\| `(\w+)` \| [^|]+ \| `ctx ", tools, re.MULTILINE)) == set(TOOLS)
    rest = page.partition("## Resources and prompts\n")[2].partition("\n## ")[0]
    addresses = {resources.CONTEXT, f"{resources.NODE}{{id}}", f"{resources.SESSION}{{id}}"}
    assert set(re.findall(r"`(ctx://[^`]+)`", rest)) == addresses
    assert set(re.findall(r"`([a-z-]+)`", rest)) == set(PROMPTS)


def test_every_host_is_documented() -> None:
    page = (DOCS / "hosts.md").read_text()
    assert [name for name in known_setups.NAMES if f"`{name}`" not in page] == []


BENCH = re.compile(r"python -m bench[\s.]+(\w+)")


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_benchmark_that_is_named_exists(page: Path) -> None:
    named = set(BENCH.findall(page.read_text()))
    paths = (ROOT / "bench" / name for name in named)
    assert [p.name for p in paths if not (p.is_dir() or p.with_suffix(".py").exists())] == []
