"""Health and cost: what capture does, what agents are given, what models cost, disk, the doctor."""

from typing import NamedTuple

from ctx.errors import UsageError
from ctx.operations import pause
from ctx.operations.cost import Spending, cost
from ctx.operations.health_report import DayUse, health_report
from ctx.page.requests import Answer, GoTo, HtmlPage, PageRequest, PageRoute

_SINCE = "30d"
_HEIGHT = 60
_WIDTH = 10
"""Of a bar in the picture, with the space beside it."""
_UNITS = (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000))


class Column(NamedTuple):
    """A day in the picture: what was given, from the bottom up."""

    x: int
    parts: tuple[tuple[str, float, float], ...]
    """Class, top and height of each."""
    label: str


def health(request: PageRequest) -> Answer:
    with request.reading() as memory:
        report = health_report(memory)
        environment = memory.environment
    spent = cost(environment.user_store, environment.user_config, _SINCE, "day")
    by_model = cost(environment.user_store, environment.user_config, _SINCE, "model")
    most = max((day.total for day in report.days), default=0)
    doctor = request.doctor
    values = {
        "report": report,
        "health": report.health,
        "columns": [_column(place * _WIDTH, day, most) for place, day in enumerate(report.days)],
        "most": most,
        "width": _WIDTH * len(report.days),
        "height": _HEIGHT,
        "given": sum(day.total for day in report.days),
        "spent": spent,
        "by_model": by_model,
        "dollars": _dollars,
        "size": _size,
        "largest": max((each.size for each in report.sizes), default=0),
        "on_disk": sum(each.size for each in report.sizes),
        "can_examine": doctor is not None,
        "hosts": doctor.recording_hosts(request.environment.folder) if doctor else None,
        "diagnosis": doctor.last(request.environment.folder) if doctor else None,
    }
    return HtmlPage("health.html", "Health", values)


def _column(x: int, day: DayUse, most: int) -> Column:
    parts, top = [], float(_HEIGHT)
    named = (
        ("use-start", day.at_start),
        ("use-prompt", day.with_prompts),
        ("use-request", day.on_request),
    )
    for name, tokens in named:
        height = round(_HEIGHT * tokens / most, 2) if most else 0.0
        top -= height
        if height:
            parts.append((name, round(top, 2), height))
    return Column(x, tuple(parts), f"{day.day}: {day.total:,} tokens")


def _dollars(spending: Spending) -> str:
    """What is known of the cost, such as `$1.25`."""
    known = f"${spending.cost_micros / 1_000_000:,.2f}"
    return f"at least {known}" if spending.unpriced else known


def _size(number: int) -> str:
    for name, unit in _UNITS:
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number:,} bytes"


def run_doctor(request: PageRequest) -> Answer:
    if request.doctor is None:
        raise UsageError("This server cannot run the doctor.", hint="Run `ctx doctor`.")
    done = request.doctor.run(request.environment.folder)
    problems, warnings = done.number_of("problem"), done.number_of("warning")
    if not problems and not warnings:
        return GoTo("/health#doctor", "No problems found.")
    return GoTo("/health#doctor", f"Problems: {problems}. Warnings: {warnings}.")


def pause_capture(request: PageRequest) -> Answer:
    home = request.environment.user_store.home
    is_everywhere = request.field("where") == "everywhere"
    place = None if is_everywhere else pause.place_of(request.environment.folder, home)
    done = pause.pause(home, place, None)
    where = "everywhere" if done.project is None else f"in {done.project}"
    return GoTo("/health", f"Capture is paused {where}. Agents still get memory.")


def resume_capture(request: PageRequest) -> Answer:
    home = request.environment.user_store.home
    is_everywhere = request.field("where") == "everywhere"
    place = None if is_everywhere else pause.place_of(request.environment.folder, home)
    done = pause.resume(home, place)
    return GoTo("/health", "Capture is on again." if done.ended else "Capture was not paused here.")


ROUTES = [
    PageRoute("GET", "/health", health),
    PageRoute("POST", "/health/doctor", run_doctor),
    PageRoute("POST", "/health/pause", pause_capture),
    PageRoute("POST", "/health/resume", resume_capture),
]
