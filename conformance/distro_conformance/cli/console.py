"""Rich's consoles for stdout and stderr; apart from `output`, which loads them when something is printed."""

from __future__ import annotations

from rich.console import Console


class PipedConsole(Console):
    """When the reader of a pipe goes away Rich exits with 1, which says that a node violates something."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


output = PipedConsole(highlight=False, soft_wrap=True)
errors = PipedConsole(stderr=True, highlight=False, soft_wrap=True)
