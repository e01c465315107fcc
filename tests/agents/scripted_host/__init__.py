"""A small host that no real program is: it shows that a host is one folder."""
