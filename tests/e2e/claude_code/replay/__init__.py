"""Real work, replayed: a scripted model and a real client, real files, real failing tests.

Each scenario says what memory must hold afterwards, and what it must not.
"""
