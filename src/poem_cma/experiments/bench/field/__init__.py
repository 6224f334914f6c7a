"""The field: black boxes that somebody else would write, played by our methods and by those a user would pick."""
