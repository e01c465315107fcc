"""Templates, and the values in them as HTML.

Everything is escaped, and hidden characters (bidi marks, zero-width characters) are made visible:
Jinja2 calls `_visible` for each value that a template prints. Only markdown and code that are
rendered here, and drawings that a view makes, are HTML.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import cache
from textwrap import dedent
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import ctx
from ctx import clock, markdown
from ctx.operations.search import TextPart
from ctx.page import html_text

_FOLDER = os.path.dirname(__file__)
STATIC = os.path.join(_FOLDER, "static")
_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)
"""Of the page that is rendered."""
_FENCED = re.compile(r"\[[^\n]*\n  (`{3,})\n(.*)\n  \1(.*)", re.DOTALL)
"""An item whose text could not be read as a part of it otherwise."""


def render(template: str, values: Mapping[str, Any]) -> str:
    _zone.set(values.get("zone", UTC))
    text = _environment().get_template(template).render(values)
    # The name of a folder may not be UTF-8.
    return text.encode("utf-8", "backslashreplace").decode()


def compile_templates() -> None:
    """Compile all templates, so that the first page does not wait for it."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(os.path.join(_FOLDER, "templates")),
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_visible,
    )
    environment.filters |= {
        "age": _age,
        "time": _time,
        "day": lambda value: str(local_time(value, _zone.get()))[:10],
        "number": _number,
        "count": _count,
        "path": _path,
        "markdown": html_text.markdown_html,
        "code": html_text.code_html,
        "first_line": first_line,
        "inline": html_text.inline_markdown,
        "plain": html_text.plain,
        "excerpt": _excerpt,
        "without_label": _without_label,
        "field": _field,
    }
    environment.globals |= {"version": ctx.__version__, "bar": bar}
    return environment


def _visible(value: Any) -> Any:
    return markdown.visible(value) if type(value) is str else value


def _field(value: str) -> Markup:
    """A text in a field of a form: as it is, because the form sends it back."""
    return escape(value)


def local_time(value: str, zone: tzinfo) -> datetime | None:
    """A time in a zone; None if it is no time, or one that no clock has."""
    ms = clock.parse_iso(value)
    try:
        return None if ms is None else datetime.fromtimestamp(ms // 1000, zone)
    except (OSError, OverflowError, ValueError):
        return None


def _time(value: str | None, form: str = "%Y-%m-%d %H:%M") -> Markup:
    """A time in the zone of the browser; the title has all of it."""
    at = local_time(value, _zone.get()) if value else None
    return _time_element(value, at, f"{at:{form}}" if at else value)


def _age(value: str | None) -> Markup:
    """How long ago, such as `3 d ago`."""
    at = local_time(value, _zone.get()) if value else None
    shown = f"{clock.age(clock.wall_s() - at.timestamp())} ago" if at else value
    return _time_element(value, at, shown)


def _time_element(value: str | None, at: datetime | None, shown: str | None) -> Markup:
    element = Markup('<time datetime="{}" title="{}">{}</time>')
    return element.format(value, at or value, shown) if value else Markup("")


def _number(value: float) -> str:
    return f"{value:,}"


def _count(value: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 node`, `2 nodes`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def _path(value: str) -> str:
    """A text as one part of an address."""
    return quote(value, safe="", errors="replace")


def first_line(text: str, most: int = 160) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _excerpt(parts: Iterable[TextPart]) -> Markup:
    """What a search found in a node, with its hits marked."""
    begin, end = html_text.MARKS
    text = "".join(f"{begin}{each.text}{end}" if each.is_match else each.text for each in parts)
    return html_text.marked(text, html_text.inline_markdown)


def _without_label(text: str, label: str) -> str:
    """An item of a context without the mark of its list, the name of its node, and its fence."""
    text = text.removeprefix("- ")
    if fenced := _FENCED.fullmatch(text):
        return dedent(fenced[2]) + fenced[3]
    if text.startswith((f"[{label}] ", f"[{label}, ")):
        return text.partition("] ")[2]
    return text


def bar(part: float, whole: float, label: str) -> Markup:
    """A share as a bar. Styles in attributes are not allowed, attributes of SVG are."""
    share = 0.0 if whole <= 0 else min(1.0, part / whole)
    return Markup(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"'
        ' aria-label="{0}"><rect class="bar-whole" width="100" height="8"/>'
        '<rect class="bar-part" width="{1}" height="8"/></svg>'
    ).format(label, f"{share * 100:.1f}")
