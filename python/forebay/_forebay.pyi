"""The native part of the package; private."""

from collections.abc import Callable
from typing import Any, final

version: str

_Watch = Callable[[int, int], bool | None]

@final
class Model:
    @staticmethod
    def load(path: str, sets: list[str] = ...) -> Model: ...
    @staticmethod
    def parse(text: str, name: str, sets: list[str], directory: str) -> Model: ...
    @property
    def kind(self) -> str: ...
    @property
    def seed(self) -> int: ...
    def resolved(self) -> str: ...
    def resolved_json(self) -> str: ...
    def run(
        self,
        way: str = "simulation",
        seed: int | None = None,
        packets: bool = False,
        policy: Any = None,
        watch: _Watch | None = None,
        threads: int = 1,
        memory_mib: int = 4096,
        cycles: int = 500,
    ) -> Ran: ...
    def replicate(
        self,
        first: int,
        count: int,
        threads: int,
        packets: bool = False,
        policy: Any = None,
        watch: _Watch | None = None,
    ) -> tuple[list[Ran], bool]: ...

@final
class Ran:
    @property
    def seed(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def cut(self) -> int | None: ...
    @property
    def interrupted(self) -> bool: ...
    def document(self) -> str: ...
    def packets(self) -> Table | None: ...

@final
class Table:
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Job:
    """A job that needs a processor. The object is used again for the next job."""

    @property
    def bytes(self) -> int:
        """Bytes of its packets."""
    @property
    def packets(self) -> int:
        """Packets that are bundled in it."""
    @property
    def sa(self) -> int:
        """The security association of its packets."""
    @property
    def service_class(self) -> int:
        """The number of its service class, from 0."""
    @property
    def arrived(self) -> float:
        """When its first packet arrived, in seconds of simulated time."""
    @property
    def now(self) -> float:
        """The time of the decision, in seconds of simulated time."""

@final
class Candidate:
    """A processor that supports a job, with what is predicted for the job there.

    The object is used again for the next job.
    """

    @property
    def index(self) -> int:
        """Its index among the processors of the scenario."""
    @property
    def name(self) -> str:
        """Its name."""
    @property
    def kind(self) -> str:
        """``"cpu"`` or ``"accelerator"``."""
    @property
    def finish(self) -> float:
        """When the job would be finished there, with alpha and beta, in seconds of simulated time."""
    @property
    def cost(self) -> float:
        """The processing time of the job there, in seconds."""
    @property
    def free_at(self) -> float:
        """When the processor would begin with the job, in seconds of simulated time."""
    @property
    def load(self) -> float:
        """The work that is placed on the processor and not finished, in seconds."""
    @property
    def alpha(self) -> float:
        """The factor alpha that is in force."""
    @property
    def jobs(self) -> int:
        """Jobs that are placed on the processor and not finished."""
    @property
    def has_room(self) -> bool:
        """Whether its queue has room; a job that is placed on a full queue waits."""

@final
class Sweep:
    def __init__(
        self,
        text: str,
        name: str,
        sets: list[str],
        directory: str,
        axes: list[tuple[str, list[str]]],
        replications: int = 1,
    ) -> None: ...
    @staticmethod
    def load(
        path: str, sets: list[str], axes: list[tuple[str, list[str]]], replications: int = 1
    ) -> Sweep: ...
    @property
    def points(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def keys(self) -> list[str]: ...
    def point(self, number: int) -> list[str]: ...
    def resolved(self, number: int) -> str: ...
    def run(
        self,
        first: int,
        last: int,
        threads: int = 1,
        watch: _Watch | None = None,
        emit: Callable[[int, str], object] | None = None,
        policy: Any = None,
    ) -> list[str]: ...
    def run_point(self, number: int, policy: Any = None) -> str: ...

def read_scenario(path: str) -> str: ...
def read_trace(path: str) -> tuple[Table, int]: ...
def highest_rate(
    model: Model, loss: float, latency: float | None = None, watch: _Watch | None = None
) -> Ran | None: ...
def bound(model: Model) -> dict[str, float]: ...
def optimum(model: Model) -> dict[str, float] | None: ...
def size_buffers(
    text: str,
    name: str,
    sets: list[str],
    directory: str,
    loss: float,
    most: int,
    by: str | None,
    runs: int | None,
    threads: int,
    watch: _Watch | None = None,
) -> tuple[str, bool]: ...
def gateway_request(socket: str, request: str) -> str: ...
def main(words: list[str]) -> int: ...
def shipped_studies() -> dict[str, dict[str, str]]: ...
def study_quick(model: Model, way: str) -> list[str]: ...
def study_page(findings: str, made: str) -> str: ...
def replaced(text: str, sets: list[str], start: int) -> int | None: ...
def digits(value: float) -> str: ...
def percent(share: float) -> str: ...
def bits(value: float) -> str: ...
def time(seconds: float) -> str: ...
def quantity(text: str) -> tuple[float, str] | None: ...
def estimate(values: list[float], confidence: float = 0.95) -> tuple[float, float]: ...
def student_t(confidence: float, freedom: int) -> float: ...
