"""Codex. It calls transcripts rollouts: `rollouts` says where they are and what is in their lines.

Codex copied the hooks of Claude Code: payloads and answers have the same fields. Its tools,
transcripts and limits are its own. Every hook loads this file, so it contains no code.
"""
