"""A story: five sessions with one person in one project, and what the sixth has to know."""
