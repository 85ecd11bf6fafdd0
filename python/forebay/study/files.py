"""A study's files: those that come with the package, and directories."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path

from forebay import _forebay
from forebay._output import same
from forebay.study.errors import problem

__all__ = ["RESULTS", "SCRIPT", "StudyFiles", "find", "shipped"]

SCRIPT = "study.py"
"""The file that makes a directory a study."""

RESULTS = ("claims.json", "manifest.json", "report.html", "results.json")
"""The files of a directory of results, beside ``study`` and ``scenarios``."""

_ENDINGS = (".py", ".toml", ".ipynb", ".json")


@dataclass(frozen=True)
class StudyFiles:
    """A study as it is on disk or in the package.

    Attributes
    ----------
    name : str
        The directory's name.
    files : dict
        Text by name: ``study.py`` and modules that it imports, scenarios, notebook, measurements.
    directory : Path or None
        Where it came from; ``None``: out of the package.
    """

    name: str
    files: dict[str, str]
    directory: Path | None = None

    def scenario_directory(self) -> str:
        """Where the files that scenarios name are sought."""
        return str(self.directory) if self.directory is not None else "."

    def paths(self) -> list[Path]:
        """Its files on disk."""
        return [self.directory / name for name in self.files] if self.directory is not None else []

    def keep_apart(self, out: Path) -> None:
        """Refuses a directory of results in which a file of the study would be overwritten.

        Raises
        ------
        StudyError
            With the two files.
        """
        outputs = [out / name for name in RESULTS]
        outputs.extend((out / "scenarios").glob("*.toml"))
        for written in outputs:
            for read in self.paths():
                if same(written, read):
                    raise problem(
                        f"the output {written} is the same file as the study's {read}",
                        hint="give another directory; no file was changed",
                    )

    def path_of(self, file: str) -> str:
        """Path of a file for errors and tracebacks."""
        return str((self.directory if self.directory is not None else Path(self.name)) / file)

    def about(self) -> list[str]:
        """The paragraphs of the script's docstring; the first is the title."""
        try:
            text = ast.get_docstring(ast.parse(self.files[SCRIPT]), clean=False)
        except SyntaxError:
            return [self.name]
        if not text or not text.strip():
            return [self.name]
        title, _, rest = inspect.cleandoc(text).partition("\n")
        paragraphs = [" ".join(part.split()) for part in rest.split("\n\n")]
        return [title.strip(), *(part for part in paragraphs if part)]

    def title(self) -> str:
        """The first line of the docstring."""
        return self.about()[0]

    def copy_to(self, directory: Path) -> None:
        """Writes the files into a new directory."""
        directory.mkdir()
        for name, text in self.files.items():
            (directory / name).write_text(text, encoding="utf-8")


def shipped() -> dict[str, StudyFiles]:
    """The studies that come with the package, by name."""
    return {name: StudyFiles(name, dict(files)) for name, files in _forebay.shipped_studies().items()}


def load(directory: Path) -> StudyFiles:
    """Reads a directory: ``study.py`` and other modules, scenarios, notebooks and measurements (``*.json``)."""
    files: dict[str, str] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix in _ENDINGS:
            try:
                files[path.name] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise problem(f"{path} cannot be read: {error}") from error
    return StudyFiles(directory.resolve().name, files, directory)


def find(name: str | Path) -> StudyFiles:
    """A directory if `name` is one that holds ``study.py``, else the shipped study of this name."""
    path = Path(name)
    if (path / SCRIPT).is_file():
        return load(path)
    there = shipped()
    if str(name) in there:
        return there[str(name)]
    raise problem(
        f"no study `{name}`: neither shipped nor a directory",
        hint=f"there are {', '.join(there)}; a directory needs a {SCRIPT}",
    )
