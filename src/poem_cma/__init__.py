"""Parameter-free zeroth-order optimisation of noisy black boxes."""

from poem_cma import datasets as datasets
from poem_cma import integrations as integrations
from poem_cma import methods as methods
from poem_cma import plots as plots
from poem_cma import theory as theory
from poem_cma.core import Method as Method
from poem_cma.core import Probe as Probe
from poem_cma.dimension import effective_dimension as effective_dimension
from poem_cma.dimension import gradient_spectrum as gradient_spectrum
from poem_cma.domains import Ball as Ball
from poem_cma.domains import Box as Box
from poem_cma.domains import L1Ball as L1Ball
from poem_cma.domains import Simplex as Simplex
from poem_cma.minimize import minimize as minimize
from poem_cma.optimizer import Optimizer as Optimizer
from poem_cma.oracle import EvaluationError as EvaluationError
from poem_cma.replicate import replicate as replicate
from poem_cma.result import Result as Result
from poem_cma.scipy_method import scipy_method as scipy_method
from poem_cma.spectrum import Spectrum as Spectrum
from poem_cma.workers import Workers as Workers

__version__ = "0.2.0"
