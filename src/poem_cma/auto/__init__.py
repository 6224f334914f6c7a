"""`auto`: POEM where near differences tell the truth, an evolution strategy where they do not."""
