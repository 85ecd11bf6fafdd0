"""Placement policies in Python, run by the same scheduler in the same virtual time."""

from __future__ import annotations

from forebay._forebay import Candidate, Job

__all__ = ["Candidate", "Job", "Placement"]


class Placement:
    """A placement policy: the choice of a processor for each job.

    Derive a class and write :meth:`choose`. What it decides may depend only on what it is given and has been given
    before, because a run must be repeatable. Of several runs (replications, sweeps) each gets a deep copy of the
    object; a single run uses the object itself.

    Examples
    --------
    >>> class Greedy(Placement):
    ...     def choose(self, job, candidates):
    ...         return min(candidates, key=lambda one: one.finish)
    """

    def choose(self, job: Job, candidates: tuple[Candidate, ...]) -> Candidate | None:
        """The candidate that gets the job; None leaves the choice to the predicted finish time.

        Parameters
        ----------
        job : Job
            The job. The object is used again for the next one: keep its values and not the object.
        candidates : tuple of Candidate
            The processors that support the job, by their index. These objects, too, are used again.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method choose(self, job, candidates)")

    def begin(self, processors: list[str]) -> None:
        """Called before each run with the names of the processors."""

    def finished(self, processor: int, jobs: int) -> None:
        """Called after a processor, named by its index, has finished a number of jobs."""
