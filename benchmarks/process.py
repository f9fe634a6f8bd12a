"""What a process has used, by the kernel's account (proc(5): /proc/PID/stat, /proc/PID/status)."""

import os
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU that the process and its threads have used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_memory(pid: int) -> int:
    """Return the most bytes that were resident at once since the process began (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    raise ValueError(f"the kernel tells no VmHWM of process {pid}")
