"""Small projects of each ecosystem, and what is read out of their manifests (`<ecosystem>.json`).

`python -m tests.golden.packages.make` writes down anew what is read.
"""
