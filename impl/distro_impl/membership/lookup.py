"""Where the member list comes from when it is written down: the text of `cluster.conf`, and a file that is watched.

The file is read again every five seconds and the new list taken over. Unlike a real server we do not write the list
back into it, sorted and stamped: it is the user's file, and several nodes may read the same one. Source:
docs/protocol #member-list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from distro_impl.logs import logger
from distro_protos.addresses import AddressError, parse_address

POLL_MS = 5_000

log = logger(__name__)


class MemberListError(ValueError):
    """A member list that cannot be used; the message says where and why."""


def parse_member_list(text: str, own_port: int, where: str = "the member list") -> tuple[str, ...]:
    """The members in `text`, sorted, as `ip:P`. Raises MemberListError.

    Several in one line are separated by commas, `#` begins a comment, and who has no port has our own.
    """
    members = {
        _member(entry, own_port, f"{where}, line {number}")
        for number, line in enumerate(text.splitlines(), 1)
        for entry in _entries(line)
    }
    if not members:
        raise MemberListError(f"{where} names no member; write one ip:port in a line")
    return tuple(sorted(members))


class FileMemberLookup:
    """The list in one file, for the node whose main port is `own_port`."""

    def __init__(self, path: Path, own_port: int) -> None:
        self._path, self._own_port = path, own_port
        self._seen, self._problem = "", ""

    def read(self) -> tuple[str, ...]:
        """The list of now. Raises MemberListError."""
        try:
            self._seen = self._path.read_text("utf-8")
        except OSError as error:
            raise MemberListError(f"the member list {self._path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise MemberListError(f"the member list {self._path} is not UTF-8 (byte {error.start})") from error
        return parse_member_list(self._seen, self._own_port, str(self._path))

    def read_if_changed(self) -> tuple[str, ...] | None:
        """The list of now, None when the file is what it was. One that cannot be used is logged and changes nothing."""
        seen = self._seen
        try:
            members = self.read()
        except MemberListError as error:
            if str(error) != self._problem:
                log.error("%s; the members stay as they are", error)
            self._problem = str(error)
            return None
        self._problem = ""
        return members if self._seen != seen else None


def _entries(line: str) -> Iterator[str]:
    for entry in line.partition("#")[0].split(","):
        if entry.strip():
            yield entry.strip()


def _member(entry: str, own_port: int, where: str) -> str:
    try:
        return str(parse_address(entry, own_port))
    except AddressError as error:
        raise MemberListError(f"{where}: {error}") from error
