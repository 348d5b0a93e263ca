"""A model behind a server, as a target: what is asked, and what servers do wrong."""

from __future__ import annotations

import errno
import http.client
import json
import pickle
import re
import socket
import threading
import time

import attrs
import numpy as np
import pytest

import surrokit as sk
import surrokit_umbridge
from surrokit.errors import (
    ConfigurationError,
    EvaluationError,
    ResultTypeError,
    ServerError,
    ShapeError,
)

ANSWERS = {
    "Info": {"protocolVersion": 1.0, "models": ["m"]},
    "ModelInfo": {"support": {"Evaluate": True, "Gradient": True}},
    "InputSizes": {"inputSizes": [2]},
    "OutputSizes": {"outputSizes": [1]},
}
ORIGIN = np.zeros((1, 2))


def answers(evaluate):
    """Answer all but Evaluate as a model of two numbers and one output does."""

    def answer(what, body):
        return (200, json.dumps(ANSWERS[what])) if what in ANSWERS else evaluate(what, body)

    return answer


def cause_of(target, position=ORIGIN):
    with pytest.raises(EvaluationError) as raised:
        target.value(position)
    return raised.value.causes[0]


class Blocks:
    """Two inputs, two outputs: products that tell every index from another."""

    A = np.arange(1.0, 16.0).reshape(5, 3)  # outputs 2 + 3, inputs 1 + 2

    def __init__(self):
        self.questions = []

    def answer(self, what, body):
        question = json.loads(body) if body else {}
        sizes = {"InputSizes": {"inputSizes": [1, 2]}, "OutputSizes": {"outputSizes": [2, 3]}}
        support = dict.fromkeys(("Evaluate", "Gradient", "ApplyJacobian"), True)
        known = {"Info": ANSWERS["Info"], "ModelInfo": {"support": support}, **sizes}
        if what in known:
            return 200, json.dumps(known[what])
        self.questions.append((what, question))
        return 200, json.dumps({"output": self.output(what, question)})

    def output(self, what, question):
        x = np.concatenate(question["input"])
        outs, ins = [slice(0, 2), slice(2, 5)], [slice(0, 1), slice(1, 3)]
        jacobian = 2 * self.A * x
        if what == "Evaluate":
            outputs = self.A @ x**2
            return [outputs[one].tolist() for one in outs]
        block = jacobian[outs[question["outWrt"]], ins[question["inWrt"]]]
        if what == "Gradient":
            return (block.T @ question["sens"]).tolist()
        return (block @ question["vec"]).tolist()


def test_inputs_and_outputs_are_joined_and_parted(script):
    blocks = Blocks()
    model = surrokit_umbridge.connect(script(blocks.answer), config={"level": 2})
    x, w, u = np.array([1.0, 2.0, 3.0]), np.arange(5.0), np.array([1.0, -1.0, 2.0])
    assert (model.dim, model.n_outputs) == (3, 5)
    assert np.array_equal(model.evaluate(x), blocks.A @ x**2)
    assert np.array_equal(model.gradient(x, w), (2 * blocks.A * x).T @ w)
    assert np.array_equal(model.apply_jacobian(x, u), 2 * blocks.A * x @ u)
    assert np.array_equal(model.jacobian(x), 2 * blocks.A * x)
    by_rows = attrs.evolve(model, supported={"Evaluate", "Gradient"})
    assert np.array_equal(by_rows.jacobian(x), 2 * blocks.A * x)
    assert all(question["config"] == {"level": 2} for _, question in blocks.questions)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_outputs_beyond_the_data_are_quantities(script):
    """The second of two outputs is one: it is kept for draws, and no gradient asks for it."""
    blocks, data = Blocks(), {"data": np.zeros(2), "noise_sd": 5.0}
    target = surrokit_umbridge.potential(script(blocks.answer), **data)
    settings = {"chains": 2, "warmup": 3, "draws": 4, "seed": 1, "progress": False}
    run = sk.sample(target, sampler="hmc", initial=np.full((2, 3), 0.1), **settings)
    np.testing.assert_allclose(run["output_1"], np.square(run.draws) @ blocks.A[2:].T)
    assert run.outputs.shape == (2, 4, 2)
    asked = [question["outWrt"] for what, question in blocks.questions if what == "Gradient"]
    assert set(asked) == {0}


