"""Fine-tuning small adapters (LoRA) on a frozen network with forward passes alone.

    python examples/torch_lora.py

A network that knows the digits 0 to 4 learns 5 to 9. Only the adapters are searched: the second buffer, the average
and every pass over the weights have their size, not the network's.
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn

from poem_cma.torch import Poem


class Lora(nn.Module):
    """A frozen linear layer and a product of two thin matrices beside it; the second starts at zero."""

    def __init__(self, frozen: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.frozen = frozen
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + x @ self.down.T @ self.up.T


steps = int(os.environ.get("STEPS", 400))
torch.manual_seed(0)
digits = load_digits()
inputs, labels = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
old, new = labels < 5, labels >= 5

layers = [nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()]
backbone = nn.Sequential(*layers, nn.Linear(64, 10))
adam = torch.optim.Adam(backbone.parameters(), 1e-3)
for _ in range(300):  # the pretrained network: ordinary training
    adam.zero_grad()
    nn.functional.cross_entropy(backbone(inputs[old]), labels[old]).backward()
    adam.step()

backbone.requires_grad_(False)
model = nn.Sequential(*(Lora(part) if isinstance(part, nn.Linear) else part for part in backbone))
opt = Poem(model, seed=0)  # finds the adapters: all else is frozen
x, y = inputs[new], labels[new]
print(f"{opt.layout.dimension} of {sum(p.numel() for p in model.parameters())} parameters are searched")


def accuracy() -> float:
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


print(f"accuracy on the new digits before: {accuracy():.3f}")
for step in range(1, steps + 1):
    batch = torch.randint(len(x), (64,))
    opt.step(lambda batch=batch: nn.functional.cross_entropy(model(x[batch]), y[batch]))
    if step % (steps // 4) == 0:
        print(opt.report())
print(f"accuracy on the new digits: {accuracy():.3f}")
