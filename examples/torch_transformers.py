"""Hugging Face's Trainer without backward passes: a small recipe, to copy.

    pip install transformers accelerate
    python examples/torch_transformers.py

`training_step` makes the whole step, all its forward passes on one batch; what the Trainer does with an optimizer
afterwards (its own `step`, the schedule of a learning rate) has nothing left to do.
"""

import os
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from poem_cma.torch import Poem


class Nothing(torch.optim.SGD):
    """What the Trainer sees as its optimizer: it never moves anything."""

    def step(self, closure: Any = None) -> None:
        return None


class ForwardTrainer(Trainer):
    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        self.poem = Poem(self.model.named_parameters(), module=self.model, seed=self.args.seed)
        self.optimizer = Nothing([torch.nn.Parameter(torch.zeros(1))], lr=0.0)
        return self.optimizer

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any], *_: Any) -> torch.Tensor:
        model.train()
        inputs = self._prepare_inputs(inputs)
        return self.poem.step(lambda: self.compute_loss(model, inputs)).to(self.args.device)


class Parity(torch.utils.data.Dataset):
    """Sequences of eight symbols; the label is whether the first is one of the upper half."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(0, 16, (8,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": ids, "labels": (ids[0] >= 8).long()}


def main() -> None:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=16, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    arguments = TrainingArguments(
        output_dir="results/trainer",
        max_steps=int(os.environ.get("STEPS", 200)),
        per_device_train_batch_size=64,
        logging_steps=50,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
    )
    trainer = ForwardTrainer(BertForSequenceClassification(config), arguments, train_dataset=Parity())
    trainer.train()
    print(trainer.poem)


if __name__ == "__main__":
    main()
