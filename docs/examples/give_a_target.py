"""Snippets of the guide "Give a target"."""

# [value]
import numpy as np

import surrokit as sk


def value(q):  # q has shape (dim,)
    return 0.5 * np.sum(q**2 / [1.0, 4.0, 9.0])


def gradient(q):
    return q / [1.0, 4.0, 9.0]


target = sk.potential(value, gradient, dim=3)


# [log density]
def log_density(q):
    return -value(q)


def score(q):
    return -gradient(q)


target = sk.potential(log_density=log_density, gradient=score, dim=3)


# [joint]
def value_and_gradient(q):
    slope = q / [1.0, 4.0, 9.0]
    return 0.5 * np.sum(q * slope), slope


target = sk.potential(value_and_gradient=value_and_gradient, dim=3)


# [rows]
def rows_value_and_gradient(positions):  # shape (n, dim)
    slopes = positions / [1.0, 4.0, 9.0]
    return 0.5 * np.sum(positions * slopes, axis=1), slopes


target = sk.potential(value_and_gradient=rows_value_and_gradient, dim=3, batched=True)

# [no gradient]
target = sk.potential(value, dim=3)
run = sk.sample(target, sampler="random-walk", warmup=200, draws=200, seed=1)
run = sk.sample(target, surrogate="additive", warmup=400, draws=200, seed=1)


# [bounds]
def log_dirichlet_like(q):
    rate, slope, w = q[0], q[1], q[2:]
    return -rate - 0.5 * slope**2 + np.sum(np.log(w) + np.log1p(-w))


target = sk.potential(
    log_density=log_dirichlet_like,
    parameters={"rate": (0, None), "slope": None, "w": sk.interval(0, 1, 3)},
)
start = {"rate": 1.0, "slope": 0.0, "w": [0.2, 0.5, 0.5]}
run = sk.sample(target, surrogate="additive", initial=start, warmup=400, draws=200, seed=1)
print(run.labels)
print(run["w"].shape)


# [forward]
TIMES = np.linspace(0.0, 4.0, 9)


def forward(q):  # the expensive map: shape (dim,) to (m,)
    return q[0] * np.exp(-q[1] * TIMES)


def jacobian(q):  # its derivatives, shape (m, dim)
    decay = np.exp(-q[1] * TIMES)
    return np.column_stack([decay, -q[0] * TIMES * decay])


data = [2.1, 1.55, 1.19, 0.98, 0.7, 0.62, 0.43, 0.36, 0.27]
target = sk.forward_potential(
    forward,
    jacobian,
    data=data,
    noise_sd=0.05,
    prior=sk.gaussian_prior(mean=1.0, sd=1.0),
    parameters={"height": (0, None), "rate": (0, None)},
)
run = sk.sample(target, surrogate="additive", initial=[2.0, 0.5], warmup=200, draws=200, seed=1)
print(run.outputs.shape)


# [second derivatives]
def hessian(q):  # second derivatives, shape (m, dim, dim)
    decay = np.exp(-q[1] * TIMES)
    bends = np.zeros((TIMES.size, 2, 2))
    bends[:, 0, 1] = bends[:, 1, 0] = -TIMES * decay
    bends[:, 1, 1] = q[0] * TIMES**2 * decay
    return bends


target = sk.forward_potential(
    forward,
    jacobian,
    hessian,
    data=data,
    noise_sd=0.05,
    prior=sk.gaussian_prior(mean=1.0, sd=1.0),
    parameters={"height": (0, None), "rate": (0, None)},
)
print(*sorted(target.capabilities))


# [adjoint]
def vjp(q, weights):  # weights (m,) of the outputs to the gradient (dim,) of their weighted sum
    decay = np.exp(-q[1] * TIMES)
    return np.array([weights @ decay, -q[0] * (weights @ (TIMES * decay))])


target = sk.forward_potential(
    forward,
    vjp=vjp,
    data=data,
    noise_sd=0.05,
    prior=sk.gaussian_prior(mean=1.0, sd=1.0),
    parameters={"height": (0, None), "rate": (0, None)},
)
run = sk.sample(target, sampler="hmc", initial=[2.0, 0.5], draws=200, seed=1)
print(*(kind for kind, n in run.calls.items() if n))


# [energy]
class HeavyTailed:
    """Misfit with Student's t errors, 4 degrees of freedom; flat within the bounds."""

    def value(self, outputs, positions):
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs, positions):
        scaled = (outputs - np.array(data)) / 0.05
        value = 2.5 * np.log1p(scaled**2 / 4.0).sum(axis=1)
        by_outputs = 5.0 * scaled / (4.0 + scaled**2) / 0.05
        return value, by_outputs, np.zeros_like(positions)


target = sk.forward_potential(
    forward,
    jacobian,
    energy=HeavyTailed(),
    parameters={"height": (0, 10), "rate": (0, 5)},
)
run = sk.sample(target, surrogate="additive", initial=[2.0, 0.5], warmup=200, draws=200, seed=1)

# [known]
target = sk.potential(value, gradient, dim=3)
positions = np.random.default_rng(1).normal(size=(60, 3))
known = sk.Evaluations(
    positions=positions,
    values=[value(q) for q in positions],
    gradients=[gradient(q) for q in positions],
)
run = sk.sample(
    target,
    surrogate="additive",
    explorer=("sampler", {"iterations": 20}),
    warmup=200,
    draws=200,
    seed=1,
    warm_start=known,
)
print(run.adaptation.training_rows)
# [known log]
known = sk.Evaluations.from_log_density(positions, [log_density(q) for q in positions])


# [class]
class Ring:
    """A ring of radius 2 in the plane."""

    dim = 2
    capabilities = frozenset({"gradient", "initial"})

    def value(self, positions):
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions):
        radius = np.linalg.norm(positions, axis=1)
        off = 4.0 * (radius - 2.0)
        return 0.5 * off * (radius - 2.0), off[:, None] * positions / radius[:, None]

    def initial(self, rng, n):
        return rng.normal(size=(n, 2))


run = sk.sample(Ring(), warmup=200, draws=200, seed=1)
# [end]
