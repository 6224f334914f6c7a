# %% [markdown]
# # Fine-tune a network by forward passes
#
# A small network reads digits. In use, its camera gives mirrored images, and the device has no
# memory for backward passes. The network adapts with forward passes and a few labelled images.
# Install it beside a clone by `pip install "./poem-cma[torch,plot]" scikit-learn`, or from a wheel
# by `pip install "WHEEL[torch,plot]" scikit-learn`.
#
# ## The network and the new images
#
# The network is trained as usual, with gradients, on 800 images. Of the mirrored images, 300 are
# for fine-tuning, and the others only for testing.

# %%
import copy

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from poem_cma.torch import Poem

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
mirrored = images.reshape(-1, 8, 8).flip(2).flatten(1)
labels = torch.tensor(digits.target)
known, few, test = torch.randperm(len(labels)).split([800, 300, len(labels) - 1100])

pretrained = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
adam = torch.optim.Adam(pretrained.parameters(), 3e-3)
for _ in range(400):
    batch = known[torch.randint(len(known), (64,))]
    adam.zero_grad()
    cross_entropy(pretrained(images[batch]), labels[batch]).backward()
    adam.step()


def right(model, inputs):
    """Which of the test images are read correctly."""
    with torch.no_grad():
        return (model(inputs[test]).argmax(1) == labels[test]).float()


print(f"accuracy on usual images {right(pretrained, images).mean():.2f}")
print(f"accuracy on mirrored images {right(pretrained, mirrored).mean():.2f}")

# %% [markdown]
# ## Fine-tuning
#
# `Poem` takes the model and a seed, and no learning rate. The closure runs a forward pass on one
# batch and returns the loss; a step calls it about ten times. `opt.averaged()` shows the running
# average of the weights, which has less noise than the last ones.


# %%
def tuned(seed, steps=600):
    torch.manual_seed(seed)
    model = copy.deepcopy(pretrained)
    opt, curve = Poem(model, seed=seed), []
    for step in range(1, steps + 1):
        batch = few[torch.randint(len(few), (64,))]
        opt.step(lambda batch=batch: cross_entropy(model(mirrored[batch]), labels[batch]))
        if step % 50 == 0:
            with opt.averaged():
                curve.append((step, right(model, mirrored).mean()))
    return model, opt, curve


model, opt, curve = tuned(seed=0)
print(opt.report())

# %% [markdown]
# ## How sure is this?
#
# The training loss is too good, because the network has seen these images often. Use the test
# images. The accuracy is a share of n images, so its standard error is known. For the gain, compare
# image by image:


# %%
def shown(values):
    return f"{values.mean():.3f} ± {values.std() / len(values) ** 0.5:.3f}"


with opt.averaged():
    after = right(model, mirrored)
print("accuracy", shown(after))
print("gain", shown(after - right(pretrained, mirrored)))

# %% [markdown]
# **Another seed** takes other batches and other directions. The picture shows both runs. If the
# curves still rise at the end, use more steps.

# %%
_, _, other = tuned(seed=1)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for seed, run in enumerate((curve, other)):
    axes.plot(*zip(*run, strict=True), "o-", ms=3, label=f"seed {seed}")
axes.axhline(right(pretrained, mirrored).mean(), color="0.6", ls=":", label="before")
axes.set(xlabel="steps of about ten forward passes", ylabel="test accuracy", ylim=(0, 1))
axes.legend(frameon=False)
figure.savefig("accuracy.png", dpi=110)

# %% [markdown]
# **With gradients** the same number of steps is better, and each is cheaper. If a backward pass
# fits into memory, use it:

# %%
torch.manual_seed(0)
usual = copy.deepcopy(pretrained)
adam = torch.optim.Adam(usual.parameters(), 3e-3)
for _ in range(600):
    batch = few[torch.randint(len(few), (64,))]
    adam.zero_grad()
    cross_entropy(usual(mirrored[batch]), labels[batch]).backward()
    adam.step()
print("accuracy with gradients", shown(right(usual, mirrored)))

# %% [markdown]
# ## Continue later
#
# `state_dict` has all that the optimizer knows. A new optimizer that loads it goes on exactly as
# the first one would have (a warm start). The weights are saved as usual.

# %%
torch.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, "tuned.pt")
saved = torch.load("tuned.pt")
model.load_state_dict(saved["model"])
opt = Poem(model, seed=0)
opt.load_state_dict(saved["optimizer"])
batch = few[:64]
opt.step(lambda: cross_entropy(model(mirrored[batch]), labels[batch]))
print(opt.report())

# %% [markdown]
# Report the accuracy on images that were used neither for training nor for a decision, with its
# standard error.
