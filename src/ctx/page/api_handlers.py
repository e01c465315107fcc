"""What the HTTP API answers. The shapes are those of `--format json` on the command line."""

from ctx.page import (
    code_api,
    events_api,
    graph_api,
    health_api,
    node_api,
    now_api,
    review_api,
    search_api,
    sessions_api,
)

ENDPOINTS = [
    *now_api.ENDPOINTS,
    *node_api.ENDPOINTS,
    *search_api.ENDPOINTS,
    *events_api.ENDPOINTS,
    *sessions_api.ENDPOINTS,
    *review_api.ENDPOINTS,
    *graph_api.ENDPOINTS,
    *code_api.ENDPOINTS,
    *health_api.ENDPOINTS,
]
