"""The models in Stan, with their data and the names of their numbers on the line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from written import data

_SCHOOLS = """
data { int J; vector[J] effects; vector[J] errors; }
parameters { real mu; real<lower=0> tau; vector[J] eta; }
model {
  mu ~ normal(0, 5); tau ~ cauchy(0, 5); eta ~ std_normal();
  effects ~ normal(mu + tau * eta, errors);
}
"""
_HIERARCHICAL = """
data { int N; int G; array[N] int g; vector[N] y; }
parameters { real mu; real<lower=0> between; real<lower=0> within; vector[G] effect; }
model {
  mu ~ normal(0, 5); between ~ normal(0, 3); within ~ normal(0, 3);
  effect ~ normal(mu, between);
  y ~ normal(effect[g], within);
}
"""
_GRADES = """
data { int N; vector[N] x; array[N] int grade; }
parameters { real slope; ordered[3] cuts; }
model { slope ~ normal(0, 2); cuts ~ normal(0, 3); grade ~ ordered_logistic(slope * x, cuts); }
"""
_COVARIANCE = """
data { int N; array[N] vector[3] y; }
parameters { vector[3] mu; vector<lower=0>[3] sd; cholesky_factor_corr[3] factor; }
model {
  mu ~ normal(0, 2); sd ~ normal(0, 2); factor ~ lkj_corr_cholesky(2);
  y ~ multi_normal_cholesky(mu, diag_pre_multiply(sd, factor));
}
"""
_MIXTURE = """
data { int N; vector[N] y; }
parameters { real<lower=0, upper=1> share; ordered[2] means; vector<lower=0>[2] sd; }
model {
  share ~ beta(2, 2); means ~ normal(0, 3); sd ~ normal(0, 2);
  for (n in 1:N) target += log_mix(share, normal_lpdf(y[n] | means[1], sd[1]),
                                   normal_lpdf(y[n] | means[2], sd[2]));
}
"""
_ITEMS = """
data { int P; int I; array[P, I] int answer; }
parameters { real mu; real<lower=0> sd; vector[P] ability; vector[I] difficulty; }
model {
  mu ~ normal(0, 2); sd ~ normal(0, 2); ability ~ std_normal(); difficulty ~ normal(mu, sd);
  for (p in 1:P) answer[p] ~ bernoulli_logit(ability[p] - difficulty);
}
"""
_GARCH = """
data { int T; vector[T] y; }
parameters {
  real<lower=0> omega; real<lower=0, upper=1> alpha; real<lower=0, upper=1-alpha> beta;
}
model {
  vector[T] variance;
  variance[1] = 1;
  for (t in 2:T) variance[t] = omega + alpha * square(y[t - 1]) + beta * variance[t - 1];
  omega ~ normal(0, 1); beta ~ uniform(0, 1 - alpha);
  y ~ normal(0, sqrt(variance));
}
"""
_CURVE = """
data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> height; real<lower=0> noise; real<lower=0> length; }
model {
  matrix[N, N] matrix_y = add_diag(gp_exp_quad_cov(x, height, length), square(noise));
  height ~ normal(0, 2); noise ~ normal(0, 1); length ~ inv_gamma(5, 5);
  y ~ multi_normal(rep_vector(0, N), matrix_y);
}
"""
_LOGISTIC = """
data { int N; matrix[N, 10] x; array[N] int y; }
parameters { real intercept; vector[10] slopes; }
model {
  intercept ~ normal(0, 2.5); slopes ~ std_normal();
  y ~ bernoulli_logit_glm(x, intercept, slopes);
}
"""
_EPIDEMIC = """
functions {
  vector flow(real t, vector shares, real contact, real recovery) {
    real infected = contact * shares[1] * shares[2];
    return [-infected, infected - recovery * shares[2]]';
  }
}
data { int N; array[N] real days; vector[N] y; }
parameters {
  real<lower=0> contact; real<lower=0> recovery; real<lower=0, upper=1> first;
  real<lower=0> noise;
}
model {
  array[N] vector[2] shares = ode_rk45(flow, [1 - first, first]', 0, days, contact, recovery);
  contact ~ lognormal(0, 0.5); recovery ~ lognormal(-1, 0.5); first ~ beta(1, 20);
  noise ~ normal(0, 0.1);
  for (n in 1:N) y[n] ~ normal(shares[n, 2], noise);
}
"""


def _many(name: str, n: int) -> list[str]:
    return [f"{name}.{i}" for i in range(1, n + 1)]


MODELS: Mapping[str, tuple[str, dict[str, Any], list[str]]] = {
    "schools": (
        _SCHOOLS,
        {"J": 8, "effects": data.EFFECTS, "errors": data.ERRORS},
        ["mu", "tau", *_many("eta", 8)],
    ),
    "hierarchical": (
        _HIERARCHICAL,
        {"N": 30, "G": 6, "g": data.GROUPS + 1, "y": data.IN_GROUPS},
        ["mu", "between", "within", *_many("effect", 6)],
    ),
    "grades": (
        _GRADES,
        {"N": 80, "x": data.SLOPE_AT, "grade": data.GRADES + 1},
        ["slope", *_many("cuts", 3)],
    ),
    "covariance": (
        _COVARIANCE,
        {"N": 40, "y": data.CORRELATED},
        [*_many("mu", 3), *_many("sd", 3), *_many("factor", 3)],
    ),
    "mixture": (
        _MIXTURE,
        {"N": 150, "y": data.MIXED},
        ["share", *_many("means", 2), *_many("sd", 2)],
    ),
    "items": (
        _ITEMS,
        {"P": data.N_PERSONS, "I": data.N_ITEMS, "answer": data.ANSWERS},
        ["mu", "sd", *_many("ability", data.N_PERSONS), *_many("difficulty", data.N_ITEMS)],
    ),
    "garch": (_GARCH, {"T": 400, "y": data.RETURNS}, ["omega", "alpha", "beta"]),
    "curve": (
        _CURVE,
        {"N": 40, "x": data.PLACES, "y": data.HEIGHTS},
        ["height", "noise", "length"],
    ),
    "logistic": (
        _LOGISTIC,
        {"N": 100_000, "x": data.COLUMNS, "y": data.EVENTS},
        ["intercept", *_many("slopes", 10)],
    ),
    "epidemic": (
        _EPIDEMIC,
        {"N": 20, "days": data.DAYS, "y": data.SICK},
        ["contact", "recovery", "first", "noise"],
    ),
}
