"""A watchdog: `python watchdog.py PARENT_PID COMMAND…` runs a command that dies with the process that started it.

A server under test must not outlive the kit, even when the kit is killed and no `finally` runs. On Linux the child can
ask for that between fork and exec. A separate small program does it, because code that Python runs between fork and
exec can deadlock in a process with threads (and gRPC has many). On other systems the command just runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # the parent ended before the line above
            sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
