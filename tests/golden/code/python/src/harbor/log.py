"""Writes down what happens."""

import functools
import logging
import sys

try:
    import harbor_fast as fast
except ImportError:
    fast = None

if sys.version_info >= (3, 12):
    from harbor.weather import today
else:
    from harbor.weather import yesterday as today

logger = logging.getLogger(__name__)


def traced(function):
    """Writes down each call."""

    @functools.wraps(function)
    def around(*args, **kwargs):
        note(function.__name__)
        return function(*args, **kwargs)

    return around


def often(times: int = 2):
    def decorate(function):
        return traced(function)

    return decorate


# Not a docstring, but said right before it.
def note(what: object) -> None:
    logger.info("%s: %s", today(), what)


@often(3)
@traced
def shout(what, *, loud=True):
    note(str(what).upper())


handlers = [note, shout]
by_name = {"note": note}
