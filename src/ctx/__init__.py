"""Durable, inspectable memory for coding agents.

The package re-exports nothing: a name is imported from the module that owns it.
ARCHITECTURE.md is the map; tests/test_layers.py holds the order in which modules may
know each other.
"""

__version__ = "0.2.0"
