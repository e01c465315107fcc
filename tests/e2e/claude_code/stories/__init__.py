"""Stories: seven sessions with one person in one project, and what the eighth has to know."""
