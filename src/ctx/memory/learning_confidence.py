"""The confidence of a learning at a moment.

It depends on how many sessions show the learning, how long ago the last one did, and what
contradicts it. It is computed when it is read, so it fades with time and not with the next session.

Hooks load this module.
"""

from collections.abc import Mapping
from typing import Any

from ctx import clock

CERTAIN = 1000
"""Confidence is in thousandths."""
INFERRED, HUMAN = "inferred", "human"

_MOST_INFERRED = 900
_HALF_LIFE_DAYS = 90
# Confidence does not fade during this time: people go on holiday.
_PATIENCE_DAYS = 30
_DAY_MS = 86_400_000


def confidence(sessions: int, silent_days: float, contradicted: int = 0) -> int:
    """The confidence of an inferred learning, in thousandths."""
    shown: float = 1 - 0.5 ** (sessions / 2)
    patience = max(0.0, silent_days - _PATIENCE_DAYS)
    faded: float = 0.5 ** (patience / _HALF_LIFE_DAYS)
    return round(min(_MOST_INFERRED, CERTAIN * shown) * faded * 0.5**contradicted)


def silent_days(last_seen: str, now_ms: int) -> float:
    seen_ms = clock.parse_iso(last_seen) if last_seen else now_ms
    return max(0, now_ms - (seen_ms or now_ms)) / _DAY_MS


def confidence_at(metadata: Mapping[str, Any], now_ms: int) -> int:
    """The confidence of a learning with this metadata.

    What the user wrote has none, and counts as certain.
    """
    value = metadata.get("confidence", CERTAIN)
    if isinstance(value, float) and 0 <= value <= 1:
        value = round(value * CERTAIN)
    stored: int = value if isinstance(value, int) else CERTAIN
    times, last_seen = metadata.get("times_seen"), metadata.get("last_seen")
    if metadata.get("origin") != INFERRED or not isinstance(times, int) or times < 1:
        return stored
    if not isinstance(last_seen, str):
        return stored
    against = metadata.get("contradicted")
    days = silent_days(last_seen, now_ms)
    return confidence(times, days, against if isinstance(against, int) else 0)
