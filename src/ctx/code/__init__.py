"""The repository as code: which files belong to it.

It knows files and folders. It does not know memory; the two meet as ids in retrieval.
"""