def test_a_map_has_the_adjoint_and_more_on_demand(script):
    blocks = Blocks()
    url, data = script(blocks.answer), {"data": np.ones(5), "noise_sd": 1.0}
    target = surrokit_umbridge.potential(url, **data)
    assert target.capabilities == {"forward", "vjp", "gradient"}
    full = surrokit_umbridge.potential(url, jacobian=True, **data)
    assert {"jacobian", "metric"} <= full.capabilities
    position = np.array([[0.1, 0.2, 0.3]])
    assert np.allclose(full.forward_and_jacobian(position)[1], 2 * blocks.A * position)
    inside = sk.forward_potential(
        lambda q: blocks.A @ q**2, lambda q: 2 * blocks.A * q, dim=3, **data
    )
    assert np.array_equal(target.value(position), inside.value(position))
    assert np.allclose(
        target.value_and_gradient(position)[1], inside.value_and_gradient(position)[1], rtol=1e-13
    )


def test_names_bounds_and_plausible_places_are_passed_on(script):
    url = script(answers(lambda *_: (200, '{"output": [[-1.0]]}')))
    named = {"a": (0.0, None), "b": None}
    target = sk.make(
        "potential", "umbridge", url=url, parameters=named, plausible={"a": (1, 2), "b": (3, 4)}
    )
    assert target.parameters.labels == ["a", "b"]
    assert target.value(ORIGIN) == 1.0
    assert target.initial(np.random.default_rng(1), 2).shape == (2, 2)


@pytest.mark.parametrize(
    ("printed", "value"), [("-Infinity", np.inf), ("NaN", np.nan), ("null", np.nan)]
)
def test_numbers_that_json_lacks_are_understood(script, printed, value):
    url = script(answers(lambda *_: (200, f'{{"output": [[{printed}]] }}')))
    assert np.array_equal(surrokit_umbridge.potential(url).value(ORIGIN), [value], equal_nan=True)


@pytest.mark.parametrize(
    ("status", "text", "kind", "message"),
    [
        (500, "Server got itself in trouble", ServerError, "failed with status 500 .*in trouble"),
        (
            400,
            '{"error": {"type": "InvalidInput", "message": "too few"}}',
            ServerError,
            "the model behind .* failed: InvalidInput: too few",
        ),
        (200, '{"error": "no licence"}', ServerError, "failed: no licence"),
        (200, "hello", ResultTypeError, "must answer with a JSON object, got 'hello'"),
        (200, "[1]", ResultTypeError, "must answer with a JSON object"),
        (200, "{}", ResultTypeError, "must answer Evaluate with 'output', got {}"),
        (200, '{"output": 3}', ResultTypeError, "must answer with 1 outputs, got 3"),
        (200, '{"output": [["a"]]}', ResultTypeError, "must answer Evaluate with numbers"),
        (200, '{"output": [[1, 2]]}', ShapeError, "Evaluate with 1 numbers, got shape \\(2,\\)"),
    ],
)
def test_what_a_server_does_wrong_is_told(script, status, text, kind, message):
    target = surrokit_umbridge.potential(script(answers(lambda *_: (status, text))))
    if kind is ServerError:
        assert re.search(message, str(cause_of(target)))
    else:
        with pytest.raises(kind, match=message):
            target.value(ORIGIN)


def test_an_answer_that_takes_too_long_is_given_up(script):
    release = threading.Event()
    url = script(answers(lambda *_: (release.wait(30), (200, '{"output": [[1]]}'))[1]))
    target = surrokit_umbridge.potential(url, timeout=0.2)
    cause = cause_of(target)
    assert isinstance(cause, TimeoutError)
    assert f"{url} took longer than timeout=0.2 seconds to answer" in str(cause)
    release.set()
    assert target.value(ORIGIN) == -1.0


def test_a_server_that_hangs_up_is_asked_again(script):
    seen = []

    def hang_up_twice(*_):
        seen.append(time.monotonic())
        return None if len(seen) <= 2 else (200, '{"output": [[-1.0]]}')

    model = surrokit_umbridge.connect(script(answers(hang_up_twice)))
    assert surrokit_umbridge.potential(model).value(ORIGIN) == 1.0
    assert len(seen) == 3


def test_a_host_that_is_gone_is_no_answer_that_takes_too_long(script, monkeypatch):
    model = surrokit_umbridge.connect(script(answers(lambda *_: (200, '{"output": [[-1.0]]}'))))
    reply, gone = http.client.HTTPConnection.getresponse, [TimeoutError(errno.ETIMEDOUT, "gone")]

    def lose_once(line):
        if gone:
            raise gone.pop()
        return reply(line)

    monkeypatch.setattr(http.client.HTTPConnection, "getresponse", lose_once)
    assert model.evaluate(ORIGIN[0]) == -1.0


def test_what_stands_in_front_of_a_server_is_waited_for_and_not_blamed(script):
    away = [502, 503, 504]

    def away_first(*_):
        return (away.pop(), "no upstream") if away else (200, '{"output": [[-1.0]]}')

    target = surrokit_umbridge.potential(script(answers(away_first)))
    assert target.value(ORIGIN) == 1.0


