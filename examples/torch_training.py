"""A plain training loop with forward passes alone: scikit-learn's digits, nothing to tune.

python examples/torch_training.py
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn

from poem_cma.torch import Poem

steps = int(os.environ.get("STEPS", 400))
torch.manual_seed(0)
digits = load_digits()
inputs, labels = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

opt = Poem(model, seed=0)  # no learning rate, no perturbation size
for step in range(1, steps + 1):
    batch = torch.randint(len(inputs), (64,))

    def closure() -> torch.Tensor:  # a forward pass; called a few times a step, without gradients
        return nn.functional.cross_entropy(model(inputs[batch]), labels[batch])  # noqa: B023

    opt.step(closure)
    if step % (steps // 4) == 0:
        print(opt.report())

with torch.no_grad(), opt.averaged():  # the running average; the model's own weights come back afterwards
    print(f"accuracy of the averaged weights: {(model(inputs).argmax(1) == labels).float().mean():.3f}")
opt.log.save("digits.poem-log")  # eight bytes a forward pass: with the first weights, a checkpoint
