"""An evasion attack for the Adversarial Robustness Toolbox (ART): predictions only, and few of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from poem_cma._types import Array
from poem_cma.integrations._needs import needs
from poem_cma.optimizer import Optimizer
from poem_cma.run.algorithm import Method, Probe

with needs("ART", "art"):
    from art.attacks.attack import EvasionAttack
    from art.config import ART_NUMPY_DTYPE
    from art.estimators.classification.classifier import ClassifierMixin
    from art.estimators.estimator import BaseEstimator
    from art.utils import check_and_transform_label_format

__all__ = ["PoemAttack"]

#: Probabilities are told from each other by their logarithms, down to this one.
_LEAST = 1e-30

#: So few queries may not make a step; the attack then makes as much of one as it can.
_FEW = 20


class PoemAttack(EvasionAttack):  # type: ignore[misc]
    """Search for adversarial examples near given inputs, using only a classifier's predictions.

    For each input, the attack minimises the margin of the true class over the best other class (with a target: of the
    best other class over the target), in logarithms if predictions are probabilities. All inputs are attacked side by
    side, so that a call of ``predict`` serves many. The attack on an input ends as soon as it is adversarial. Every
    queried point lies within `eps` of its input and within the estimator's clip values.

    Parameters
    ----------
    estimator : ART classifier
        Only its ``predict`` is used.
    norm : 2 or inf
        The norm of the perturbation; "inf" is also accepted.
    eps : float
        The largest norm of the perturbation.
    max_queries : int
        The largest number of predictions for each input.
    targeted : bool
        Whether `y` in ``generate(x, y)`` holds the classes to reach, rather than those to leave.
    method : str or Method
        As in `poem_cma.minimize`.
    batch_size : int
        The largest number of points in a call of ``predict``.
    seed : int
        Same seed, same attack; input number n uses seed + n.

    Attributes
    ----------
    queries : array of int
        How many predictions each input of the last ``generate`` took.

    Examples
    --------
    >>> import numpy as np
    >>> from art.estimators.classification import BlackBoxClassifier
    >>> def probabilities(x):  # two classes on either side of a line
    ...     p = 1.0 / (1.0 + np.exp(-x.sum(axis=1)))
    ...     return np.stack([1.0 - p, p], axis=1)
    >>> model = BlackBoxClassifier(probabilities, (2,), 2, clip_values=(-1.0, 1.0))
    >>> attack = PoemAttack(model, norm=2, eps=0.5, max_queries=100)
    >>> x = np.array([[0.2, 0.3]], dtype=np.float32)
    >>> bool(attack.generate(x).sum() < 0.0)
    True
    """

    attack_params: ClassVar[list[str]] = [
        *EvasionAttack.attack_params, "norm", "eps", "max_queries", "targeted", "method", "batch_size", "seed",
    ]  # fmt: skip
    _estimator_requirements = (BaseEstimator, ClassifierMixin)

    def __init__(
        self,
        estimator: Any,
        *,
        norm: float | str = np.inf,
        eps: float = 0.3,
        max_queries: int = 1000,
        targeted: bool = False,
        method: str | Method = "auto",
        batch_size: int = 128,
        seed: int = 0,
    ) -> None:
        super().__init__(estimator=estimator)
        self.norm, self.eps, self.max_queries = norm, eps, max_queries
        self.targeted, self.method, self.batch_size, self.seed = targeted, method, batch_size, seed
        self.queries = np.zeros(0, dtype=int)
        self._check_params()

    def _check_params(self) -> None:
        super()._check_params()
        if self.norm not in (2, np.inf, "inf"):
            raise ValueError(f"norm must be 2 or inf, not {self.norm!r}")
        if not 0.0 < self.eps < np.inf:
            raise ValueError(f"eps must be a positive number, not {self.eps!r}")
        if self.max_queries < 1:
            raise ValueError(f"max_queries must be at least 1, not {self.max_queries!r}")

    def generate(self, x: Array, y: Any = None, **kwargs: Any) -> Array:
        """Adversarial examples for `x`; if none was found, the point with the smallest margin.

        `y` holds labels as numbers or one-hot. Without it, the attack leads away from the predicted classes.
        """
        if kwargs:
            raise TypeError(f"PoemAttack.generate takes x and y, not {', '.join(kwargs)}")
        if self.targeted and y is None:
            raise ValueError("a targeted attack needs the classes to reach: generate(x, y)")
        images = np.asarray(x, dtype=ART_NUMPY_DTYPE)
        if not len(images):
            return images
        first = self._predict(images)
        labels = first.argmax(axis=1)
        if y is not None:
            labels = check_and_transform_label_format(y, nb_classes=self.estimator.nb_classes).argmax(axis=1)
        logs = bool((first >= 0.0).all() and np.allclose(first.sum(axis=1), 1.0, atol=1e-3))
        hunts = [
            _Hunt(image, self._neighbourhood(image), self, n, lead)
            for n, (image, lead) in enumerate(zip(images, self._leads(first, labels, logs), strict=True))
        ]
        while asked := [(i, probe) for i, hunt in enumerate(hunts) if (probe := hunt.ask()) is not None]:
            points = np.concatenate([hunts[i].images(probe.points) for i, probe in asked])
            owners = np.repeat([i for i, _ in asked], [len(probe.points) for _, probe in asked])
            leads = self._leads(self._predict(points), labels[owners], logs)
            for i, probe in asked:
                mine = owners == i
                hunts[i].tell(probe, points[mine], leads[mine])
        self.queries = np.array([hunt.queries for hunt in hunts], dtype=int)
        return np.stack([hunt.best for hunt in hunts])

    def _predict(self, points: Array) -> Array:
        parts = [points[n : n + self.batch_size] for n in range(0, len(points), self.batch_size)]
        predictions: Array = np.concatenate([self.estimator.predict(part) for part in parts])
        return predictions

    def _leads(self, predictions: Array, labels: Any, logs: bool) -> Array:
        """What is minimised; negative where the input is adversarial."""
        scores = np.log(np.maximum(predictions, _LEAST)) if logs else predictions.astype(float)
        rows = np.arange(len(scores))
        named = scores[rows, labels]
        others = scores.copy()
        others[rows, labels] = -np.inf
        lead: Array = named - others.max(axis=1)
        return -lead if self.targeted else lead

    def _neighbourhood(self, image: Array) -> _Neighbourhood:
        clip = self.estimator.clip_values
        low, high = (-np.inf, np.inf) if clip is None else clip
        low, high = (np.broadcast_to(np.asarray(side, dtype=float), image.shape).ravel() for side in (low, high))
        flat = image.ravel().astype(float)
        if self.norm == 2:
            return _Neighbourhood(low - flat, high - flat, self.eps)
        return _Neighbourhood(np.maximum(low - flat, -self.eps), np.minimum(high - flat, self.eps), np.inf)


class _Neighbourhood:
    """Perturbations between two bounds, of a length of at most `radius`; a domain."""

    def __init__(self, low: Array, high: Array, radius: float) -> None:
        self._low, self._high, self._radius = np.minimum(low, 0.0), np.maximum(high, 0.0), radius
        self.diameter = min(2.0 * radius, float(np.linalg.norm(self._high - self._low)))

    def project(self, delta: Array) -> Array:
        """The nearest point: delta drawn towards 0 by one factor, then clipped; the factor is found by bisection."""
        y: Array = np.clip(delta, self._low, self._high)
        if np.linalg.norm(y) <= self._radius:
            return y
        y = np.zeros_like(y)
        least, most = 0.0, 1.0  # |clip(t delta)| grows with t
        for _ in range(60):
            middle = 0.5 * (least + most)
            tried = np.clip(middle * delta, self._low, self._high)
            if np.linalg.norm(tried) <= self._radius:
                least, y = middle, tried
            else:
                most = middle
        return y


class _Hunt:
    """The attack on one input."""

    def __init__(self, image: Array, near: _Neighbourhood, attack: PoemAttack, number: int, lead: float) -> None:
        self._image, self._near, self._most = image, near, attack.max_queries
        self.best, self._lead, self.queries = image, float(lead), 1
        self._opt: Optimizer | None = None
        if not self.over:
            budget = None if self._most < _FEW else self._most - 1
            seed = attack.seed + number
            self._opt = Optimizer(np.zeros(image.size), method=attack.method, domain=near, budget=budget, seed=seed)

    @property
    def over(self) -> bool:
        """Whether it is adversarial, or its queries are spent."""
        return self._lead < 0.0 or self.queries >= self._most

    def ask(self) -> Probe | None:
        """The next perturbations, as many as may be queried."""
        probe = None if self.over or self._opt is None else self._opt.ask()
        return None if probe is None or self.queries + len(probe.points) > self._most else probe

    def images(self, points: Array) -> Array:
        """The inputs with perturbations, all of them allowed ones."""
        deltas = np.array([self._near.project(delta) for delta in points])
        perturbed: Array = (self._image.ravel() + deltas).astype(self._image.dtype)
        return perturbed.reshape(-1, *self._image.shape)

    def tell(self, probe: Probe, images: Array, leads: Array) -> None:
        """What was predicted for a probe."""
        assert self._opt is not None
        self.queries += len(images)
        j = int(leads.argmin())
        if leads[j] < self._lead:
            self.best, self._lead = images[j], float(leads[j])
        self._opt.tell(probe, leads.tolist())
