from .base import Ship, Named
from .tug import Tug

KINDS: dict[str, type[Ship]] = {"tug": Tug, "ship": Ship}
