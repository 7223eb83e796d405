"""The awkward MCP server: legal by the specification, and made of names that clients stumble over."""

from lab.awkward.answers import Answers, Received
from lab.awkward.names import CONSTRUCTS, Construct, awkward_names, construct_of, many_names
from lab.awkward.web import WebServer

__all__ = [
    "CONSTRUCTS",
    "Answers",
    "Construct",
    "Received",
    "WebServer",
    "awkward_names",
    "construct_of",
    "many_names",
]
