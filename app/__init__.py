"""PrefixScope: shows vLLM's automatic prefix caching at work, live."""

__version__ = "0.1.0"
