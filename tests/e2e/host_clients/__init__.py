"""Real agents of other hosts, and the scripted model that answers them."""
