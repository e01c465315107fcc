"""A small host that no real program is: it shows that an adapter is one folder and one line."""
