"""The verbs: plain functions from a workspace and values to values.

An operation joins packages or serves two front ends; it does not print or prompt.
"""
