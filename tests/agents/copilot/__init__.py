"""Copilot CLI as a host."""
