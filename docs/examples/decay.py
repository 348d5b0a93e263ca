"""A model in a program of its own: what is left of a substance that decays, at five times."""

import json
import math
import sys

TIMES = (1.0, 2.0, 4.0, 6.0, 8.0)

with open(sys.argv[1]) as file:
    question = json.load(file)
amount, rate = question["parameters"]["amount"], question["parameters"]["rate"]
left = [amount * math.exp(-rate * time) for time in TIMES]
answer = {"outputs": left}
if "jacobian" in question["want"]:
    pairs = zip(left, TIMES, strict=True)
    answer["jacobian"] = [[each / amount, -time * each] for each, time in pairs]
with open(sys.argv[2], "w") as file:
    json.dump(answer, file)
