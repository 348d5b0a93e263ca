"""No draw of a surrogate is paid for twice, however many are paid for."""

import numpy as np

import surrokit as sk


def test_many_payments_among_few_draws_are_all_different():
    run = sk.sample(
        "gaussian",
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        correction=("weights", {"least": 400, "effective": 4000}),
        max_calls=1000,
        seed=1,
        progress=False,
    )
    assert len(run.answer.rounds) == 2
    for each in run.answer.rounds:
        assert len(each) >= 400
        assert len(np.unique(each.paid)) == len(each)
    assert run.draws[..., 0].size == sum(map(len, run.answer.rounds))
