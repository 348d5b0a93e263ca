"""A pipeline of scikit-learn, whose last step draws from a posterior."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surrokit_sklearn import BayesianLogisticRegression


def test_a_pipeline(account):
    rng = np.random.default_rng(2)
    n = 300
    table = pd.DataFrame({"tenure": rng.exponential(3, n), "calls": rng.poisson(2.0, n)})
    left = rng.random(n) < 1 / (1 + np.exp(0.4 * table["tenure"] - 0.5 * table["calls"]))
    classes = np.where(left, "left", "stays")
    model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=1))
    model.set_output(transform="pandas").fit(table, classes)
    run = account(model[-1].run_)
    assert run.labels == ["Intercept", "tenure", "calls"]
    fitted = make_pipeline(StandardScaler(), LogisticRegression(C=1e6)).fit(table, classes)
    assert np.allclose(model.predict_proba(table), fitted.predict_proba(table), atol=0.02)
    low, high = model[-1].predict_interval(model[:-1].transform(table))[..., :2].T[:2]
    assert np.all(low <= high)
    assert cross_val_score(model, table, classes, cv=2).mean() > 0.6
