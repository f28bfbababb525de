"""The embedded engine: a small, faithful vLLM stand-in, a server of its own. Imports nothing of the dashboard's."""
