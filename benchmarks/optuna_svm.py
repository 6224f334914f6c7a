"""An SVM on digits, tuned through Optuna by this library and by Optuna's own samplers.

    python benchmarks/optuna_svm.py [--seeds 20] [--trials 80] [--samplers poem,TPE,random]

Searched are C and gamma on a log scale, coef0, the degree and the kernel: three floats, one integer, one category. A
trial is the error of three-fold cross-validation on a quarter of the images. The recommended point is that of
`recommend` for this library, and the best trial for the others. It is judged by a machine that is trained on the same
quarter, and tested on the other images. Prints a row for each sampler.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.svm import SVC

from poem_cma.integrations.optuna import PoemSampler

IMAGES, DIGITS = load_digits(return_X_y=True)
TUNED, JUDGED, TUNED_DIGITS, JUDGED_DIGITS = train_test_split(
    IMAGES / 16.0, DIGITS, test_size=0.75, random_state=0, stratify=DIGITS
)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

SAMPLERS = {"poem": PoemSampler, "TPE": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}


def trial_error(trial: optuna.Trial) -> float:
    """The share of the quarter that cross-validation gets wrong, in percent."""
    machine = SVC(
        C=trial.suggest_float("C", 1e-4, 1e4, log=True),
        gamma=trial.suggest_float("gamma", 1e-7, 10.0, log=True),
        coef0=trial.suggest_float("coef0", 0.0, 2.0),
        degree=trial.suggest_int("degree", 2, 6),
        kernel=trial.suggest_categorical("kernel", ["rbf", "poly"]),
    )
    return float(100.0 * (1.0 - cross_val_score(machine, TUNED, TUNED_DIGITS, cv=FOLDS).mean()))


def judged_error(settings: dict[str, Any]) -> float:
    """The share of the other images that a machine trained on the quarter gets wrong, in percent."""
    return float(100.0 * (1.0 - SVC(**settings).fit(TUNED, TUNED_DIGITS).score(JUDGED, JUDGED_DIGITS)))


def study(sampler: str, seed: int, trials: int) -> list[float]:
    """Errors: of the best trial, of the recommended point in cross-validation, and of it on the other images."""
    made = SAMPLERS[sampler](seed=seed)
    found = optuna.create_study(sampler=made)
    found.optimize(trial_error, n_trials=trials)
    settings = made.recommend(found) if isinstance(made, PoemSampler) else found.best_params
    return [found.best_value, trial_error(optuna.trial.FixedTrial(settings)), judged_error(settings)]


def main() -> None:
    """Print medians and quartiles."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    told = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"errors in percent: median (quartiles) of {told.seeds} seeds, {told.trials} trials")
    print("sampler  best trial           recommended          on other images")
    for name in told.samplers.split(","):
        errors = np.array([study(name, seed, told.trials) for seed in range(told.seeds)])
        low, median, high = np.percentile(errors, [25, 50, 75], axis=0)
        cells = [f"{m:.2f} ({a:.2f} to {b:.2f})" for a, m, b in zip(low, median, high, strict=True)]
        print(f"{name:<7}  " + "".join(f"{cell:<21}" for cell in cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
