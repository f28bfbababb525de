"""Many servers: what a recorded stream of requests would hit elsewhere, and which replica holds what. Pure."""
