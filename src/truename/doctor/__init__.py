"""What is wrong today: rules, what a client would make of the tools it has, and the findings about both.

`predict` says what one client does to each tool, `examine` what is the matter with clients, their files and lists.
Nothing here starts a server or writes a file.
"""

from truename.doctor.case import Case, Lists, Server
from truename.doctor.examine import Diagnosis, Report, examine
from truename.doctor.files import about_files
from truename.doctor.material import Identity, Startable, cases_of, general_dialects, identity, servers_of, startable
from truename.doctor.prediction import Fate, Prediction, predict
from truename.doctor.rules import RULES
from truename.doctor.secrets import would_start

__all__ = [
    "RULES",
    "Case",
    "Diagnosis",
    "Fate",
    "Identity",
    "Lists",
    "Prediction",
    "Report",
    "Server",
    "Startable",
    "about_files",
    "cases_of",
    "examine",
    "general_dialects",
    "identity",
    "predict",
    "servers_of",
    "startable",
    "would_start",
]
