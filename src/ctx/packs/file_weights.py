"""The weights of the signals of files, written by `scripts/ranking/train.py`."""

WEIGHTS = {
    "text": 1.000,
    "path": 0.864,
    "names": 1.057,
    "history": 0.251,
    "meaning": 0.306,
    "mentioned": 0.889,
    "named": 1.045,
    "recent": 0.158,
}
"""The weight of the text is 1."""

SHARPNESS = 5.209
"""The probability of a file grows with the exponential of its score times this."""

CONFIDENCE = (0.193, 0.612)
"""The log odds that the first file is right: a constant, and the factor of the log odds that its
probability among the candidates gives."""
