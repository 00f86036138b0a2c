"""`python -m distro_conformance`, and where `distrocheck` begins: an interrupt counts from here on, before the command
is loaded."""

from __future__ import annotations

from distro_conformance.interruption import interruptible


def main() -> None:
    with interruptible():
        from distro_conformance.cli import main as command  # noqa: PLC0415

        command()


if __name__ == "__main__":
    main()
