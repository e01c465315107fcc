"""What an agent is given of a project's store."""
