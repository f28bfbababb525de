"""IO in: the only importers of HTTP clients and zmq. Sources turn bytes into observations and put them in the queue."""
