"""A suite of two small black boxes, which a test puts in the place of the suite rough."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma import Box
from poem_cma.problems.black_box import BlackBox


def bowl(name: str = "bowl", *, d: int = 3, domain: Any = None, shared: bool = True, suite: str = "rough") -> BlackBox:
    """F(x; xi) = |x - 0.3|^2 + xi'x / 10, started at 0.1 or at the nearest point of the domain."""

    def fun(x: Any, xi: Any) -> float:
        return float((x - 0.3) @ (x - 0.3) + 0.1 * xi @ x)

    x0 = np.full(d, 0.1) if domain is None else domain.project(np.full(d, 0.1))
    return BlackBox(
        name, suite, "a test", x0, domain, fun, lambda rng: rng.standard_normal(d),
        lambda x: float((x - 0.3) @ (x - 0.3)), (60, 120), shared,
    )  # fmt: skip


BLACK_BOXES = {
    "bowl": lambda: bowl(domain=Box(np.full(3, -1.0), 2.0)),
    "bowl-own": lambda: bowl("bowl-own", shared=False),
}
