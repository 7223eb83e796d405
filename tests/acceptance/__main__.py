"""The command: ``python -m tests.acceptance [--verbose] FILE...``."""

from __future__ import annotations

import argparse
import sys

from tests.acceptance.driver import main

parser = argparse.ArgumentParser(prog="python -m tests.acceptance", description="Execute acceptance rows.")
parser.add_argument("files", nargs="+", metavar="FILE", help="a file of rows, of either shape")
parser.add_argument("--verbose", action="store_true", help="also say which rows are skipped, and why")
options = parser.parse_args()
sys.exit(main(options.files, sys.stdout, verbose=options.verbose))
