"""The arena: our methods and their peers on the same problems, in one run (``poem-cma bench``)."""
