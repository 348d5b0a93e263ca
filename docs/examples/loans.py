"""The second part of the tutorial "Sample a regression of a table"."""

# ruff: noqa: E402 (imports stand where they are shown)

# [table]
import numpy as np
import pandas as pd

rng = np.random.default_rng(3)
n = 900
table = pd.DataFrame(
    {
        "income": rng.lognormal(10.3, 0.5, n).round(-2),
        "years_employed": rng.integers(0, 30, n),
        "home": rng.choice(["own", "rent", "parents"], n, p=[0.4, 0.5, 0.1]),
        "late_before": rng.poisson(0.5, n),
    }
)
score = -0.8 - 0.9 * np.log(table["income"] / 30_000) + 0.6 * table["late_before"]
score += 0.7 * (table["home"] == "rent") - 0.03 * table["years_employed"]
late = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
print(table.head(3))
print("late:", late.mean().round(2))
# [fit]
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from surrokit_sklearn import BayesianLogisticRegression

columns = make_column_transformer(
    (FunctionTransformer(np.log, feature_names_out="one-to-one"), ["income"]),
    (OneHotEncoder(drop=["own"], sparse_output=False), ["home"]),
    remainder="passthrough",
    verbose_feature_names_out=False,
)
train, test, late_train, late_test = train_test_split(table, late, test_size=0.3, random_state=0)
models = {
    "LogisticRegression": make_pipeline(columns, LogisticRegression(max_iter=1000)),
    "BayesianLogisticRegression": make_pipeline(
        columns, BayesianLogisticRegression(random_state=0)
    ),
}
for name, model in models.items():
    model.fit(train, late_train)
    print(f"{name:26} log loss {log_loss(late_test, model.predict_proba(test)):.3f}")
# [coefficients]
posterior = model[-1]
low, high = np.quantile(posterior.coef_draws_[:, 0], [0.05, 0.95], axis=0)
for name, mean, left, right in zip(
    columns.get_feature_names_out(), posterior.coef_[0], low, high, strict=True
):
    print(f"{name:15} {mean:6.2f}   90 %: {left:6.2f} to {right:5.2f}")
print(posterior.run_.verdict.sound, posterior.run_.ess("bulk").min() > 1000)
# [predict]
someone = pd.DataFrame(
    {
        "income": [24_000.0, 24_000.0],
        "years_employed": [3, 3],
        "home": ["rent", "parents"],
        "late_before": [1, 1],
    }
)
probability = model.predict_proba(someone)[:, 1]
interval = posterior.predict_interval(columns.transform(someone), level=0.9)[:, 1]
for home, mean, (left, right) in zip(someone["home"], probability, interval, strict=True):
    print(f"{home:8} {mean:.2f}   90 %: {left:.2f} to {right:.2f}")
# [question]
coefficients = posterior.coef_draws_[:, 0]
names = list(columns.get_feature_names_out())
rent, parents = (coefficients[:, names.index(f"home_{home}")] for home in ("rent", "parents"))
print("rent is worse than parents with probability", np.mean(rent > parents).round(2))
# [end]
