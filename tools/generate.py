"""Write every generated file of the repository, or with `--check` name those that are stale.

One command and one list, so that CI needs a single freshness check: add a generator to `GENERATORS`, never a script.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Generated = Iterator[tuple[Path, str]]


def protobuf() -> Generated:
    """The Nacos envelope, by the protoc that pyproject.toml pins."""
    from grpc_tools import protoc  # noqa: PLC0415  (a development tool: only this function needs it)

    source = ROOT / "protos"
    includes = Path(protoc.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as out:
        arguments = [
            "protoc",
            f"-I{source}",
            f"-I{includes}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            "distro_protos/nacos.proto",
        ]
        if protoc.main(arguments) != 0:
            sys.exit("generate: protoc failed, see above")
        for written in sorted(Path(out).rglob("nacos_pb2.py*")):
            yield source / written.relative_to(out), written.read_text()


def reference_pages() -> Generated:
    """docs/reference: each page from the registry that it describes."""
    pages = importlib.import_module("pages.reference")
    for name, text in pages.pages().items():
        yield ROOT / "docs" / "reference" / name, text


def schemas() -> Generated:
    """docs/schemas: what each `--json` document is made of."""
    documents = importlib.import_module("schemas")
    for name, text in documents.files():
        yield ROOT / "docs" / "schemas" / name, text


def pictures() -> Generated:
    """docs/explanation: the three stories that explain Distro, drawn from the model."""
    pages = importlib.import_module("pages.pictures")
    for name, text in pages.pictures():
        yield ROOT / "docs" / "explanation" / name, text


GENERATORS: tuple[Callable[[], Generated], ...] = (protobuf, reference_pages, schemas, pictures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    check = parser.parse_args().check
    stale = []
    for path, text in (item for generator in GENERATORS for item in generator()):
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    verb = "stale, run 'make docs'" if check else "written"
    for name in stale:
        print(f"{verb}: {name}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
