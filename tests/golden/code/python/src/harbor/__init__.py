"""A harbor: ships come, lie at a berth, and go."""

from harbor.ships import Ship, Tug as Tugboat
from .berths import *
from . import weather
from .log import note as write_down

__all__ = ["Ship", "Tugboat", "weather", "write_down"]
__version__ = "0.1.0"
