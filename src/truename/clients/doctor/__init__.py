"""Diagnose clients: predict how each treats its tools, and report findings.

`predict` returns how one client treats each tool, `examine` the findings about clients, their files and lists of
tools. This package starts no server and writes no file.
"""

from truename.clients.doctor.cases import (
    ClientCase,
    ExaminedServer,
    Identity,
    ServerLists,
    StartableServer,
    cases_of,
    find_startable,
    general_dialects,
    identity,
    servers_of,
)
from truename.clients.doctor.connector_findings import check_connectors
from truename.clients.doctor.examine import Diagnosis, DoctorReport, examine
from truename.clients.doctor.file_findings import check_files, would_start
from truename.clients.doctor.rules import RULES
from truename.clients.prediction import Prediction, ToolFate, predict

__all__ = [
    "RULES",
    "ClientCase",
    "Diagnosis",
    "DoctorReport",
    "ExaminedServer",
    "Identity",
    "Prediction",
    "ServerLists",
    "StartableServer",
    "ToolFate",
    "cases_of",
    "check_connectors",
    "check_files",
    "examine",
    "find_startable",
    "general_dialects",
    "identity",
    "predict",
    "servers_of",
    "would_start",
]
