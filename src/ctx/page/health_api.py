"""Health and cost over the HTTP API."""

from typing import Annotated

import msgspec

from ctx.llm.ledger_totals import GroupBy
from ctx.operations.cost import CostReport, cost
from ctx.operations.health_report import DEFAULT_DAYS, HealthReport, health_report
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Days = Annotated[int, msgspec.Meta(ge=1, le=90)]


class HealthQuery(PlaceQuery, frozen=True):
    days: _Days = DEFAULT_DAYS


class CostQuery(PlaceQuery, frozen=True):
    since: str = "30d"
    by: GroupBy = "model"


def show_health(request: PageRequest, query: HealthQuery) -> HealthReport:
    """Show what capture does, what agents are given, and what is on disk."""
    with request.reading() as memory:
        return health_report(memory, query.days)


def show_cost(request: PageRequest, query: CostQuery) -> CostReport:
    """Show what models were asked, and what that cost."""
    with request.reading() as memory:
        environment = memory.environment
    return cost(environment.user_store, environment.user_config, query.since, query.by)


ENDPOINTS = [
    ApiEndpoint("GET", "/health", show_health),
    ApiEndpoint("GET", "/cost", show_cost),
]
