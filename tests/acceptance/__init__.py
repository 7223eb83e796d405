"""The acceptance driver: rows of the seeds, each executed against the public API.

``python -m tests.acceptance FILE...`` prints a line for each row that fails and, last, ``N passed, N failed, N
skipped``. It only translates (`words` has every table) and compares (`verdict`); it holds no expected value.
"""
