"""The lab: experiments on the prefix cache of any vLLM server. Knows no dashboard; speaks HTTP in one module."""
