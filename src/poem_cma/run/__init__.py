"""What every run shares: the loop, the objective, random numbers, steps in flight, checks, files and progress."""
