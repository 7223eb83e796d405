"""The site of the documentation: its hooks, its check, and the pages that are generated from the code."""
