#!/usr/bin/env python3
"""LoRA beside PEFT on the CPU in f32, from the same model, adapters and batches.

The initial adapters of a run, and those it ends with, are written by `ostro export --to peft` and loaded by PEFT on the
model of `ostro export --to hf`. Losses of 20 steps of AdamW within 1e-4 of PyTorch's on PEFT's model; log-probabilities
of held-out text with the last adapters within 2e-4; the same from the weights with merged adapters. Two ways of
scaling and of choosing matrices, of which a sampled run takes one.
Usage: check_peft.py --ostro build/.../ostro
"""
import argparse
import json
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
from peft import PeftModel
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

from tiny_run import Report, TinyRun, seed
from torch_steps import adamw_steps

ADAPTERS = {
    "some": {"rank": 4, "alpha": 8, "target_modules": ["q_proj", "v_proj", "down_proj"]},
    "all_rslora": {"rank": 8, "alpha": 16, "use_rslora": True},
}
STEPS = 20
OPTIMIZER = {"learning_rate": 0.01, "warmup": 0, "lr_schedule": "constant", "weight_decay": 0.1}


def arrays(batch):
    rows = batch["sequences"]
    return {k: torch.tensor([r[k] for r in rows]) for k in ("tokens", "targets")} | {
        "mask": torch.tensor([r["loss_mask"] for r in rows], dtype=torch.float64)}


def torch_losses(model, batches):
    """Losses of the parameters that need gradients, in the steps of adamw_steps."""
    def loss(batch):
        log_probs = model(batch["tokens"]).logits.log_softmax(-1)
        nll = -log_probs.gather(-1, batch["targets"][..., None])[..., 0]
        return (nll.double() * batch["mask"]).sum() / batch["mask"].sum(), None

    return adamw_steps(model, loss, batches, OPTIMIZER)[0]


def held_out(report, what, model, ours):
    tokens, targets = (torch.from_numpy(ours[k].astype(np.int64)) for k in ("tokens", "targets"))
    with torch.no_grad():
        theirs = model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy()
    worst = np.abs(theirs - ours["log_prob"])[ours["mask"] == 1].max()
    report.check(worst <= 2e-4, f"{what}: log-probabilities differ by {worst:.1e} (limit 2e-4)")
    return theirs


def check(report, base, name, adapter):
    directory, hf = base.directory, base.directory / "hf"
    run = TinyRun(base.ostro, directory, name, {
        "adapter": {"type": "lora", **adapter}, "optimizer": OPTIMIZER,
        "trainer": {"initialize_from": str(base.run_directory), "num_train_steps": STEPS}})
    run.train()
    first, last, merged = (directory / f"{name}_{word}" for word in ("first", "last", "merged"))
    run.run("export", "--checkpoint", run.run_directory / "initial/step-00000000", "--unchecked", "--to", "peft",
            "--tokenizer", run.tokenizer, "--out", first)
    run.run("export", "--checkpoint", run.run_directory, "--to", "peft", "--out", last)
    run.run("export", "--checkpoint", run.run_directory, "--to", "hf", "--merge_lora", "--out", merged)
    load = lambda path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)

    model = PeftModel.from_pretrained(load(hf), first, is_trainable=True)
    theirs = torch_losses(model, [arrays(run.batch(step)) for step in range(STEPS)])
    ours = run.losses()
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    report.check(worst <= 1e-4 and len(ours) == STEPS,
                 f"{name}: {STEPS} losses, {ours[0]:.4f} to {ours[-1]:.4f}, largest difference {worst:.1e} (limit 1e-4)")
    # The control: the losses of a model that learns nothing are others.
    still = torch_losses(PeftModel.from_pretrained(load(hf), first, is_trainable=True),
                         [arrays(run.batch(step)) for step in (STEPS - 2, STEPS - 1)])[0]
    report.check(abs(still - ours[-2]) > 1e-3, f"{name}: control without training differs by {abs(still - ours[-2]):.1e}")

    run.run("eval", "--config", run.config_path, "--checkpoint", run.run_directory, "--per_token",
            directory / f"{name}.safetensors", "--json")
    held = load_file(directory / f"{name}.safetensors")
    held_out(report, f"{name}: the adapters in PEFT", PeftModel.from_pretrained(load(hf), last), held)
    held_out(report, f"{name}: merged weights", load(merged), held)
    plain = load(hf)
    tokens, targets = (torch.from_numpy(held[k].astype(np.int64)) for k in ("tokens", "targets"))
    with torch.no_grad():
        without = plain(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy()
    worst = np.abs(without - held["log_prob"])[held["mask"] == 1].max()
    report.check(worst > 2e-3, f"{name}: control without the adapters differs by {worst:.1e}")
    config = json.loads((last / "adapter_config.json").read_text())
    report.check(config["r"] == adapter["rank"] and config["lora_alpha"] == adapter["alpha"],
                 f"{name}: adapter_config.json names {', '.join(config['target_modules'])}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        base = TinyRun(args.ostro, directory, "base", {})
        base.train()
        base.run("export", "--checkpoint", base.run_directory, "--to", "hf", "--out", base.directory / "hf")
        for name in seed.draw("adapters", ADAPTERS, 1):
            check(report, base, name, ADAPTERS[name])
    report.finish()


if __name__ == "__main__":
    main()
