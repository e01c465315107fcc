"""Qwen Code. Its hooks are Claude Code's in most respects, and its tools are Gemini CLI's. Every
hook loads this file, so it contains no code."""
