"""Programs in Stan for tests, with their data."""

from __future__ import annotations

import numpy as np

SCHOOLS = """
data { int<lower=0> J; vector[J] effects; vector<lower=0>[J] errors; }
parameters { real mu; real<lower=0> tau; vector[J] eta; }
transformed parameters { vector[J] theta = mu + tau * eta; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  eta ~ std_normal();
  effects ~ normal(theta, errors);
}
generated quantities {
  array[J] real again = normal_rng(theta, errors);
  matrix[2, 3] table;
  for (i in 1:2) for (j in 1:3) table[i, j] = 10 * i + j + mu;
}
"""
SCHOOLS_DATA = {
    "J": 8,
    "effects": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "errors": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}


COVARIANCE = """
data { int N; array[N] vector[3] y; }
parameters {
  vector[3] mu;
  cholesky_factor_corr[3] factor;
  vector<lower=0>[3] sd;
  simplex[3] parts;
  ordered[2] cuts;
}
transformed parameters {
  matrix[3, 3] scale = diag_pre_multiply(sd, factor);
  matrix[3, 3] covariance = multiply_lower_tri_self_transpose(scale);
}
model {
  mu ~ normal(0, 2);
  sd ~ normal(0, 2);
  factor ~ lkj_corr_cholesky(2);
  parts ~ dirichlet([2, 3, 4]');
  cuts ~ normal(0, 1);
  y ~ multi_normal_cholesky(mu, scale);
}
"""


def covariance_data() -> dict[str, object]:
    """Return rows of three correlated numbers."""
    covariance = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
    rows = np.random.default_rng(9).multivariate_normal([0.5, 0.0, -1.0], covariance, size=40)
    return {"N": 40, "y": rows.tolist()}
