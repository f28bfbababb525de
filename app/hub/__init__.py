"""IO out: numbers events, keeps the recent ones, and fans them out. Knows nothing of blocks."""
