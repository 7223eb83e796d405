"""``python -m truename`` is the command line."""

import sys

from truename.cli import main

sys.exit(main())
