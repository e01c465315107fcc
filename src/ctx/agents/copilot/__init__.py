"""GitHub Copilot CLI. Every hook loads this file, so it contains no code."""
