"""Training steps in PyTorch as Ostro makes them: AdamW, gradients clipped to a global norm of 1."""
import math

import torch


def adamw_steps(model, loss_of, batches, options):
    """A step for each batch. `loss_of` gives its loss and something to keep; returns the losses and what was kept. Only
    parameters that need gradients move; `options` has the learning rate and the weight decay."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options["learning_rate"], betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=options["weight_decay"])
    losses, kept = [], []
    for batch in batches:
        loss, beside = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(float(p.grad.double().pow(2).sum()) for p in trained))
        for p in trained:
            p.grad *= min(1.0, 1.0 / norm)
        optimizer.step()
        losses.append(loss.item())
        kept.append(beside)
    return losses, kept
