"""Who else may read a file with a secret, or write what mtsd trusts: warnings, by the modes.

Only files' own modes and those of their folders are looked at: whether others get that far depends
on the folders above, and may change. An access control list shows as the mode of the group.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = 0
_OF_GROUP: Final = "its group"
_OF_OTHERS: Final = "others"
_CHMOD: Final = {_OF_GROUP: "g", _OF_OTHERS: "o"}


@dataclass(frozen=True, slots=True)
class Account:
    """Whose process this is; `groups` are all of them, `private`: nobody else has its own one."""

    uid: int
    gid: int
    groups: frozenset[int]
    private: bool

    @classmethod
    def of_this_process(cls) -> "Account":
        """Return the effective one.

        A group with the name of its only user is that user's alone, by the convention of those
        distributions on which new files are writable by the group (pam_umask, usergroups).
        """
        uid, gid = os.geteuid(), os.getegid()
        try:
            private = pwd.getpwuid(uid).pw_name == grp.getgrgid(gid).gr_name
        except KeyError:
            private = False
        return cls(uid, gid, frozenset(os.getgroups()) | {gid}, private)


@dataclass(frozen=True, slots=True)
class Mode:
    """What counts of a file: its permissions, and whose it is."""

    mode: int
    uid: int
    gid: int

    @classmethod
    def of(cls, path: Path) -> "Mode | None":
        """Return that of a file or a folder; None if there is none."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_mode, status.st_uid, status.st_gid)

    def readers(self, account: Account) -> tuple[str, ...]:
        """Return who may read it without need.

        `root:mtsd 0640` is the usual way to let a service read a file that it may not write: the
        process is not the owner, and needs the group. Root needs none, and does not know which of
        them the daemon has, if this is a command.
        """
        needed = self.gid in {_ROOT, account.gid} or account.uid == _ROOT
        needed = needed or (self.uid != account.uid and self.gid in account.groups)
        return self._who(stat.S_IRGRP, stat.S_IROTH, group=not needed)

    def writers(self, account: Account) -> tuple[str, ...]:
        """Return who else may write it; of a folder, replace what is in it."""
        if stat.S_ISDIR(self.mode) and self.mode & stat.S_ISVTX:
            return ()
        own = self.gid == _ROOT or (
            self.gid == account.gid and account.private and self.uid in {_ROOT, account.uid}
        )
        return self._who(stat.S_IWGRP, stat.S_IWOTH, group=not own)

    def _who(self, by_group: int, by_others: int, *, group: bool) -> tuple[str, ...]:
        readers = [_OF_GROUP] if group and self.mode & by_group else []
        return (*readers, _OF_OTHERS) if self.mode & by_others else tuple(readers)


def readable(path: Path, what: str, account: Account, instead: str = "") -> Iterator[str]:
    """Yield a warning if others may read a file, which holds `what`; `instead`: another remedy."""
    mode = Mode.of(path)
    if mode is not None and (who := mode.readers(account)):
        remedy = f"chmod {_letters(who)}-r{instead}"
        yield f"{path} holds {what} and is readable by {_named(who)}: {remedy}"


def writable(path: Path, account: Account) -> Iterator[str]:
    """Yield a warning if others may write a file, or replace it in its folder."""
    mode = Mode.of(path)
    if mode is not None and (who := mode.writers(account)):
        yield (
            f"{path} is writable by {_named(who)}, who decide by it where mtsd connects and what it"
            f" trusts: chmod {_letters(who)}-w"
        )
    try:
        folders = dict.fromkeys((path.absolute().parent, path.resolve().parent))
    except OSError:
        return
    for folder in folders:
        mode = Mode.of(folder)
        if mode is not None and (who := mode.writers(account)):
            yield (
                f"{folder} is writable by {_named(who)}, who may replace {path.name} in it: chmod"
                f" {_letters(who)}-w"
            )


def _named(who: tuple[str, ...]) -> str:
    return " and ".join(who)


def _letters(who: tuple[str, ...]) -> str:
    return "".join(_CHMOD[each] for each in who)
