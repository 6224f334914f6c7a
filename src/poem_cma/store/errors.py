"""What a store complains about."""

__all__ = ["StoreError"]


class StoreError(RuntimeError):
    """A store cannot be used, or does not fit the run; the message says what to do. Nothing was changed."""
