"""Who is answered by a server that other machines reach; here, requests come by the loopback."""

from __future__ import annotations

import secrets
import socket
import struct
import subprocess
import sys
import time

import pytest
from asking import ask, serving

from surrokit.errors import ConfigurationError
from surrokit.live import Address, Server

EVERYWHERE = {"host": "0.0.0.0"}


class Waiting:
    """In place of a run that is watched."""

    def page(self):
        return "the page"


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


NUMBERS = [
    "127.0.0.1",
    "127.0.0.2",
    "localhost",
    pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="the machine has no IPv6")),
]


@pytest.mark.parametrize("host", NUMBERS)
def test_the_loopback_needs_no_token(host):
    if host == "127.0.0.2" and sys.platform != "linux":
        pytest.skip("elsewhere than in Linux the loopback is one address")
    with serving(Waiting(), host=host) as found:
        assert found.token is None
        assert "token" not in found.url
        place = found.url.removeprefix("http://").rstrip("/")
        assert ask(found, host=place, at=found.address.number)[::2] == (200, "the page")
        assert ask(found, host="elsewhere.example", at=found.address.number)[0] == 403


def test_a_name_is_trusted_as_the_number_that_it_stands_for(monkeypatch):
    """A file of hosts may have any number for ``localhost``."""
    place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("0.0.0.0", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [place])
    with Server(Waiting(), host="localhost") as found:
        assert found.token is not None


def test_all_other_addresses_need_the_token():
    with serving(Waiting(), **EVERYWHERE) as found:
        token = found.token
        assert len(token) >= 43  # 256 bits
        assert found.url == f"http://{socket.gethostname()}:{found.server_port}/?token={token}"
        status, headers, page = ask(found, f"/?token={token}", host="node17.example:80")
        assert (status, page) == (200, "the page")
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in headers
        assert "Python" not in headers["Server"]
        assert ask(found, f"/?token={token}", method="HEAD")[::2] == (200, "")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?",
        "/?token",
        "/?token=",
        "/?token={short}",
        "/?token={token}x",
        "/?token={other}",
        "/?Token={token}",
        "/?token={token}&token=x",
        "/?token=%FF%00",
        "/{token}",
        "/elsewhere",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nothing_is_told_without_the_token(path, method):
    with serving(Waiting(), **EVERYWHERE) as found:
        token = found.token
        other = ("A" if token[0] != "A" else "B") + token[1:]
        asked = path.format(token=token, short=token[:-1], other=other)
        status, headers, page = ask(found, asked, method=method)
        assert status == 403
        assert "the page" not in page
        assert token not in page + repr(headers)
        assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "0.0.0.0", socket.gethostname()])
def test_the_name_that_is_asked_is_no_token(name):
    with serving(Waiting(), **EVERYWHERE) as found:
        assert ask(found, host=f"{name}:{found.server_port}")[0] == 403


def test_a_token_in_no_alphabet_is_refused():
    with (
        serving(Waiting(), **EVERYWHERE) as found,
        socket.create_connection(("127.0.0.1", found.server_port), timeout=60) as connection,
    ):
        connection.sendall(b"GET /?token=\xe9\xff HTTP/1.0\r\n\r\n")
        assert b" 403 " in connection.recv(1000)


def test_each_server_has_a_token_of_its_own():
    with Server(Waiting(), **EVERYWHERE) as one, Server(Waiting(), **EVERYWHERE) as other:
        assert one.token != other.token


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given, token):
        compared.append((given, token))
        return False

    with serving(Waiting(), **EVERYWHERE) as found:
        monkeypatch.setattr(secrets, "compare_digest", compare)
        assert ask(found, f"/?token={found.token}")[0] == 403
        assert compared == [(found.token.encode(), found.token.encode())]


def test_nothing_is_logged(capfd):
    with serving(Waiting(), **EVERYWHERE) as found:
        for path in (f"/?token={found.token}", "/", f"/x?token={found.token}"):
            ask(found, path)
    assert capfd.readouterr() == ("", "")


def test_a_reader_who_goes_away_is_nothing_to_tell(capfd, monkeypatch):
    monkeypatch.setattr(Waiting, "page", lambda self: "x" * 20_000_000)
    with serving(Waiting()) as found:
        with socket.create_connection(("127.0.0.1", found.server_port)) as connection:
            # closed at once and roughly, with all that is on its way
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            host = f"127.0.0.1:{found.server_port}"
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            connection.recv(100)
        time.sleep(0.3)
    assert capfd.readouterr() == ("", "")


def test_a_reader_who_says_nothing_is_left(monkeypatch):
    monkeypatch.setattr(Server, "patience", 0.1)
    with (
        serving(Waiting()) as found,
        socket.create_connection(("127.0.0.1", found.server_port), timeout=60) as connection,
    ):
        assert connection.recv(1) == b""


@pytest.mark.parametrize("host", ["", "no such name", "x" * 300])
def test_a_host_that_is_none_is_told(host):
    with pytest.raises(
        ConfigurationError,
        match=r"there is no address for host .*; give a name or an address of this machine",
    ):
        Server(Waiting(), host=host)


def test_an_address_of_another_machine_is_told():
    """The address is one of those that documents use; nobody has it."""
    with pytest.raises(
        ConfigurationError,
        match=r"cannot listen on port 0 of 192\.0\.2\.1 \(.*an address of this machine",
    ):
        Server(Waiting(), host="192.0.2.1")


def test_a_browser_leaves_out_the_port_of_the_web():
    found = Address.of("127.0.0.1")
    assert found.hosts(80) == {"127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"}
    assert found.hosts(81) == {"127.0.0.1:81", "localhost:81"}


def test_the_command_prints_the_token_and_warns(tmp_path):
    pytest.importorskip("matplotlib", reason="a page has Matplotlib's pictures")
    command = [sys.executable, "-m", "surrokit", "watch", str(tmp_path / "none"), "--host"]
    process = subprocess.Popen([*command, "0.0.0.0"], stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline(), process.stdout.readline()
        assert said[0].startswith(f"look at http://{socket.gethostname()}:")
        assert "/?token=" in said[0]
        assert said[1] == (
            "whoever has this address may read the page; it is sent without encryption\n"
        )
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
