"""Ctrl-C: one line, exit code 130, and within some seconds the command and its children have ended.

The first interrupt raises KeyboardInterrupt. While the stack unwinds, another error may replace it (a node does not
answer any more), or other code may delay it (a process finishes its run, a JVM its job). If the command ends within
GRACE_S it counts as interrupted, whatever its error is. Otherwise the process exits at once, as it does after a second
interrupt. Child processes that are left are ended in both cases.

A verb that runs until it is interrupted has its own handler. This module is small and not in `cli`, since it is used
before the command is loaded.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

EXIT_CODE = 130
GRACE_S = 2.0
CHILDREN_END_S = 0.7
_SHOW_CURSOR = "\x1b[?25h"

_temporary: set[Path] = set()
"""Directories that are removed if the process exits at once."""
_interrupted = threading.Event()
_reported = threading.Lock()
"""The thread that reports the interrupt acquires this lock and never releases it."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Handle interrupts inside this context, unless an interrupt handler is already set."""
    is_outermost = threading.current_thread() is threading.main_thread()
    is_outermost = is_outermost and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_outermost:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        import psutil  # noqa: F401, PLC0415  (must not be imported during an interrupt: see `_end_children`)

        yield
    except KeyboardInterrupt:
        end()
    finally:
        if is_outermost and not is_interrupted():
            signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupted() -> bool:
    """Whether the command was interrupted. Then all errors are consequences of that."""
    return _interrupted.is_set()


def removes(directory: Path) -> None:
    """Register a directory that its creator removes. If an interrupt leaves no time for that, it is removed here."""
    _temporary.add(directory)


def keeps(directory: Path) -> None:
    """Unregister a directory that has been removed, or must stay."""
    _temporary.discard(directory)


def end() -> NoReturn:
    """Report the interrupt, and exit.

    Python restores the default handlers while it exits, except where a signal is ignored. A second interrupt would then
    end the process by the signal, without exit code 130. The timer of `_interrupt` still limits the time that this
    takes.
    """
    _report()
    if is_interrupted():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_children()
    sys.exit(EXIT_CODE)


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Processes that are started inside this context receive no interrupt; the kit ends them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _interrupt(*_: object) -> None:
    if is_interrupted():
        _end_at_once()
    _interrupted.set()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    patience = threading.Timer(GRACE_S, _end_at_once)
    patience.daemon = True
    patience.start()
    raise KeyboardInterrupt


def _end_at_once() -> NoReturn:
    _report()
    _end_children()
    os._exit(EXIT_CODE)


def _end_children() -> None:
    """End all child processes with psutil, which `interruptible` has imported.

    A first import here would hold the lock of the module. If the main thread then runs a finalizer that never returns,
    the thread of `_end_at_once` would wait for ever.
    """
    import psutil  # noqa: PLC0415

    left = psutil.Process().children(recursive=True)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for child in left:
            with contextlib.suppress(psutil.Error):
                end(child)
        _, left = psutil.wait_procs(left, CHILDREN_END_S)
    for directory in tuple(_temporary):
        shutil.rmtree(directory, ignore_errors=True)


def _report() -> None:
    """Print the line once, and a JSON document if requested, unless the command was not loaded yet."""
    if not _reported.acquire(blocking=False):
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}distrocheck: interrupted\n")
        sys.stderr.flush()
        output = sys.modules.get("distro_conformance.cli.output")
        if "--json" in sys.argv[1:] and output is not None:
            output.print_json("error", {"error": "interrupted", "exit_code": EXIT_CODE})
            sys.stdout.flush()
