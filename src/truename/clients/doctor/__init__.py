"""Diagnose clients: predict what each makes of its tools, and report findings.

`predict` says what one client does to each tool, `examine` what is the matter with clients, their files and lists.
Nothing here starts a server or writes a file.
"""

from truename.clients.doctor.cases import (
    ClientCase,
    ExaminedServer,
    Identity,
    ServerLists,
    Startable,
    cases_of,
    general_dialects,
    identity,
    servers_of,
    startable,
)
from truename.clients.doctor.examine import Diagnosis, DoctorReport, examine
from truename.clients.doctor.file_findings import about_files, would_start
from truename.clients.doctor.prediction import Prediction, ToolFate, predict
from truename.clients.doctor.rules import RULES

__all__ = [
    "RULES",
    "ClientCase",
    "Diagnosis",
    "DoctorReport",
    "ExaminedServer",
    "Identity",
    "Prediction",
    "ServerLists",
    "Startable",
    "ToolFate",
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
