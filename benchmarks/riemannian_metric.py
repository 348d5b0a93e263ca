"""Time what a Riemannian sampler asks of a surrogate, against the bare calls it cannot avoid.

One evaluation is the Hessian, its Cholesky factor and log-determinant, and both contractions of its
derivative: tr(G^-1 d_k G) and u^T d_k G u. Bare are the products of the same sizes by BLAS, the
factors and inverses by LAPACK, and one exponential of each number per node and position, with all
arrays in place. Making the ``dim`` matrices d_k G themselves, as the authors' code does, takes
s dim^3 operations; both here take s dim^2.

Run it as ``OPENBLAS_NUM_THREADS=1 python benchmarks/riemannian_metric.py``. It prints medians
in milliseconds for 4 positions and 2000 nodes; it asserts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotri

from surrokit.surrogate.whitening import Whitening
from surrokit_networks.activations import BUILT_IN
from surrokit_networks.network import Network
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.trend import Polynomial

CHAINS, NODES, DIMS, REPEATS = 4, 2000, (10, 20, 50, 100), 15


def milliseconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median processor time of each call; they take turns, so that changes of pace hit all."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return {name: 1e3 * float(np.median(times)) for name, times in seconds.items()}


def network(kind: str, dim: int, rng: np.random.Generator) -> FittedNetwork:
    """Return a network on a quadratic that makes its Hessian positive definite."""
    whitening = Whitening.of(rng.standard_normal((400, dim)), np.ones(400))
    nodes = Nodes.additive(
        0.3 / np.sqrt(dim) * rng.standard_normal((NODES, dim)),
        rng.standard_normal(NODES),
        BUILT_IN["softplus"],
    )
    if kind == "rbf":
        nodes = Nodes.radial(rng.standard_normal((NODES, dim)), np.full(NODES, 4.0 * dim))
    trend = Polynomial(
        constant=np.zeros(1), linear=np.zeros((dim, 1)), matrices=3.0 * np.eye(dim)[None]
    )
    weights = rng.standard_normal((NODES, 1)) / np.sqrt(NODES)
    fitted = Network(whitening=whitening, trend=trend, nodes=nodes, weights=weights)
    return FittedNetwork(network=fitted, n_points=400, ridge=1.0, degrees=1.0, gcv_error=1.0)


def evaluation(potential: FittedNetwork, q: np.ndarray, u: np.ndarray) -> Callable[[], object]:
    """Return one evaluation of all that is asked."""

    def run() -> object:
        hessian = potential.hessian(q)
        inverses = np.empty_like(hessian)
        determinants = np.empty(len(q))
        for i, matrix in enumerate(hessian):
            factor, _ = dpotrf(matrix, lower=True)
            determinants[i] = 2.0 * np.log(np.diag(factor)).sum()
            lower, _ = dpotri(factor, lower=True)
            inverses[i] = lower + np.tril(lower, -1).T
        trace = potential.hessian_trace_gradient(q, inverses)
        return determinants, trace, potential.hessian_form_gradient(q, u)

    return run


def bare(dim: int, rng: np.random.Generator) -> Callable[[], object]:
    """Return the bare calls of the same sizes."""
    wide = np.asfortranarray(rng.standard_normal((dim, NODES)))
    tall = np.asfortranarray(rng.standard_normal((NODES, dim)))
    rows = np.asfortranarray(rng.standard_normal((CHAINS, dim)))
    bends = np.asfortranarray(rng.standard_normal((CHAINS, NODES)))
    matrix = np.asfortranarray(np.eye(dim) + 0.1)
    square, forms = np.empty((dim, dim), order="F"), np.empty((dim, NODES), order="F")
    thin, hidden = np.empty((CHAINS, dim), order="F"), np.empty((CHAINS, NODES), order="F")

    def run() -> None:
        for _ in range(3):  # Hessian, trace and form: arguments, an exponential, and the way back
            dgemm(1.0, rows, wide, c=hidden, overwrite_c=True)
            np.exp(bends, out=hidden)
        for _ in range(2):
            dgemm(1.0, bends, tall, c=thin, overwrite_c=True)
        dgemm(1.0, rows, wide, c=hidden, overwrite_c=True)  # w_i . u
        for _ in range(CHAINS):
            dgemm(1.0, wide, tall, c=square, overwrite_c=True)  # the Hessian
            dgemm(1.0, matrix, wide, c=forms, overwrite_c=True)  # A w_i
            factor, _ = dpotrf(matrix, lower=True)
            dpotri(factor, lower=True)

    return run


def main() -> None:
    rng = np.random.default_rng(1)
    print(f"{CHAINS} positions, {NODES} nodes; medians in ms")
    print("kind       dim   Hessian  trace    form  product  diagonal    all    bare  ratio")
    for kind in ("additive", "rbf"):
        for dim in DIMS:
            potential = network(kind, dim, rng)
            q, u = rng.standard_normal((2, CHAINS, dim))
            a = np.tile(np.eye(dim) + 0.1, (CHAINS, 1, 1))
            calls: dict[str, Callable[[], object]] = {
                "hessian": lambda p=potential, q=q: p.hessian(q),
                "trace": lambda p=potential, q=q, a=a: p.hessian_trace_gradient(q, a),
                "form": lambda p=potential, q=q, u=u: p.hessian_form_gradient(q, u),
                "product": lambda p=potential, q=q, u=u: p.hessian_product(q, u),
                "diagonal": lambda p=potential, q=q: p.hessian_diagonal(q),
                "all": evaluation(potential, q, u),
                "bare": bare(dim, rng),
            }
            t = milliseconds(calls)
            ratio = t["all"] / t["bare"]
            print(
                f"{kind:9} {dim:4} {t['hessian']:9.2f} {t['trace']:6.2f} {t['form']:7.2f} "
                f"{t['product']:8.2f} {t['diagonal']:9.2f} {t['all']:6.2f} {t['bare']:7.2f} "
                f"{ratio:6.2f}"
            )


if __name__ == "__main__":
    main()
