"""A quadratic with all products of coordinates, a plugin for surrokit."""

import numpy as np

import surrokit as sk
from surrokit.errors import SurrogateFitError


@sk.batch_surrogate
def fit(rows, rng):  # noqa: ARG001 - rng is for whatever is drawn
    """Return the quadratic that fits best, opened upwards where it is not."""
    near = rows.values < rows.values.min() + 100.0  # the start of a burn-in may be far up
    q, u = rows.positions[near], rows.values[near]
    dim = q.shape[1]
    first, second = np.triu_indices(dim)
    terms = np.column_stack([np.ones(len(q)), q, q[:, first] * q[:, second]])
    if len(q) <= terms.shape[1]:
        raise SurrogateFitError(f"a fit takes more than {terms.shape[1]} rows, got {len(q)}")
    level, slope, products = np.split(np.linalg.lstsq(terms, u, rcond=None)[0], [1, 1 + dim])
    bend = np.zeros((dim, dim))
    bend[first, second] = products
    values, vectors = np.linalg.eigh(bend + bend.T)
    bend = vectors * np.maximum(values, 1e-3) @ vectors.T  # or paths would run away

    def value_and_gradient(q):
        gradient = slope + q @ bend
        return level + 0.5 * np.sum(q * (slope + gradient), axis=1), gradient

    return sk.potential(value_and_gradient=value_and_gradient, dim=dim, batched=True)


@sk.hookimpl
def surrokit_components():
    return [
        sk.Component(
            "surrogate",
            "bowl",
            "surrokit_bowl:fit",
            "The quadratic with all products that fits the evaluations best",
            references=("least squares",),
        )
    ]
