"""The workbench of Forebay: simulate and solve IPsec gateways whose crypto is spread over unlike processors.

Times are in seconds, sizes in bytes and rates in bit/s, unless a value carries its unit as text ("50 us", "1 Gbit/s").
"""

from forebay import cluster, plots, stats
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
from forebay.placement import Candidate, Job, Placement
from forebay.run import Packets, Replications, Run
from forebay.scenario import Scenario, highest_rate
from forebay.search import Search, search
from forebay.stats import Difference, Estimate, Until, Warmup, compare, warm_up
from forebay.sweep import sweep
from forebay.table import Table
from forebay.traffic import Goodness, Trace, Traffic, fit, read_trace

__all__ = [
    "Candidate",
    "Chain",
    "Core",
    "Difference",
    "Error",
    "Estimate",
    "FigureError",
    "Finding",
    "Gateway",
    "GatewayError",
    "Goodness",
    "Interrupted",
    "Job",
    "Packets",
    "Placement",
    "PolicyError",
    "Replications",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Search",
    "StudyError",
    "Table",
    "Trace",
    "Traffic",
    "Until",
    "Warmup",
    "__version__",
    "cluster",
    "compare",
    "fit",
    "highest_rate",
    "plots",
    "read_trace",
    "search",
    "size_buffers",
    "stats",
    "sweep",
    "warm_up",
]
