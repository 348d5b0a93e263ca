"""Where a server listens, and who reaches it there."""

from __future__ import annotations

import ipaddress
import socket

import attrs

from surrokit.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
"""Where a server listens if nothing else is asked for."""

_WEB = 80


@attrs.frozen
class Address:
    """An address of this machine, looked up once.

    What a name stands for may change between two questions, so that a server listens on the same
    number by which it was judged.

    Parameters
    ----------
    given
        The name or number that was asked for.
    number
        The number that it stands for.
    family
        Kind of the number: IPv4 or IPv6.
    """

    given: str
    number: str
    family: socket.AddressFamily

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.number).is_loopback

    @property
    def name(self) -> str:
        """What a browser asks for; of "all addresses", the name of this machine."""
        if ipaddress.ip_address(self.number).is_unspecified:
            return socket.gethostname()
        return _in_address(self.number if self.is_loopback else self.given)

    def hosts(self, port: int) -> frozenset[str]:
        """Return what browsers of this machine say they ask, where only those reach it."""
        names = (self.name, "localhost")
        plain = names if port == _WEB else ()
        return frozenset((*plain, *(f"{name}:{port}" for name in names)))


def look_up(host: str) -> Address:
    """Return an address by its name or number.

    Raises
    ------
    ConfigurationError
        If there is none of that name.
    """
    try:
        if not host:
            raise OSError("there is no name")
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"there is no address for host {host!r} ({getattr(error, 'strerror', None) or error}); "
            f"give a name or an address of this machine, such as {LOOPBACK}, or 0.0.0.0 for all"
        ) from error
    family, *_, place = found[0]
    return Address(host, str(place[0]), family)


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
