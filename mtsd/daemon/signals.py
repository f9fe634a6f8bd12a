"""Signals of a process that is not ready for them yet, or not any more: they wait.

Light to import: this is done before everything else.
"""

import signal

STOP = (signal.SIGTERM, signal.SIGINT)
RELOAD = signal.SIGHUP


def hold() -> None:
    """Let what comes from now on wait for `release`; at the end of the process it is dropped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP, RELOAD})
    # A shell starts what it puts into the background with SIGINT ignored, nohup with SIGHUP
    # ignored: then the system would drop what comes, instead of having it wait.
    for number in (*STOP, RELOAD):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def release() -> None:
    """Let signals come, those that have waited at once; their handlers are set."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOP, RELOAD})
