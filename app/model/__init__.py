"""What the dashboard believes, and why. Pure: imports no IO, no clock, no logger and no framework.

It never computes a server's block hashes: it walks those that the server told.
"""
