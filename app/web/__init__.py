"""The HTTP edge: routes and nothing else."""
