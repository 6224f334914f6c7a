"""Who takes part in the field."""
