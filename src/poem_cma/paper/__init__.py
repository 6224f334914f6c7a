"""The methods of the paper: Algorithm 1 and 2, the rules of Table 1, directions, differences and the theory."""