@pytest.mark.parametrize(
    ("answer", "why"),
    [((503, "no upstream"), "status 503"), (None, "RemoteDisconnected: .* without response")],
)
def test_the_wait_for_a_server_ends(script, answer, why):
    url = script(answers(lambda *_: answer))
    before = time.monotonic()
    cause = cause_of(surrokit_umbridge.potential(url, wait=0.3))
    assert 0.25 < time.monotonic() - before < 5.0
    assert isinstance(cause, ServerError)
    assert re.search(rf"{url} cannot be reached \({why}\), and was waited for 0 sec", str(cause))


def test_a_model_can_be_pickled(script):
    model = surrokit_umbridge.connect(script(answers(lambda *_: (200, '{"output": [[2.0]]}'))))
    model.evaluate(ORIGIN[0])
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model
    assert copy.evaluate(ORIGIN[0]) == 2.0


@pytest.mark.parametrize("url", ["localhost:4242", "ftp://host", 3])
def test_what_is_no_address_is_told(url):
    with pytest.raises(ConfigurationError, match="url must be the address of a server"):
        surrokit_umbridge.potential(url)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds above 0, got 0"),
        ({"timeout": "5"}, "timeout must be a number of seconds above 0, got '5'"),
        ({"wait": -1}, "wait must be a number of seconds of at least 0, got -1"),
        ({"name": "n"}, "has the models 'm'; name one of them, got 'n'"),
        ({"jacobian": True}, "has 1 outputs, and without data or .* which has one and no Jacobian"),
    ],
)
def test_settings_that_cannot_work_are_told(script, settings, message):
    url = script(answers(lambda *_: (200, "{}")))
    with pytest.raises(ConfigurationError, match=message):
        surrokit_umbridge.potential(url, **settings)


NO_SERVER = "no server of the UM-Bridge protocol that can be used"


@pytest.mark.parametrize(
    ("what", "answer", "message"),
    [
        ("Info", {"protocolVersion": 2.0, "models": ["m"]}, "speaks version 2.0 of the UM-Bridge"),
        ("Info", {"protocolVersion": 1.0, "models": ["m", "n"]}, "the models 'm', 'n'; name one"),
        ("Info", {}, f"{NO_SERVER}: KeyError"),
        (
            "ModelInfo",
            {"support": {}},
            "does not support what the potential needs; it supports nothing",
        ),
        ("OutputSizes", {"outputSizes": [3]}, "has 3 outputs, and without data or an energy"),
        ("Info", {"protocolVersion": 1.0, "models": 3}, NO_SERVER),
        ("ModelInfo", {"support": ["Evaluate"]}, NO_SERVER),
        ("InputSizes", {"inputSizes": ["one"]}, NO_SERVER),
        ("InputSizes", {"inputSizes": [float("inf")]}, NO_SERVER),
        ("InputSizes", {"inputSizes": []}, NO_SERVER),
        ("OutputSizes", {"outputSizes": [1.5]}, NO_SERVER),
        ("OutputSizes", [[[]]], NO_SERVER),
    ],
)
def test_a_server_that_cannot_be_used_is_rejected(script, what, answer, message):
    known = ANSWERS | {what: answer}
    url = script(lambda asked, _: (200, json.dumps(known[asked])))
    with pytest.raises(ConfigurationError, match=message):
        surrokit_umbridge.potential(url)


def test_no_server_is_told_at_once():
    with pytest.raises(ConfigurationError, match=r"ConnectionRefusedError.*start it, or correct"):
        surrokit_umbridge.potential("http://127.0.0.1:9")


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


def test_an_answer_that_is_cut_is_none():
    url, _ = slowly([HEAD + json.dumps(ANSWERS["Info"]).encode()], pause=0.0)
    with pytest.raises(ConfigurationError, match=r"cannot be reached .IncompleteRead"):
        surrokit_umbridge.connect(url, wait=0.0)


def test_an_answer_has_a_limit():
    url, done = slowly([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{"])
    with pytest.raises(ConfigurationError, match="answered with more than 67108864 bytes"):
        surrokit_umbridge.connect(url, timeout=20.0, wait=0.0)
    done.set()


@pytest.mark.parametrize("output", [10**400, [[10**400]], [[[[1]]]], "[" * 20_000, {"a": 1}])
def test_numbers_that_are_none_are_refused(script, output):
    text = f'{{"output": {output if isinstance(output, str) else json.dumps(output)}}}'
    model = surrokit_umbridge.connect(script(answers(lambda *_: (200, text))))
    with pytest.raises((ResultTypeError, ShapeError)):
        model.evaluate(ORIGIN[0])
