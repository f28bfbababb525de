"""What a vLLM server lacks for the dashboard to show all it can, and the flag to paste for each thing."""
