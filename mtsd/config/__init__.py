"""The settings, typed and checked.

`load` reads them from everywhere they can be given; the sections and their keys are those of
`config.example.toml`.
"""

from mtsd.config.given import (
    CONFIGURATION_VARIABLE,
    account_variable,
    environment_variable,
)
from mtsd.config.given_files import doubts, secret_of, unreadable
from mtsd.config.kinds import HIDDEN, is_secret
from mtsd.config.loading import DEFAULT, Loaded, load
from mtsd.config.problems import ConfigurationError, Problem, shown
from mtsd.config.reloading import Reloaded, reloaded
from mtsd.config.settings import (
    FIELDS,
    EndpointSettings,
    FilterSettings,
    LogSettings,
    ReplicaSettings,
    Settings,
    SourceSettings,
    StatusSettings,
    TargetSettings,
    document,
)
from mtsd.config.start import Earliest, FilePosition, GtidStart, Latest, Start

__all__ = [
    "CONFIGURATION_VARIABLE",
    "DEFAULT",
    "FIELDS",
    "HIDDEN",
    "ConfigurationError",
    "Earliest",
    "EndpointSettings",
    "FilePosition",
    "FilterSettings",
    "GtidStart",
    "Latest",
    "Loaded",
    "LogSettings",
    "Problem",
    "Reloaded",
    "ReplicaSettings",
    "Settings",
    "SourceSettings",
    "Start",
    "StatusSettings",
    "TargetSettings",
    "account_variable",
    "document",
    "doubts",
    "environment_variable",
    "is_secret",
    "load",
    "reloaded",
    "secret_of",
    "shown",
    "unreadable",
]
