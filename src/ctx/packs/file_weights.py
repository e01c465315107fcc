"""The weights of the signals of files, written by `scripts/ranking/train.py`."""

WEIGHTS = {
    "text": 1.000,
    "path": 0.840,
    "names": 0.930,
    "history": 0.300,
    "meaning": 0.240,
    "mentioned": 0.620,
    "named": 0.850,
    "recent": 0.080,
}
"""The weight of the text is 1."""

SHARPNESS = 5.400
"""The probability of a file grows with the exponential of its score times this."""

CONFIDENCE = (0.113, 0.744)
"""The log odds that the first file is right: a constant, and the factor of the log odds that its
probability among the candidates gives."""
