"""Immutable objects and the few pointers that move over them.

An object is bytes named by their hash; a commit is an object that names others; a head is the name
of a commit that has no child here. Objects are written first and the pointer last, so a crash
leaves at worst objects that nothing refers to.

This package handles bytes, hashes, files and history. It does not interpret the records in a batch,
and contains nothing about capture or search.
"""
