"""The experiments, in the order of their numbers. A new one is a file of its own and a name here."""
