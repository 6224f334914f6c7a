"""The convex sets to minimise over, their projections, and what users may give instead of them."""
