"""Reads and never answers; ignores SIGTERM and the end of its input."""

import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stderr.write("thinking\n")
sys.stderr.flush()
while True:
    time.sleep(60)
