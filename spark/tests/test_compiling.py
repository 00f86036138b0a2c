"""What is compiled, where that is kept, and when it is out of date."""

import ast
import inspect
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import distro_spark.check  # and with it all that mark functions
from distro_spark import compiling

PACKAGE = Path(distro_spark.check.__file__).parent


def test_what_counts_no_references_returns_no_array() -> None:
    """Whoever calls it would let go of an array that it never held."""
    uncounted = [function for function, options in compiling._marked.items() if options]
    assert {function.__annotations__["return"] for function in uncounted} == {"bool", "int", "tuple[int, int]"}


def imported_by(module: ModuleType) -> dict[str, str]:
    """From which module it has each name."""
    body = ast.parse(inspect.getsource(module)).body
    imports = [each for each in body if isinstance(each, ast.ImportFrom)]
    return {name.name: each.module or "" for each in imports for name in each.names}


def test_what_compiled_functions_share_is_in_the_files_whose_digest_their_folder_carries() -> None:
    shared = set()
    for function in compiling._marked:
        imported = imported_by(sys.modules[function.__module__])
        shared |= {imported[name] for name in compiling._names(function.__code__) if name in imported}
    files = {Path(sys.modules[name].__file__ or "") for name in shared if name.startswith("distro_spark")}
    assert PACKAGE / "invariants" / "pace.py" in files
    assert files <= {file for pattern in compiling.SHARED for file in PACKAGE.glob(pattern)}


def test_compiled_code_is_out_of_date_once_a_file_has_changed_from_which_another_takes_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "distro_spark"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "_PACKAGE", package)
    before = compiling._folder.__wrapped__()
    with (package / "invariants" / "pace.py").open("a") as pace:
        pace.write("# changed\n")
    after = compiling._folder.__wrapped__()
    assert before != after
    assert before is not None
    assert not before.exists()
