# %% [markdown]
# # Tune a model through Optuna
#
# Optuna describes the search space and keeps the trials, and `PoemSampler` chooses the numbers. The
# validation error of a small model is noisy, because it depends on the random split. This tutorial
# tunes three hyperparameters of a support vector machine and then checks how much was won. Install
# it beside a clone by `pip install "./poem-cma[optuna,plot]" scikit-learn`, or from a wheel by `pip
# install "WHEEL[optuna,plot]" scikit-learn`.
#
# ## The error of one split
#
# The model learns 200 images of digits and is tested on 400 others. A random generator chooses the
# images.

# %%
import matplotlib.pyplot as plt
import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from poem_cma.integrations.optuna import PoemSampler, rng

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_digits(return_X_y=True)
X = X[:, X.std(axis=0) > 2.0]  # without the pixels that are nearly always the same


def error(params, random):
    rows = random.permutation(len(y))
    train, test = rows[:200], rows[200:600]
    svm = SVC(C=params["C"], gamma=params["gamma"])
    model = make_pipeline(SelectKBest(f_classif, k=params["pixels"]), svm)
    return 1.0 - model.fit(X[train], y[train]).score(X[test], y[test])


def errors(params, splits=40):
    """On splits that no study has seen, the same for all parameters."""
    return np.array([error(params, np.random.default_rng([2024, n])) for n in range(splits)])


def shown(values):
    return f"{values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"


usual = {"C": 1.0, "gamma": 1.0 / (X.shape[1] * X.var()), "pixels": X.shape[1]}
before = errors(usual)  # scikit-learn's defaults
print("usual settings:", shown(before))
print(f"single splits: {before.min():.3f} to {before.max():.3f}")

# %% [markdown]
# One split is not enough: splits differ by more than any improvement that one can expect.
#
# ## The study
#
# `rng(trial)` gives the same random numbers to trials that are compared with each other, and
# `paired=True` tells the sampler that the objective uses them. C and gamma are searched on a
# logarithmic scale, the number of pixels is an integer. Pass the number of trials as `budget` if
# you know it.


# %%
def objective(trial):
    params = {
        "C": trial.suggest_float("C", 1e-2, 1e3, log=True),
        "gamma": trial.suggest_float("gamma", 1e-6, 1e-1, log=True),
        "pixels": trial.suggest_int("pixels", 2, X.shape[1]),
    }
    return error(params, rng(trial))


def tuned(seed, x0=None):
    sampler = PoemSampler(paired=True, budget=150, seed=seed, x0=x0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=150)
    return study, sampler.recommend(study)


study, found = tuned(seed=0)
print({name: float(f"{value:.2g}") for name, value in found.items()})

# %% [markdown]
# Use `recommend`, not `study.best_params`, because the best trial is mostly due to an easy split.
#
# ## How sure is this?
#
# Compare on new splits that are common to all settings. The standard error of the difference is
# small, because a hard split is hard for all.

# %%
after = errors(found)
print(f"best trial: {study.best_value:.3f}; on new splits: {shown(after)}")
print("gain over the usual settings:", shown(before - after))

# %% [markdown]
# The value of the best trial is much too good. The gain is what counts. **Optuna's own sampler**
# with the same number of trials is a fair comparison; each of its trials has its own split:

# %%
other = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
other.optimize(objective, n_trials=150)
print("TPE's best trial is worse by", shown(errors(other.best_params) - after))

# %% [markdown]
# A difference of less than two standard errors is not evidence for either. With few trials, or with
# categories and conditions, stay with TPE.
#
# **The sensitivity** tells which numbers matter. Change one at a time:

# %%
figure, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
for panel, name in zip(axes, found, strict=True):
    factors = [0.2, 0.5, 1.0, 2.0, 5.0]
    values = [found[name] * factor for factor in factors]
    if name == "pixels":
        values = sorted({min(max(round(value), 2), X.shape[1]) for value in values})
    curve = np.array([errors(found | {name: value}, 10) for value in values])
    spread = 2 * curve.std(axis=1) / 10**0.5
    panel.errorbar(values, curve.mean(axis=1), yerr=spread, fmt="o-", capsize=3)
    panel.axvline(found[name], color="0.6", ls=":")
    panel.set(xscale="log", xlabel=name)
    panel.set_xticks(ends := [values[0], values[-1]], [f"{value:.2g}" for value in ends])
    panel.minorticks_off()
axes[0].set_ylabel("error on new splits")
figure.savefig("sensitivity.png", dpi=110)

# %% [markdown]
# A flat curve means that the number can be changed without loss. **A warm start** is `x0`: a new
# study begins at known parameters. To continue the same study, give it a storage and call
# `optimize` again; the sampler keeps all its state there.

# %%
_, again = tuned(seed=1, x0=found)
print("another 150 trials change the error by", shown(errors(again) - after))

# %% [markdown]
# If more trials no longer change the error by more than its standard error, stop. Report the error
# on new splits with its standard error, never the value of the best trial.
