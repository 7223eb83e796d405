"""Random and mutated input for everything that reads: `python -m tests.fuzz [--seconds N]`."""
