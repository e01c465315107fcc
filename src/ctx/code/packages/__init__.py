"""Packages: what a repository is built as, read from its manifests.

Each ecosystem has a module with one function, `read`, that turns the manifests among a project's
files into packages, what they build, and what they depend on. Nothing is run for it, nothing is
asked of a network, and nothing fails: a manifest that makes no sense is a problem in the answer.

`cargo_metadata` is the exception, for whoever asks for it: it lets cargo itself describe a
workspace. It takes care that a stranger's workspace cannot choose what is run.
"""
