from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def script():
    """Serve answers that a test gives: a function of the last part of the URL and the body.

    It returns a status and a text, or None to hang up.
    """
    servers = []

    def serve(answer):
        class Reader(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                found = answer(self.path.rsplit("/", 1)[-1], body)
                if found is None:
                    self.close_connection = True
                    return
                text = found[1].encode()
                self.send_response(found[0])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Reader)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # clients hang up here, and so do servers
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()
