"""A server while a test lasts, and requests to it."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager

from surrokit.live import LOOPBACK, Server


@contextmanager
def serving(watched, **where):
    with Server(watched, **where) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server, path="/", method="GET", host=None, at=LOOPBACK):
    connection = http.client.HTTPConnection(at, server.server_port, timeout=60)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()
