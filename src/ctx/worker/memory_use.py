"""How much memory this process takes."""

import resource
import sys
from contextlib import suppress

_PAGE = resource.getpagesize()


def megabytes() -> float:
    """What is resident now; where the system does not tell, the most that ever was."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE / 2**20
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10
