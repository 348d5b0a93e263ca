"""Log densities of the posteriors in JAX, and functions of rows of NumPy made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from surrokit.types import FloatArray

jax.config.update("jax_enable_x64", True)


def normal(x: jax.Array, mean: jax.Array | float, sd: jax.Array | float) -> jax.Array:
    """Return the sum over all elements of x, however mean and sd fit them."""
    scores = (x - mean) / sd
    return -0.5 * jnp.sum(scores**2) - jnp.sum(jnp.log(sd) * jnp.ones_like(scores))


def cauchy(x: jax.Array, scale: float) -> jax.Array:
    """Return it about zero; of a positive number it is the half of that, up to a constant."""
    return -jnp.log1p((x / scale) ** 2)


def student_t(x: jax.Array, freedom: float, mean: float, scale: float) -> jax.Array:
    """Return it for a number."""
    return -0.5 * (freedom + 1.0) * jnp.log1p(((x - mean) / scale) ** 2 / freedom)


def inverse_gamma(x: jax.Array, shape: float, scale: float) -> jax.Array:
    """Return it for a positive number."""
    return -(shape + 1.0) * jnp.log(x) - scale / x


Data: TypeAlias = Mapping[str, Any]
Density: TypeAlias = Callable[[jax.Array], jax.Array]
"""Log density of one position, shape (dim,)."""


def _flat(sigma: jax.Array) -> jax.Array:
    return jnp.zeros_like(sigma)


def _linear(columns: list[Any], response: Any, prior: Density = _flat) -> Density:
    """Return the density of coefficients, the constant first, and sigma with its prior."""
    design = jnp.column_stack([jnp.ones(len(response)), *(np.asarray(x, float) for x in columns)])
    y = jnp.asarray(response, float)

    def log_density(q: jax.Array) -> jax.Array:
        return normal(y, design @ q[:-1], q[-1]) + prior(q[-1])

    return log_density


def earnings(data: Data) -> Density:
    """Return the density of ``earn_height``."""
    return _linear([data["height"]], data["earn"])


def log_earnings(data: Data) -> Density:
    """Return the density of ``logearn_height_male``."""
    return _linear([data["height"], data["male"]], np.log(data["earn"]))


def interaction(data: Data) -> Density:
    """Return the density of ``kidscore_interaction``."""
    school, iq = np.array(data["mom_hs"]), np.array(data["mom_iq"])
    return _linear([school, iq, school * iq], data["kid_score"], lambda s: cauchy(s, 2.5))


def centred_interaction(data: Data) -> Density:
    """Return the density of ``kidscore_interaction_c2``."""
    school, iq = np.array(data["mom_hs"]) - 0.5, np.array(data["mom_iq"]) - 100.0
    return _linear([school, iq, school * iq], data["kid_score"])


def mothers_work(data: Data) -> Density:
    """Return the density of ``kidscore_mom_work``."""
    work = np.array(data["mom_work"])
    return _linear([work == kind for kind in (2, 3, 4)], data["kid_score"])


def temperatures(data: Data) -> Density:
    """Return the density of ``kilpisjarvi``."""
    likelihood = _linear([data["x"]], data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        prior = normal(q[0], data["pmualpha"], data["psalpha"])
        return likelihood(q) + prior + normal(q[1], data["pmubeta"], data["psbeta"])

    return log_density


def log_mesquite(data: Data) -> Density:
    """Return the density of ``logmesquite_logvash``."""
    wide, narrow, high = (np.array(data[x]) for x in ("diam1", "diam2", "canopy_height"))
    products = (wide * narrow * high, wide * narrow, wide / narrow, np.array(data["total_height"]))
    return _linear([*map(np.log, products), data["group"]], np.log(data["weight"]))


def mesquite(data: Data) -> Density:
    """Return the density of ``mesquite``."""
    names = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
    return _linear([data[name] for name in names], data["weight"])


def schools(data: Data) -> Density:
    """Return the density of ``eight_schools_noncentered``: theta_trans, mu, tau."""
    y, sd = (jnp.asarray(data[name], float) for name in ("y", "sigma"))

    def log_density(q: jax.Array) -> jax.Array:
        standardised, mu, tau = q[:-2], q[-2], q[-1]
        prior = normal(standardised, 0.0, 1.0) + normal(mu, 0.0, 5.0) + cauchy(tau, 5.0)
        return prior + normal(y, standardised * tau + mu, sd)

    return log_density


def autoregression(data: Data) -> Density:
    """Return the density of ``arK``: alpha, K coefficients, sigma."""
    y, order = np.array(data["y"]), data["K"]
    lags = jnp.asarray(np.column_stack([y[order - k : -k] for k in range(1, order + 1)]))
    after = jnp.asarray(y[order:])

    def log_density(q: jax.Array) -> jax.Array:
        alpha, beta, sigma = q[0], q[1:-1], q[-1]
        prior = normal(alpha, 0.0, 10.0) + normal(beta, 0.0, 10.0) + cauchy(sigma, 2.5)
        return prior + normal(after, alpha + lags @ beta, sigma)

    return log_density


def moving_average(data: Data) -> Density:
    """Return the density of ``arma11``: mu, phi, theta, sigma."""
    y = jnp.asarray(data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        mu, phi, theta, sigma = q

        def step(error: jax.Array, pair: Any) -> Any:
            before, now = pair
            error = now - (mu + phi * before + theta * error)
            return error, error

        first = y[0] - (mu + phi * mu)
        _, errors = jax.lax.scan(step, first, (y[:-1], y[1:]))
        prior = normal(mu, 0.0, 10.0) + normal(phi, 0.0, 2.0) + normal(theta, 0.0, 2.0)
        likelihood = normal(first, 0.0, sigma) + normal(errors, 0.0, sigma)
        return prior + cauchy(sigma, 2.5) + likelihood

    return log_density


def hidden_states(data: Data) -> Density:
    """Return the density of ``hmm_example``.

    Coordinates are theta1[1], theta2[1], mu[1] and mu[2] - mu[1]; the Jacobian of the last is one.
    """
    y = jnp.asarray(data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        means = jnp.array([q[2], q[2] + q[3]])
        moves = jnp.log(jnp.array([[q[0], 1.0 - q[0]], [q[1], 1.0 - q[1]]]))
        emitted = -0.5 * (y[:, None] - means) ** 2

        def step(gamma: jax.Array, now: jax.Array) -> Any:
            return jax.nn.logsumexp(gamma[:, None] + moves, axis=0) + now, None

        last, _ = jax.lax.scan(step, emitted[0], emitted[1:])
        return normal(means, jnp.array([3.0, 10.0]), 1.0) + jax.nn.logsumexp(last)

    return log_density


def lotka_volterra(data: Data) -> Density:
    """Return the density of ``lotka_volterra``: four rates, populations at first, two log sds.

    It is for other libraries. Logarithms of populations go in Runge-Kutta steps of a fiftieth of a
    year, which errs by less than 1e-6.
    """
    first, later = jnp.log(jnp.asarray(data["y_init"])), jnp.log(jnp.asarray(data["y"]))
    substeps = 50

    def log_density(q: jax.Array) -> jax.Array:
        theta, begin, sigma = q[:4], q[4:6], q[6:]

        def change(z: jax.Array) -> jax.Array:
            prey, predators = jnp.exp(z)
            return jnp.array([theta[0] - theta[1] * predators, theta[3] * prey - theta[2]])

        def step(z: jax.Array, _: None) -> Any:
            h = 1.0 / substeps
            k1 = change(z)
            k2 = change(z + 0.5 * h * k1)
            k3 = change(z + 0.5 * h * k2)
            k4 = change(z + h * k3)
            return z + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

        def year(z: jax.Array, _: None) -> Any:
            z, _ = jax.lax.scan(step, z, None, length=substeps)
            return z, z

        _, found = jax.lax.scan(year, jnp.log(begin), None, length=len(later))
        rates = normal(theta[::2], 1.0, 0.5) + normal(theta[1::2], 0.05, 0.05)
        starts = normal(jnp.log(begin), np.log(10.0), 1.0) - jnp.log(begin).sum()
        errors = normal(jnp.log(sigma), -1.0, 1.0) - jnp.log(sigma).sum()
        at_first = normal(first, jnp.log(begin), sigma)
        return rates + starts + errors + at_first + normal(later, found, sigma)

    return log_density


def accelerations(data: Data) -> Density:
    """Return the density of ``accel_gp``.

    Two processes, one for the mean and one for the log sd, each with intercept, sd, length scale
    and the weights of its basis.
    """
    y = jnp.asarray(data["Y"])
    bases = [jnp.asarray(data[f"Xgp{part}_1"]) for part in ("", "_sigma")]
    waves = [jnp.asarray(data[f"slambda{part}_1"])[:, 0] for part in ("", "_sigma")]
    first = 3 + bases[0].shape[1]

    def process(q: jax.Array, part: int) -> jax.Array:
        intercept, sd, scale, weights = q[0], q[1], q[2], q[3:]
        # the root is written out: where a wave's part underflows, sqrt(0) has no derivative
        root = (
            sd * jnp.sqrt(np.sqrt(2 * np.pi) * scale) * jnp.exp(-((scale * waves[part] / 2) ** 2))
        )
        return intercept + bases[part] @ (root * weights)

    def prior(q: jax.Array, location: float, scale: float) -> jax.Array:
        of_length = inverse_gamma(q[2], 1.124909, 0.0177)
        of_sizes = student_t(q[0], 3.0, location, scale) + student_t(q[1], 3.0, 0.0, 36.0)
        return of_sizes + of_length + normal(q[3:], 0.0, 1.0)

    def log_density(q: jax.Array) -> jax.Array:
        mean, noise = q[:first], q[first:]
        likelihood = normal(y, process(mean, 0), jnp.exp(process(noise, 1)))
        return prior(mean, -13.0, 36.0) + prior(noise, 0.0, 10.0) + likelihood

    return log_density


def in_rows(
    log_density: Callable[[jax.Array], jax.Array],
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """Return U and its gradient, functions of rows (n, dim), from a log density of one position."""

    def potential(q: jax.Array) -> jax.Array:
        return -log_density(q)

    return _rowwise(potential, ()), _rowwise(jax.grad(potential), (-1,))


def _rowwise(function: Any, tail: tuple[int, ...]) -> Callable[[FloatArray], FloatArray]:
    compiled = jax.jit(jax.vmap(function))

    def evaluate(rows: FloatArray) -> FloatArray:
        parts = [np.empty((0, *(rows.shape[k] for k in tail)))]
        for start in range(0, len(rows), 64):
            part = rows[start : start + 64]
            # filled up to one of few sizes, for JAX compiles a function for every shape anew
            more = next(size for size in (4, 16, 64) if size >= len(part)) - len(part)
            full = np.concatenate([part, np.repeat(part[-1:], more, axis=0)])
            found = np.asarray(compiled(full))
            assert found.dtype == np.float64, f"{found.dtype} is not double precision"
            parts.append(found[: len(part)])
        return np.concatenate(parts)

    return evaluate
