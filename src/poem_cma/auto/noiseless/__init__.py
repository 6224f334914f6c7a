"""No noise: quasi-Newton steps on finite differences."""
