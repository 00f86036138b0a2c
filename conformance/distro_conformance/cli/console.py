"""Rich's consoles for stdout and stderr. They have a module of their own, so that `output` loads Rich only if something
is printed."""

from __future__ import annotations

from rich.console import Console


class PipedConsole(Console):
    """Raises BrokenPipeError when the reader closes the pipe. Rich would exit with 1, which here means a violation."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


output = PipedConsole(highlight=False, soft_wrap=True)
errors = PipedConsole(stderr=True, highlight=False, soft_wrap=True)
