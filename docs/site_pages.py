"""Lets mkdocs build the site: the pages outside of docs/, and links as GitHub has them.

The same markdown is read in the repository and on the site. Some pages are in the root of the
repository, where people look for them. The site has them too, so their links, and the links to
them, get other targets there. `mkdocs.yml` names this file as a hook.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

ROOT_PAGES = {
    "README.md": "overview.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""The pages in the root of the repository, and what they are called on the site."""

_ASSET = re.compile(
    r"""<(?:script|img|iframe|audio|video|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?canonical)[^>]*\shref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?((?:https?:)?//[^"')]+)""",
    re.IGNORECASE,
)
_LINK = re.compile(r"(\]\()([^)#\s]+)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    from pymdownx import slugs

    # The same anchors as on GitHub.
    config.mdx_configs["toc"]["slugify"] = slugs.slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return with_site_links(markdown, page.file.src_uri)


def on_post_build(config: Any) -> None:
    from mkdocs.exceptions import PluginError

    for page in sorted(Path(config.site_dir).rglob("*.html")):
        if found := external_assets(page.read_text()):
            raise PluginError(f"{page.name} loads from another server: {', '.join(found)}")


def external_assets(html: str) -> list[str]:
    """Addresses on other servers that a page loads by itself. Links for readers do not count."""
    return [next(filter(None, match.groups())) for match in _ASSET.finditer(html)]


def with_site_links(markdown: str, page: str) -> str:
    """The text of a page, with links to where the pages are on the site."""
    source = next((name for name, uri in ROOT_PAGES.items() if uri == page), f"docs/{page}")

    def relink(match: re.Match[str]) -> str:
        if "://" in match[2]:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        uri = ROOT_PAGES.get(target) or target.removeprefix("docs/")
        return match[1] + posixpath.relpath(uri, posixpath.dirname(page) or ".")

    parts = _CODE.split(markdown)
    return "".join(
        part if number % 2 else _LINK.sub(relink, part) for number, part in enumerate(parts)
    )
