"""Targets served: the same numbers to the bit, and no answer for pages and endless requests."""

from __future__ import annotations

import http.client
import json
import socket
import threading

import numpy as np
import pytest

import surrokit as sk
import surrokit_umbridge
from surrokit.errors import ConfigurationError, EvaluationError
from surrokit_problems.lynx_hare import lynx_hare

JSON = {"Content-Type": "application/json"}
QUESTION = json.dumps({"name": "posterior", "input": [[0.5]]}).encode()


def log_density(q):
    return -float(q @ q / 2 + np.sum(q**4) / 10)


def slope(q):
    return -(q + 0.4 * q**3)


TWO = sk.potential(log_density=log_density, gradient=slope, dim=2)


@pytest.fixture
def serve():
    """Serve targets on free ports."""
    servers = []

    def start(target, **settings):
        servers.append(surrokit_umbridge.Server(target, port=0, **settings))
        return servers[-1].url

    yield start
    for server in servers:
        server.close()


def test_a_map_behind_a_server_is_the_same_to_the_bit(serve):
    def outputs(q):
        return np.array([q[0] * q[1], np.exp(q[0]), q[1]])

    def jacobian(q):
        return np.array([[q[1], q[0]], [np.exp(q[0]), 0.0], [0.0, 1.0]])

    data = {"data": np.ones(3), "noise_sd": 0.5, "dim": 2}
    inside = sk.forward_potential(outputs, jacobian, **data)
    served = surrokit_umbridge.potential(
        serve(inside), "forward", jacobian=True, data=np.ones(3), noise_sd=0.5
    )
    at = np.array([[0.3, -0.7], [1.0, 2.0]])
    both = (each.forward_and_jacobian(at) for each in (served, inside))
    for ours, theirs in zip(*both, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_density_behind_a_server_is_the_same_to_the_bit(serve):
    bounds, z = {"a": (-3.0, None), "b": None}, np.array([[0.1, 0.2], [-0.4, 1.0]])
    inside = sk.potential(log_density=log_density, gradient=slope, parameters=bounds)
    served = surrokit_umbridge.potential(serve(inside), parameters=bounds)
    both = (each.value_and_gradient(z) for each in (served, inside))
    for ours, theirs in zip(*both, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_density_is_served_in_the_users_coordinates(serve):
    target = sk.potential(log_density=log_density, gradient=slope, parameters={"a": (0, 1)})
    model = surrokit_umbridge.connect(serve(target, name="mine"))
    assert model.name == "mine"
    assert model.supported == {"Evaluate", "Gradient", "ApplyJacobian"}
    x = np.array([0.3])
    assert model.evaluate(x) == log_density(x)
    assert model.gradient(x, np.array([2.0])) == 2.0 * slope(x)
    assert model.apply_jacobian(x, np.array([3.0])) == 3.0 * slope(x)
    assert [model.evaluate(np.array([beyond])).item() for beyond in (-1.0, 0.0, 1.0)] == [
        -np.inf
    ] * 3


@pytest.mark.parametrize("kind", [SystemExit, ArithmeticError])
def test_what_a_target_raises_is_reported_and_its_server_goes_on(serve, kind):
    def leaves(q):
        if (q[:, 0] > 0.0).any():
            raise kind("no licence")
        return q[:, 0]

    served = surrokit_umbridge.potential(serve(sk.potential(leaves, dim=1, batched=True)))
    with pytest.raises(EvaluationError, match=f"failed: {kind.__name__}: no licence"):
        served.value(np.ones((1, 1)))
    assert served.value(-np.ones((1, 1))) == [-1.0]


def test_no_more_evaluations_at_a_time_than_workers(serve):
    together, most, lock = [0], [0], threading.Lock()

    def watched(q):
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        threading.Event().wait(0.02)
        with lock:
            together[0] -= 1
        return 0.0

    for workers in (1, 3):
        most[0] = 0
        target = surrokit_umbridge.potential(serve(sk.potential(watched, dim=1), workers=workers))
        with sk.Compute(executor="threads", workers=6).spread(target) as spread:
            spread.value(np.zeros((12, 1)))
        assert most[0] == workers


@pytest.mark.parametrize(
    ("what", "question", "kind", "message"),
    [
        ("Evaluate", b"hello", "InvalidInput", "the question is no JSON"),
        ("Evaluate", b"[" * 100_000, "InvalidInput", "the question is no JSON"),
        ("Evaluate", {"name": "other"}, "ModelNotFound", "name one of posterior, got"),
        ("Evaluate", b"null", "ModelNotFound", "name one of posterior, got nothing"),
        ("ApplyHessian", {}, "UnsupportedFeature", "does not support Apply"),
        ("Evaluate", {}, "InvalidInput", "a list of one list, got None"),
        ("Evaluate", {"input": [[1]]}, "InvalidInput", "2 numbers, got"),
        ("Evaluate", {"input": [["a", 1]]}, "InvalidInput", "2 numbers"),
        ("Gradient", {"input": [[1, 2]], "sens": [1, 2]}, "InvalidInput", "sens must be 1 numbers"),
        ("Gradient", {"input": [[1, 2]], "inWrt": 1}, "InvalidInput", "one input and one output"),
    ],
)
def test_a_question_that_cannot_be_answered_is_rejected(serve, what, question, kind, message):
    port = int(serve(TWO).rpartition(":")[2])
    named = question if isinstance(question, bytes) else {"name": "posterior", **question}
    body = named if isinstance(named, bytes) else json.dumps(named).encode()
    answered, told = ask(port, JSON, body, what)
    assert answered == 400
    assert told["error"]["type"] == kind
    assert message in told["error"]["message"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"port": -1}, "port must be a whole number of at least 0, got -1"),
        ({"name": "forward"}, "the name 'forward' is that of the target's map"),
    ],
)
def test_settings_that_cannot_work_are_told(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        surrokit_umbridge.Server(lynx_hare(), **{"port": 0, **settings})


def test_a_port_that_is_taken_is_told(port):
    with pytest.raises(ConfigurationError, match=f"port {port} of 127.0.0.1 cannot be had"):
        surrokit_umbridge.Server(lynx_hare(), port=port)


def test_a_wrapper_of_bounded_parameters_is_refused():
    target = sk.potential(
        log_density=log_density, gradient="differences", parameters={"a": (0, None)}
    )
    with pytest.raises(ConfigurationError, match="a Differences of bounded parameters cannot be"):
        surrokit_umbridge.Server(target, port=0)


def test_a_server_that_is_closed_answers_no_more():
    target = sk.potential(log_density=log_density, dim=1)
    with surrokit_umbridge.Server(target, port=0) as server:
        served = surrokit_umbridge.potential(server.url, wait=0.0)
        assert served.value(np.zeros((1, 1))) == 0.0
    with pytest.raises(EvaluationError, match="cannot be reached"):
        served.value(np.zeros((1, 1)))


@pytest.fixture(scope="module")
def port():
    target = sk.potential(log_density=lambda q: -float(q @ q), dim=1)
    with surrokit_umbridge.Server(target, port=0) as server:
        yield int(server.url.rpartition(":")[2])


def ask(port, headers, body=QUESTION, what="Evaluate"):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request("POST", f"/{what}", body=body, headers=headers)
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
