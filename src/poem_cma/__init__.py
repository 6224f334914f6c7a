"""Parameter-free zeroth-order optimisation of noisy black boxes."""

from poem_cma import datasets, integrations, methods, plots, problems
from poem_cma.domains.named import Integer, Real
from poem_cma.domains.sets import Ball, Box, L1Ball, Simplex
from poem_cma.integrations.scipy import scipy_method
from poem_cma.minimize import minimize
from poem_cma.optimizer import Optimizer
from poem_cma.paper import theory
from poem_cma.paper.algorithm_2 import Spectrum
from poem_cma.paper.dimension import effective_dimension, gradient_spectrum
from poem_cma.replicate import replicate
from poem_cma.result import Result
from poem_cma.run.algorithm import Method, Probe
from poem_cma.run.oracle import EvaluationError
from poem_cma.workers import Workers

__version__ = "0.2.0"

__all__ = [
    "Ball",
    "Box",
    "EvaluationError",
    "Integer",
    "L1Ball",
    "Method",
    "Optimizer",
    "Probe",
    "Real",
    "Result",
    "Simplex",
    "Spectrum",
    "Workers",
    "datasets",
    "effective_dimension",
    "gradient_spectrum",
    "integrations",
    "methods",
    "minimize",
    "plots",
    "problems",
    "replicate",
    "scipy_method",
    "theory",
]


def __dir__() -> list[str]:
    """The public names, so that completion shows these and nothing else."""
    return [*__all__, "__version__"]
