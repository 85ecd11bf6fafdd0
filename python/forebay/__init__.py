"""The workbench of Forebay: simulate and solve IPsec gateways whose crypto is spread over unlike processors.

Times are in seconds, sizes in bytes and rates in bit/s, unless a value carries its unit as text ("50 us", "1 Gbit/s").
"""

from forebay._forebay import version as __version__
from forebay.buffers import size_buffers
from forebay.chain import Chain
from forebay.core import Core
from forebay.errors import (
    Error,
    FigureError,
    Finding,
    GatewayError,
    Interrupted,
    PolicyError,
    RunError,
    ScenarioError,
    StudyError,
)
from forebay.gateway import Gateway
from forebay.placement import Placement
from forebay.run import Packets, Replications, Run
from forebay.scenario import Scenario, highest_rate
from forebay.traffic import Goodness, Trace, Traffic, fit, read_trace

__all__ = [
    "Chain",
    "Core",
    "Error",
    "FigureError",
    "Finding",
    "Gateway",
    "GatewayError",
    "Goodness",
    "Interrupted",
    "Packets",
    "Placement",
    "PolicyError",
    "Replications",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Trace",
    "Traffic",
    "__version__",
    "fit",
    "highest_rate",
    "read_trace",
    "size_buffers",
]
