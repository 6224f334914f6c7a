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
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + x @ self.down.T @ self.up.T


steps = int(os.environ.get("STEPS", 300))
torch.manual_seed(0)
digits = load_digits()
inputs, labels = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
old, new = labels < 5, labels >= 5

backbone = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
adam = torch.optim.Adam(backbone.parameters(), 1e-2)
for _ in range(200):  # the pretrained network: ordinary training
    adam.zero_grad()
    nn.functional.cross_entropy(backbone(inputs[old]), labels[old]).backward()
    adam.step()

model = nn.Sequential(Lora(backbone[0]), nn.ReLU(), Lora(backbone[2]), nn.ReLU(), Lora(backbone[4]))
opt = Poem(model.named_parameters(), seed=0)  # finds the adapters: all else is frozen
x, y = inputs[new], labels[new]
print(f"{opt.layout.dimension} of {sum(p.numel() for p in model.parameters())} parameters are searched")
for step in range(1, steps + 1):
    batch = torch.randint(len(x), (64,))
    loss = opt.step(lambda batch=batch: nn.functional.cross_entropy(model(x[batch]), y[batch]))
    if step % (steps // 3) == 0:
        print(f"step {step}, {opt.now.forwards} forward passes, loss of the batch {loss:.3f}")
with torch.no_grad():
    print(f"accuracy on the new digits: {(model(x).argmax(1) == y).float().mean():.3f}")
