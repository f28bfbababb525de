"""Bytes to values and back. Pure: imports no IO, no clock, no logger and no framework."""
