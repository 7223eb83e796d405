"""The path of a call of a tool, step by step, and what its steps need."""
