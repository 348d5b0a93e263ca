"""The page about a run that goes on."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time
import types
import urllib.request

import numpy as np
import pytest
from pages import ask, serving

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.live import Server, Watched

pytest.importorskip("matplotlib", reason="a page has Matplotlib's pictures")

SIZES = {"sampler": "hmc", "warmup": 60, "draws": 60, "seed": 1, "progress": False}


def normal(q):
    return 0.5 * q @ q, q


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "run.surrokit"
    sk.sample(sk.potential(value_and_gradient=normal, dim=1), path=path, **SIZES)
    return path


@pytest.fixture(scope="module")
def server(file):
    """A server of the page about a run that has ended."""
    with serving(Watched(file, 5.0)) as found:
        yield found


def test_a_run_that_ended_has_its_page_and_no_refresh(server):
    status, headers, page = ask(server)
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    assert server.server_address[0] == "127.0.0.1"
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert "4 chains of 60 draws of 1 numbers" in page
    assert 'http-equiv="refresh"' not in page
    server.watched._next = 0.0
    assert server.watched.page() is server.watched.page()  # nothing new needs no new page


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"path": "/?again"}, 200),
        ({"path": "/../etc/passwd"}, 404),
        ({"method": "HEAD"}, 200),
        ({"method": "POST"}, 501),
        ({"host": "elsewhere.example"}, 403),
    ],
)
def test_one_page_is_served_to_this_machine_alone(server, request_, status):
    found = ask(server, **request_)
    assert found[0] == status
    assert ("Verdict" in found[2]) == (status == 200 and request_.get("method") != "HEAD")


def test_ports_and_hosts_that_are_none_are_told(server):
    for port in (-1, 2**16, 1.5, "80"):
        with pytest.raises(ConfigurationError, match="port must be a whole number from 0 to 65535"):
            Server(server.watched, port)
    said = r"cannot listen on port .*; give another port, or 0"
    with pytest.raises(ConfigurationError, match=said):
        Server(server.watched, server.server_port)
    for host in ("", "no such name", "x" * 300):
        said = r"there is no address for host .*; give a name or an address of this machine"
        with pytest.raises(ConfigurationError, match=said):
            Server(server.watched, host=host)
    said = r"cannot listen on port 0 of 192\.0\.2\.1 \(.*an address of this machine"
    with pytest.raises(ConfigurationError, match=said):  # an address of documents, nobody's
        Server(server.watched, host="192.0.2.1")


def test_the_page_follows_a_run(tmp_path):
    """The model itself reads the page about the run that calls it."""
    path, pages = tmp_path / "run.surrokit", {}
    count = 0

    def model(q):
        nonlocal count
        count += 1
        if count in (1, 600):
            time.sleep(0.6)  # the file is written about twice a second
        elif count in (2, 602):
            pages[count] = Watched(path, 5.0).page()
        return normal(q)

    target = sk.potential(value_and_gradient=model, dim=2)
    plain = sk.sample(sk.potential(value_and_gradient=normal, dim=2), **SIZES)
    run = sk.sample(target, path=path, **SIZES)
    np.testing.assert_array_equal(run.draws, plain.draws)
    page = Watched(tmp_path / "<none>", 3.0).page()
    assert '<meta http-equiv="refresh" content="3">' in page
    assert "&lt;none&gt;" in page
    first, page = pages.values()
    assert "refresh" in first
    assert "The run goes on, or was killed: " in page
    assert "This page is read again every 5 seconds." in page
    assert "interrupted" not in page
    assert 'http-equiv="refresh" content="5"' in page
    assert "The run goes on" not in Watched(path, 5.0).page()


def test_readers_share_pages_and_pages_take_a_part_of_the_time(file, monkeypatch):
    from surrokit import live as module

    now, made = [0.0], []

    def slow(run, **_):
        made.append(now[0])
        now[0] += 0.05
        return "page"

    monkeypatch.setattr(module, "page_of", slow)
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    watched = Watched(file, 0.01)
    while now[0] < 1.2:
        assert watched.page() == "page"
        os.utime(file)  # as if more had been written
        now[0] += 0.001
    assert made == pytest.approx([0.0, 0.5, 1.0], abs=0.003)


@pytest.mark.parametrize("where", [(), ("--host", "0.0.0.0")])
def test_the_command_serves_until_it_is_interrupted(tmp_path, where):
    code = "from surrokit.cli.main import main; main()"
    command = [sys.executable, "-c", code, "watch", str(tmp_path / "none"), *where]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        # what begins in the background may ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        host = re.escape(socket.gethostname()) if where else r"127\.0\.0\.1"
        token = r"\?token=[\w-]{43,}" if where else ""
        said = re.fullmatch(
            rf"look at http://{host}:(\d+)/({token}); end with Ctrl-C\n", process.stdout.readline()
        )
        if where:
            told = "whoever has this address may read the page; it is sent without encryption\n"
            assert process.stdout.readline() == told
        page = f"http://127.0.0.1:{said[1]}/{said[2]}"
        with urllib.request.urlopen(page, timeout=60) as answer:
            assert "Report of a run" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "ended; the run goes on\n"
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- who is answered by a server that other machines reach ---

EVERYWHERE = {"host": "0.0.0.0"}


class Waiting:
    """In place of a run that is watched."""

    def page(self):
        return "the page"


@pytest.fixture
def everywhere():
    with serving(Waiting(), **EVERYWHERE) as found:
        yield found


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        pytest.param("127.0.0.2", marks=pytest.mark.skipif(sys.platform != "linux", reason="one")),
        "localhost",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6")),
    ],
)
def test_the_loopback_needs_no_token(host):
    with serving(Waiting(), host=host) as found:
        assert found.token is None
        assert "token" not in found.url
        place = found.url.removeprefix("http://").rstrip("/")
        assert ask(found, host=place, at=found.number)[::2] == (200, "the page")
        assert ask(found, host="elsewhere.example", at=found.number)[0] == 403
        found.server_port = 80  # which a browser leaves out
        assert found.admits("localhost", "")
        assert found.admits("localhost:80", "")


def test_all_other_addresses_need_the_token(everywhere, monkeypatch, capfd):
    token = everywhere.token
    assert len(token) >= 43  # 256 bits
    status, headers, page = ask(everywhere, f"/?token={token}", host="node17.example:80")
    assert (status, page) == (200, "the page")
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert "Set-Cookie" not in headers
    assert "Python" not in headers["Server"]
    assert ask(everywhere, f"/?token={token}", method="HEAD")[::2] == (200, "")
    assert capfd.readouterr() == ("", "")  # nothing is logged
    # a file of hosts may have any number for ``localhost``
    place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("0.0.0.0", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [place])
    with Server(Waiting(), host="localhost") as other:
        assert other.token not in (None, token)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=",
        "/?token={short}",
        "/?token={token}x",
        "/?token={other}",
        "/?Token={token}",
        "/?token=%FF%00",
        "/{token}",
    ],
)
def test_nothing_is_told_without_the_token(everywhere, path, capfd):
    token = everywhere.token
    other = ("A" if token[0] != "A" else "B") + token[1:]
    asked = path.format(token=token, short=token[:-1], other=other)
    for method in ("GET", "HEAD"):
        for name in (None, f"localhost:{everywhere.server_port}", "0.0.0.0"):
            status, headers, page = ask(everywhere, asked, method=method, host=name)
            assert status == 403
            assert "the page" not in page
            assert token not in page + repr(headers)
            assert headers["Referrer-Policy"] == "no-referrer"
    assert capfd.readouterr() == ("", "")


def test_tokens_are_compared_in_constant_time(everywhere, monkeypatch):
    compared = []
    monkeypatch.setattr(secrets, "compare_digest", lambda *both: compared.append(both) or False)
    assert ask(everywhere, f"/?token={everywhere.token}")[0] == 403
    assert compared == [(everywhere.token.encode(),) * 2]


def test_readers_who_go_away_or_say_nothing_are_left(capfd, monkeypatch):
    monkeypatch.setattr(Waiting, "page", lambda self: "x" * 20_000_000)
    with serving(Waiting()) as found:
        where = ("127.0.0.1", found.server_port)
        with socket.create_connection(where) as connection:
            # closed at once and roughly, with all that is on its way
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            host = f"127.0.0.1:{found.server_port}"
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            connection.recv(100)
        monkeypatch.setattr(Server, "patience", 0.1)
        with socket.create_connection(where, timeout=60) as connection:
            assert connection.recv(1) == b""
    assert capfd.readouterr() == ("", "")
