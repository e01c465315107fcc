"""The numbers of the README, measured beside a floor and a rival on the same machine.

`python -m bench` runs every module here that has a `main()`; `python -m bench objects` runs one.
A figure that misses its limit is shown, not hidden, and does not fail the run. Nothing here is
a test, and no test asserts a speed: what makes a program fast is asserted instead, such as which
modules a start may load (`tests/cli/test_startup.py`).
"""
