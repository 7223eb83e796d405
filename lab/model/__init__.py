"""A scripted model: four APIs over HTTP, answers that are planned, and a note of everything that a client sent."""

from lab.model.script import Script
from lab.model.server import ModelServer
from lab.model.turn import Offered, Step, Turn

__all__ = ["ModelServer", "Offered", "Script", "Step", "Turn"]
