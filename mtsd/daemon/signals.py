"""Holds signals while the process is not yet, or no longer, ready for them.

Light to import: this runs before everything else.
"""

import signal

STOP = (signal.SIGTERM, signal.SIGINT)
RELOAD = signal.SIGHUP


def hold() -> None:
    """Hold signals that arrive from now on until `release`; dropped if the process ends first."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP, RELOAD})
    # A shell starts background processes with SIGINT ignored, nohup with SIGHUP ignored: then
    # the system would drop the signals instead of holding them.
    for number in (*STOP, RELOAD):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def release() -> None:
    """Deliver signals again, held ones immediately; their handlers must be set."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOP, RELOAD})
