"""dying_at_start.py: says on standard error that it cannot start, and ends."""

import os
import sys

sys.stderr.write("Connecting to the database\n")
sys.stderr.write(f"Error: the token {os.environ.get('DATABASE_TOKEN', 'none')} was refused\n")
sys.exit(4)
