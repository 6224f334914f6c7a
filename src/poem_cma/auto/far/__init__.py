"""Far: pairs of points at the distance at which the function can be seen, and a learned covariance."""
