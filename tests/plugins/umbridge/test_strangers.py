"""Servers that are asked by pages and by clients that never end, and servers that answer oddly."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import numpy as np
import pytest

import surrokit as sk
import surrokit_umbridge
from surrokit.errors import ConfigurationError, ResultTypeError, ShapeError

JSON = {"Content-Type": "application/json"}
QUESTION = json.dumps({"name": "posterior", "input": [[0.5]]}).encode()


@pytest.fixture(scope="module")
def port():
    target = sk.potential(log_density=lambda q: -float(q @ q), dim=1)
    with surrokit_umbridge.Server(target, port=0) as server:
        yield int(server.url.rpartition(":")[2])


def ask(port, headers, body=QUESTION):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request("POST", "/Evaluate", body=body, headers=headers)
    response = line.getresponse()
    told = json.loads(response.read())
    line.close()
    return response.status, told


def test_a_program_of_this_machine_is_answered(port):
    for headers in (JSON, {**JSON, "Host": f"localhost:{port}"}, {**JSON, "Host": "[::1]"}, {}):
        assert ask(port, headers) == (200, {"output": [[-0.25]]})


def test_the_library_for_cpp_is_answered(port):
    headers = {"Content-Type": "text/plain", "User-Agent": "cpp-httplib/0.15.3"}
    assert ask(port, headers)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON, "Host": "elsewhere.example:4242"}, 403),
        ({**JSON, "Host": "127.0.0.1.elsewhere.example"}, 403),
        ({**JSON, "Origin": "https://elsewhere.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "text/plain;charset=UTF-8", "User-Agent": "Mozilla/5.0"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_page_in_a_browser_evaluates_nothing(port, headers, status):
    answered, told = ask(port, headers)
    assert answered == status
    assert "output" not in told


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999", "9" * 5000])
def test_a_question_without_an_end_is_refused_at_once(port, length):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        head = f"POST /Evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        line.sendall(head.encode())
        answer = line.recv(65536).decode()
    assert answer.split()[1] in ("411", "413")


def test_a_question_that_is_deep_is_refused(port):
    status, told = ask(port, JSON, b"[" * 100_000)
    assert status == 400
    assert "no JSON" in told["error"]["message"]


def slowly(text, pause=0.05):
    """A server that writes an answer letter by letter, without an end; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    url, done = f"http://127.0.0.1:{listener.getsockname()[1]}", threading.Event()

    def write():
        line, _ = listener.accept()
        listener.close()
        with line:
            line.recv(65536)
            try:
                for letter in text:
                    line.sendall(letter)
                    if done.wait(pause):
                        return
            except OSError:
                return

    threading.Thread(target=write, daemon=True).start()
    return url, done


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize("prompt", [HEAD, b"HTTP/1.1 200 OK\r\nX: "])
def test_the_timeout_is_for_the_whole_answer(prompt):
    url, done = slowly([prompt, *[b" "] * 400])
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match=r"took longer than timeout=0\.3 seconds"):
        surrokit_umbridge.connect(url, timeout=0.3, wait=0.0)
    done.set()
    assert time.monotonic() - began < 15.0


def test_an_answer_has_a_limit():
    url, done = slowly([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{"])
    with pytest.raises(ConfigurationError, match="answered with more than 67108864 bytes"):
        surrokit_umbridge.connect(url, timeout=20.0, wait=0.0)
    done.set()


GOOD = {
    "Info": {"protocolVersion": 1.0, "models": ["m"]},
    "ModelInfo": {"support": {"Evaluate": True}},
    "InputSizes": {"inputSizes": [1]},
    "OutputSizes": {"outputSizes": [1]},
}


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("Info", {"protocolVersion": 1.0, "models": "m"}),
        ("Info", {"protocolVersion": 1.0, "models": 3}),
        ("ModelInfo", {"support": ["Evaluate"]}),
        ("ModelInfo", {"support": None}),
        ("InputSizes", {"inputSizes": ["one"]}),
        ("InputSizes", {"inputSizes": [float("inf")]}),
        ("InputSizes", {"inputSizes": [10**30]}),
        ("InputSizes", {"inputSizes": [-2]}),
        ("InputSizes", {"inputSizes": []}),
        ("OutputSizes", {"outputSizes": {"0": 1}}),
        ("OutputSizes", {"outputSizes": [float("nan")]}),
        ("OutputSizes", {"outputSizes": [1.5]}),
        ("OutputSizes", [[[]]]),
    ],
)
def test_a_server_that_introduces_itself_oddly_is_refused(script, what, answer):
    known = {name: json.dumps(each) for name, each in {**GOOD, what: answer}.items()}
    url = script(lambda asked, _: (200, known[asked]))
    with pytest.raises(ConfigurationError, match="no server of the UM-Bridge protocol"):
        surrokit_umbridge.connect(url)


@pytest.mark.parametrize("output", [10**400, [[10**400]], [[[[1]]]], "[" * 20_000, {"a": 1}])
def test_numbers_that_are_none_are_refused(script, output):
    text = f'{{"output": {output if isinstance(output, str) else json.dumps(output)}}}'
    known = {**{name: json.dumps(each) for name, each in GOOD.items()}, "Evaluate": text}
    model = surrokit_umbridge.connect(script(lambda asked, _: (200, known[asked])))
    with pytest.raises((ResultTypeError, ShapeError)):
        model.evaluate(np.zeros(1))
