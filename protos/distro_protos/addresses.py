"""Addresses as text: `10.0.0.1:8848`, `nacos-0.nacos:8848`, `[2001:db8::a]:8848`, and lists of them.

The one place where such a text is taken apart. A server names itself and others by these texts, and they are compared
as texts, so what is read is kept as it was written, brackets included; `canonical` is for a caller that joins what
different programs wrote. An id such as `2001:db8::1:80` has an IPv6 address without brackets before its last colon.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple

MAX_PORT = 65_535
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_HOST = re.compile(r"[\w.-]+")
_ENTRY = re.compile(r"\[[^\[\]]*\][^,\s\[\]]*|[^,\s\[\]]+")


class AddressError(ValueError):
    """A text that is no address; the message says what is expected."""


class Address(NamedTuple):
    """`host` is as it was written: an IPv6 address stands in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def ip(self) -> str:
        """As a socket takes it."""
        return without_brackets(self.host)

    @property
    def canonical(self) -> Address:
        """Equal for equal hosts: `[2001:DB8:0:0:0:0:0:A]` and `[2001:db8::a]` are one."""
        return Address(bracketed(_shortest(self.ip)), self.port)

    def moved(self, offset: int) -> Address:
        """Another port of the same host."""
        return Address(self.host, self.port + offset)


def parse_address(text: str, default_port: int | None = None) -> Address:
    """HOST:PORT with an IPv6 address in brackets; HOST alone where there is a default port. Raises AddressError."""
    host, port = split_address(text.strip())
    if not port and default_port is not None and not text.rstrip().endswith(":"):
        port = str(default_port)
    if not _is_host(host):
        raise AddressError(f"'{text}' is no address; write HOST:PORT, an IPv6 address in brackets: [2001:db8::a]:8848")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) <= MAX_PORT:
        raise AddressError(f"'{text}' has no usable port; write HOST:PORT, the main port (8848, say)")
    return Address(host, int(port))


def split_address(text: str) -> tuple[str, str]:
    """Host and port of a text that some program wrote, not checked; the port is empty where there is none."""
    if text.endswith("]"):
        return text, ""
    host, colon, port = text.rpartition(":")
    return (host, port) if colon else (text, "")


def entries(text: str) -> list[str]:
    """The addresses in a list, with commas or spaces between them, in brackets as Java prints it or without."""
    listed = text.strip()
    is_printed = _closes_at(listed) == len(listed) - 1 and not _is_ipv6(listed[1:-1])
    return _ENTRY.findall(listed[1:-1] if is_printed else listed)


def _closes_at(text: str) -> int | None:
    """Where the bracket that the text begins with is closed."""
    depth = 0
    for position, character in enumerate(text if text.startswith("[") else ""):
        depth += (character == "[") - (character == "]")
        if not depth:
            return position
    return None


def bracketed(ip: str) -> str:
    """As it stands before a port."""
    return f"[{ip}]" if ":" in ip and not ip.startswith("[") else ip


def without_brackets(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


@lru_cache(maxsize=1024)
def ip_of(host: str) -> IpAddress | None:
    """None for a name. An IPv4 address may come written as one of IPv6."""
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_loopback(host: str) -> bool:
    found = ip_of(host)
    return found is not None and found.is_loopback


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return host.endswith("]") and _is_ipv6(host[1:-1])
    return _HOST.fullmatch(host) is not None


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _shortest(ip: str) -> str:
    return ipaddress.IPv6Address(ip).compressed if _is_ipv6(ip) else ip.lower()


def one_name(text: str) -> str:
    """The text by which an address is known, whichever program wrote it; what is none stays as it is."""
    try:
        return str(parse_address(text).canonical)
    except AddressError:
        return text.strip()


def is_ip_and_port(text: str) -> bool:
    """Of an instance: an IP address, IPv6 in brackets, and a port."""
    try:
        address = parse_address(text)
        ipaddress.ip_address(address.ip)
    except ValueError:
        return False
    return True
