"""Packages: what a repository is built as, read from its manifests.

Each ecosystem has a module with a function `read` that turns the manifests among a project's files
into packages, their targets, and their dependencies. No program is run, the network is not used,
and nothing fails: an invalid manifest is reported as a problem.

`cargo_metadata` is the exception, on request: it lets cargo describe a workspace, and ensures that
an untrusted workspace cannot choose what is run.
"""
