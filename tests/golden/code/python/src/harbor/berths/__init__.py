"""Where ships lie."""

from .quay import Berth, Quay
from ._private import *
