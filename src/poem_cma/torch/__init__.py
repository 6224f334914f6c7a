"""Train networks with forward passes alone, in PyTorch: `Poem` and `replay`. Needs PyTorch (extra `torch`)."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('poem_cma.torch needs PyTorch: pip install "poem-cma[torch]"') from error

from poem_cma.torch.log import Log as Log
from poem_cma.torch.optimizer import Poem as Poem
from poem_cma.torch.replay import replay as replay
