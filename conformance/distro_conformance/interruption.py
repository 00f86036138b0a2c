"""Ctrl-C: one line, exit code 130, and within some seconds nothing is left of the command, whatever it was doing.

The first interrupt unwinds what runs. On its way it may become another error (a node that is not answered any more), or
wait for what knows nothing of it (a process that ends its run, a JVM its job). What has ended by then was interrupted,
whatever it says; what has not is ended from outside. So is all at a second interrupt, and each time whatever children
are left.

A verb that runs until it is interrupted has a handler of its own meanwhile. This file is small, and beside `cli`,
because it is at work before the command is loaded.
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
PATIENCE_S = 2.0
CHILDREN_END_S = 0.7
_SHOW_CURSOR = "\x1b[?25h"

_temporary: set[Path] = set()
"""Directories that are removed at the latest when the command is ended from outside."""
_heard = threading.Event()
_said = threading.Lock()
"""Held by whoever says the last word, for ever."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """What is done inside can be interrupted so, unless an interrupt handler is already set."""
    is_ours = threading.current_thread() is threading.main_thread()
    is_ours = is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        import psutil  # noqa: F401, PLC0415  (not when an interrupt is heard: see `_end_children`)

        yield
    except KeyboardInterrupt:
        end()
    finally:
        if is_ours and not is_interrupted():
            signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupted() -> bool:
    """Whether the command was interrupted: then every error is a consequence of that."""
    return _heard.is_set()


def removes(directory: Path) -> None:
    """Whoever made it removes it, unless an interrupt leaves no time for that."""
    _temporary.add(directory)


def keeps(directory: Path) -> None:
    """It has been removed, or is to stay."""
    _temporary.discard(directory)


def end() -> NoReturn:
    """Say so, and leave."""
    _say_it()
    _end_children()
    sys.exit(EXIT_CODE)


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Processes that are started inside never hear of an interrupt: it is for us to end them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _interrupt(*_: object) -> None:
    if is_interrupted():
        _end_at_once()
    _heard.set()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    patience = threading.Timer(PATIENCE_S, _end_at_once)
    patience.daemon = True
    patience.start()
    raise KeyboardInterrupt


def _end_at_once() -> NoReturn:
    _say_it()
    _end_children()
    os._exit(EXIT_CODE)


def _end_children() -> None:
    """The import only looks the module up. A first import would hold the lock of the module while it runs, and the
    main thread may never return from a finalizer that runs meanwhile: the thread of `_end_at_once` would wait for it.
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


def _say_it() -> None:
    """Once. As a document too, unless the command was not even loaded."""
    if not _said.acquire(blocking=False):
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}distrocheck: interrupted\n")
        sys.stderr.flush()
        output = sys.modules.get("distro_conformance.cli.output")
        if "--json" in sys.argv[1:] and output is not None:
            output.print_json("error", {"error": "interrupted", "exit_code": EXIT_CODE})
            sys.stdout.flush()
