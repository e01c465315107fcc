"""The weights of the signals that rank files, written by `scripts/ranking/train.py`."""

WEIGHTS = {
    "text": 1.0,
    "path": 0.84,
    "names": 0.93,
    "history": 0.3,
    "meaning": 0.24,
    "mentioned": 0.62,
    "named": 0.85,
    "recent": 0.08,
}
"""A file that the words of the task match best has about 1 for them."""
