"""Qwen Code as a host."""
