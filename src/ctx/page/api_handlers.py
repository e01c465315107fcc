"""What the HTTP API answers. The shapes are those of `--format json` on the command line."""

from ctx.page import events_api, node_api, review_api, search_api, views_api

ENDPOINTS = [
    *node_api.ENDPOINTS,
    *search_api.ENDPOINTS,
    *events_api.ENDPOINTS,
    *review_api.ENDPOINTS,
    *views_api.ENDPOINTS,
]
