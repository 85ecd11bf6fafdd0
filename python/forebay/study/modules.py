"""The modules of a study, imported from where the study is: a directory, or the package."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import re
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from forebay.study.files import SCRIPT, StudyFiles

__all__ = ["imported"]


@contextmanager
def imported(study: StudyFiles) -> Iterator[types.ModuleType]:
    """Imports ``study.py``, for as long as the context lasts.

    The study is a package then: with ``from .claims import ...`` it imports a ``claims.py`` beside it.
    """
    finder = _Finder(study)
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(f"{finder.package}.{SCRIPT.removesuffix('.py')}")
    finally:
        sys.meta_path.remove(finder)
        for name in [one for one in sys.modules if f"{one}.".startswith(f"{finder.package}.")]:
            del sys.modules[name]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and executes a study's modules by their texts."""

    def __init__(self, study: StudyFiles) -> None:
        self.study = study
        # A folder may have a name that no module has: dots would be packages.
        self.package = f"forebay_study_{re.sub(r'[^0-9A-Za-z_]', '_', study.name)}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == self.package:
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        file = self._file(fullname)
        if file is None:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self.study.path_of(file))

    def exec_module(self, module: types.ModuleType) -> None:
        file = self._file(module.__name__)
        if file is None:
            return
        text, path = self.study.files[file], self.study.path_of(file)
        module.__file__ = path
        # Tracebacks show lines of a study that is in no file.
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        exec(compile(text, path, "exec"), module.__dict__)

    def _file(self, module: str) -> str | None:
        """The study's file that is this module, if there is one."""
        package, _, name = module.rpartition(".")
        file = f"{name}.py"
        return file if package == self.package and file in self.study.files else None
