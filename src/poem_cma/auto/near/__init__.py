"""Near: exact slopes from differences over tiny distances, and steps of POEM."""
