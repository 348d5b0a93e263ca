"""Snippets of the guide "A posterior in place of a fit"."""

# ruff: noqa: E402 (imports stand where they are shown)

# [logistic]
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from surrokit_sklearn import BayesianLogisticRegression

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :5]  # in units from 0.1 to 1000
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = BayesianLogisticRegression(random_state=0).fit(X_train, y_train)
print("score", round(model.score(X_test, y_test), 3))
print("coef ", model.coef_[0].round(3).tolist())
print("sd   ", model.coef_draws_[:, 0].std(axis=0).round(3).tolist())
# [intervals]
print("probability", model.predict_proba(X_test[:3])[:, 1].round(3))
print("90 %", model.predict_interval(X_test[:3], level=0.9)[:, 1].round(3).tolist())
# [draws]
share = (model.coef_draws_[:, 0, 4] < 0).mean()
print("posterior probability that the last coefficient is negative:", round(share, 3))
print(model.run_.ess("bulk").min().round(), "effective draws,", model.run_.verdict)
# [glm]
from surrokit_sklearn import BayesianGLMRegressor

rng = np.random.default_rng(0)
days = rng.uniform(1, 30, size=(200, 1))
visits = rng.poisson(np.exp(0.2 + 0.05 * days[:, 0]))
counts = BayesianGLMRegressor(family="poisson", random_state=0).fit(days, visits)
print("coef", counts.coef_.round(3), "intercept", round(counts.intercept_, 2))
print("mean of visits at 10 days", counts.predict([[10.0]]).round(2))
print("90 % of that mean", counts.predict_interval([[10.0]]).round(2))
new = counts.predict_interval([[10.0]], kind="response", random_state=0)
print("90 % of new visits", new.round(2))
# [search]
from sklearn.model_selection import GridSearchCV

scales = {"prior_scale": [0.1, 2.5]}
quick = BayesianLogisticRegression(target_ess=200, random_state=0)
search = GridSearchCV(quick, scales, scoring="neg_log_loss", cv=3).fit(X_train, y_train)
print(search.best_params_)
# [end]
