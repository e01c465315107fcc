"""The views of the page, in the order of the navigation."""

from typing import NamedTuple

from ctx.page import (
    code_view,
    graph_view,
    health_view,
    node_view,
    now_view,
    review_view,
    search_view,
    sessions_view,
)
from ctx.page.requests import PageRoute


class NavigationEntry(NamedTuple):
    view: str
    """The name of its template."""
    label: str
    path: str
    key: str
    """What follows `g` on the keyboard."""


NAVIGATION = [
    NavigationEntry("now", "Now", "/now", "n"),
    NavigationEntry("sessions", "Sessions", "/sessions", "s"),
    NavigationEntry("search", "Search", "/search", "f"),
    NavigationEntry("review", "Review", "/review", "r"),
    NavigationEntry("graph", "Graph", "/graph", "g"),
    NavigationEntry("code", "Code", "/code", "c"),
    NavigationEntry("health", "Health", "/health", "h"),
]

ROUTES: list[PageRoute] = [
    *now_view.ROUTES,
    *search_view.ROUTES,
    *review_view.ROUTES,
    *node_view.ROUTES,
    *sessions_view.ROUTES,
    *health_view.ROUTES,
    *graph_view.ROUTES,
    *code_view.ROUTES,
]
