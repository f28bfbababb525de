"""The commands, one a module: flags, and what it does. What is heavy is imported by the command that needs it."""
