"""Markdown and code from memory as HTML that cannot run anything.

Raw HTML in markdown is shown as text, addresses other than http, https and mailto are not links,
images are links to what they show, and code is highlighted with classes instead of styles.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from ctx import markdown

_LONGEST = 30_000
"""Characters that are rendered; a longer text is shown as it is."""
_LONGEST_CODE = 100_000
MARKS = ("\ue000", "\ue001")
"""Characters that no text needs and markdown leaves alone, for the begin and the end of a hit."""


def markdown_html(text: str) -> Markup:
    text = markdown.visible(text)
    if len(text) > _LONGEST:
        return Markup("<pre>{}</pre>").format(text)
    return Markup(_parser().render(text))


def inline_markdown(text: str) -> Markup:
    """A text in one line, with emphasis and code. It may stand in a link, so links are text."""
    return Markup(_inline_parser().renderInline(markdown.visible(text)))


_CUT_LINK = re.compile(r"\[([^\[\]]*)\]\(\S*…\Z")


def plain(text: str) -> str:
    """A text in one line without the marks of markdown, for what cannot show them."""
    return inline_markdown(_CUT_LINK.sub(r"\1…", text)).striptags()


def marked(text: str, render: Callable[[str], Markup]) -> Markup:
    """A rendered text, with `<mark>` around what is between `MARKS`."""
    shown = str(render(text))
    return Markup(shown.replace(MARKS[0], "<mark>").replace(MARKS[1], "</mark>"))


def code_html(text: str, language: str = "") -> Markup:
    """A block of code; highlighted if the language is known."""
    text = markdown.visible(text)
    return Markup('<pre class="code"><code>{}</code></pre>').format(_highlighted(text, language))


def code_lines(lines: Sequence[str], path: str) -> list[Markup]:
    """Lines of a file, highlighted by the language of its name."""
    text = markdown.visible("\n".join(lines))
    if len(text) > _LONGEST_CODE:
        return [escape(line) for line in text.split("\n")]
    try:
        lexer = get_lexer_for_filename(path, stripnl=False)
    except ClassNotFound:
        return [escape(line) for line in text.split("\n")]
    # Pygments closes its elements at the end of each line.
    shown = highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix="c-"))
    return [Markup(line) for line in shown.removesuffix("\n").split("\n")]


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    parser.options["highlight"] = lambda text, language, _: str(_highlighted(text, language))
    parser.validateLink = _is_safe_link  # type: ignore[method-assign,assignment]
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    return _with_names(parser)


@cache
def _inline_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    for name in ("link_open", "link_close"):
        parser.add_render_rule(name, lambda *_: "")
    parser.add_render_rule(
        "image", lambda _, tokens, index, *__: str(escape(tokens[index].content))
    )
    return _with_names(parser)


def _with_names(parser: MarkdownIt) -> MarkdownIt:
    """Leave `__init__` as it is: in texts about code, underscores are parts of names."""
    for name in ("em_open", "em_close", "strong_open", "strong_close"):
        parser.add_render_rule(name, _emphasis)
    return parser


def _emphasis(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any
) -> str:
    marks = tokens[index].markup
    return marks if "_" in marks else self.renderToken(tokens, index, options, env)


def _is_safe_link(address: str) -> bool:
    lowered = address.strip().lower()
    return lowered.startswith(("http://", "https://", "mailto:", "#"))


def _link(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any
) -> str:
    tokens[index].attrSet("rel", "noreferrer noopener")
    return self.renderToken(tokens, index, options, env)


def _image(
    self: RendererHTML,  # noqa: ARG001
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,  # noqa: ARG001
    env: Any,  # noqa: ARG001
) -> str:
    """Nothing is loaded from elsewhere, so an image is shown as a link to it."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    shown = token.content or source
    return str(Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(source, shown))


def _highlighted(text: str, language: str) -> Markup:
    if not language or len(text) > _LONGEST_CODE:
        return escape(text)
    try:
        lexer = get_lexer_by_name(language.split()[0].lower(), stripnl=False)
    except (ClassNotFound, IndexError):
        return escape(text)
    shown = highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix="c-"))
    return Markup(shown)
