"""Immutable objects and the few pointers that move over them.

An object is bytes named by their hash; a commit is an object that names others; a head is the
name of a commit that has no child here. Writing goes objects first, pointer last, so that a
crash leaves at worst objects that nothing names.

This package knows bytes, hashes, files and history. It does not know what the records in a
batch mean, who captured them, or how they are searched.
"""
