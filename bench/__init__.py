"""The benchmarks behind docs/benchmarks.md, measured beside a floor and a baseline.

`python -m bench` runs every module here that has a `main()`; `python -m bench objects` runs one.
`--write` writes the figures to the page (`bench/report.py`). A figure that misses its limit is
marked as missed and does not fail the run. Tests never assert a speed. They assert what makes a
program fast, such as the modules that a start may load (`tests/cli/test_startup.py`).
"""
