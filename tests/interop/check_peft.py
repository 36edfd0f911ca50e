#!/usr/bin/env python3
"""Compares LoRA with PEFT on the CPU in f32, from the same model, adapters and batches.

The initial adapters of a run, and those it ends with, are written by `ostro export --to peft` and loaded by PEFT on the
model of `ostro export --to hf`. Losses of 20 steps of AdamW within 1e-4 of PyTorch's on PEFT's model; log-probabilities
of held-out text with the last adapters within 2e-4; the same from the weights with merged adapters. Imported again
(`ostro import --from peft`), the last adapters give the run's log-probabilities, bit for bit, and the same file; adapters that
PEFT made and saved give PEFT's log-probabilities; what does not fit is refused. Adapters that PEFT made for a family with fused, renamed or transposed matrices give
PEFT's log-probabilities, here and written again. Two ways of scaling and of choosing matrices, of which a sampled run takes one.
Usage: check_peft.py --ostro build/.../ostro
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import torch
import hf_models
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
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
    imported(report, base, run, name, last, held)
    config = json.loads((last / "adapter_config.json").read_text())
    report.check(config["r"] == adapter["rank"] and config["lora_alpha"] == adapter["alpha"],
                 f"{name}: adapter_config.json names {', '.join(config['target_modules'])}")


def imported(report, base, run, name, last, held):
    """The adapters of a run and of PEFT, read."""
    directory, hf = base.directory, base.directory / "hf"
    back, again = directory / f"{name}_back", directory / f"{name}_again"
    text = run.run("import", "--from", "peft", last, "--checkpoint", base.run_directory, "--out", back).decode()
    report.check("does not say" not in text, f"{name}: {text.strip()}")
    run.run("export", "--checkpoint", back, "--to", "peft", "--tokenizer", back / "tokenizer.json", "--out", again)
    same = (last / "adapter_model.safetensors").read_bytes() == (again / "adapter_model.safetensors").read_bytes()
    report.check(same, f"{name}: adapters that are imported come out as the same file")
    per_token = lambda checkpoint, out: (run.run("eval", "--config", run.config_path, "--checkpoint", checkpoint, "--per_token", out,
                                                 "--json"), load_file(out))[1]
    ours = per_token(back, directory / f"{name}_back.safetensors")
    report.check(np.array_equal(ours["log_prob"], held["log_prob"]), f"{name}: imported, the bits of the run")

    load = lambda path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    theirs = PeftModel.from_pretrained(load(hf), last, is_trainable=True)
    with torch.no_grad():
        for n, p in theirs.named_parameters():
            if "lora_" in n:
                p += torch.randn(p.shape, generator=torch.Generator().manual_seed(len(n))) * 0.05
    saved = directory / f"{name}_saved"
    theirs.save_pretrained(saved)
    text = run.run("import", "--from", "peft", saved, "--checkpoint", base.run_directory, "--out",
                   directory / f"{name}_theirs").decode()
    report.check("does not say of which base" in text, f"{name}: PEFT's own: {text.strip()[-60:]}")
    ours = per_token(directory / f"{name}_theirs", directory / f"{name}_theirs.safetensors")
    held_out(report, f"{name}: PEFT's adapters, imported", theirs, ours)
    report.check(np.abs(ours["log_prob"] - held["log_prob"]).max() > 1e-2, f"{name}: control: they are other adapters")

    def refused(what, words, change, source=saved, checkpoint=base.run_directory):
        wrong = directory / f"{name}_wrong"
        shutil.copytree(source, wrong)
        change(wrong)
        done = subprocess.run([str(run.ostro), "import", "--from", "peft", str(wrong), "--checkpoint", str(checkpoint), "--out",
                               str(directory / "none")], capture_output=True, text=True, check=False, cwd=directory)
        shutil.rmtree(wrong)
        report.check(done.returncode in (1, 2) and all(w in done.stderr for w in words) and done.stderr.count("error: ") == 1
                     and not (directory / "none").exists() and not (directory / "none.importing").exists(),
                     f"{name}: {what}: {done.stderr.strip()[-220:]}")

    def config(key, value):
        def change(wrong):
            path = wrong / "adapter_config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
        return change

    def tensors(change):
        def write(wrong):
            held = load_file(wrong / "adapter_model.safetensors")
            save_file(change(held), wrong / "adapter_model.safetensors")
        return write

    other = TinyRun(base.ostro, directory, f"{name}_other", {"trainer": {"seed": 5}})
    other.train()
    first = next(iter(load_file(saved / "adapter_model.safetensors")))
    refused("another base", ["adapter for another base", "SHA-256"], lambda _: None, last,
            other.run_directory)
    refused("DoRA", ["use_dora", "true"], config("use_dora", True))
    refused("ranks by module, in tensors of one rank", ["lora_", "in the model"], config("rank_pattern", {"q_proj": 2}))
    refused("another rank", ["lora_", "in the model"], config("r", 3))
    refused("a tensor is missing", [first, "is missing"], tensors(lambda t: {k: v for k, v in t.items() if k != first}))
    refused("a tensor of another model", ["layers.77", "does not have"],
            tensors(lambda t: t | {first.replace("layers.0", "layers.77"): t[first]}))
    def fails(what, words, *command):
        done = subprocess.run([str(run.ostro), *map(str, command)], capture_output=True, text=True, check=False, cwd=directory)
        report.check(done.returncode in (1, 2) and all(w in done.stderr for w in words) and done.stderr.count("error: ") == 1,
                     f"{name}: {what}: {done.stderr.strip()[-220:]}")

    both = directory / f"{name}_both"
    shutil.copytree(hf, both)
    shutil.copy(last / "adapter_config.json", both)
    fails("a model with an adapter", ["adapter_config.json", "--from peft"], "import", "--from", "hf", both, "--out",
          directory / "none")
    fails("a model beside an adapter", [str(last), "another directory"], "export", "--checkpoint", base.run_directory, "--to", "hf",
          "--out", last)
    fails("an adapter beside a model", [str(hf), "another directory"], "export", "--checkpoint", run.run_directory, "--to", "peft",
          "--out", hf)
    fails("nothing to merge", ["--merge_lora", "no adapter"], "export", "--checkpoint", base.run_directory, "--to", "hf",
          "--merge_lora", "--out", directory / "none")
    refused("no adapter", ["adapter_config.json", "is missing"], lambda wrong: (wrong / "adapter_config.json").unlink())
    refused("cut short", ["adapter_model.safetensors", "cut short"],
            lambda wrong: os.truncate(wrong / "adapter_model.safetensors", (wrong / "adapter_model.safetensors").stat().st_size - 1))


# Modules of families that fuse matrices, call them otherwise, or store them transposed.
FUSED = {
    "phi3": ["qkv_proj", "gate_up_proj", "o_proj", "lm_head"],
    "gpt2": ["c_attn", "mlp.c_proj"],
    "gpt_neox": ["query_key_value", "dense_4h_to_h"],
    "starcoder2": ["c_fc", "c_proj", "q_proj"],
}
QUESTIONS = [("def", " move(self, x):"), ("for i in range", "(10):\n    return"), ("x = 12", "34 + y\n\n")]


def fused(report, ostro, top, family):
    """An adapter that PEFT made for such a family, with ranks, factors and layers of its own: read, used and written."""
    name = f"fused_{family}"
    run = TinyRun(ostro, top, name, {}, vocab_size=320, files=20)
    tokenizer = Tokenizer.from_file(str(run.tokenizer))
    directory, saved, base, tuned, again = (run.directory / f"{name}_{word}" for word in ("hf", "saved", "base", "tuned", "again"))
    model = hf_models.random_model(family, 0, tokenizer.get_vocab_size(), 0, seed=3)
    hf_models.write_directory(model, directory, 0, run.tokenizer)
    modules = FUSED[family]
    theirs = get_peft_model(hf_models.load(directory)[0], LoraConfig(
        task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=modules, rank_pattern={modules[0]: 6},
        alpha_pattern={modules[1]: 20}))
    with torch.no_grad():
        for n, p in theirs.named_parameters():
            if "lora_" in n:
                p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(len(n))) * 0.2)
    theirs.save_pretrained(saved)
    run.run("import", "--from", "hf", directory, "--out", base)
    run.run("import", "--from", "peft", saved, "--checkpoint", base, "--out", tuned)

    def answers(checkpoint):
        asked = "".join(json.dumps({"context": a, "continuation": b}) + "\n" for a, b in QUESTIONS)
        out = run.run("score", "--checkpoint", checkpoint, stdin=asked.encode()).decode().splitlines()
        return [json.loads(line)["log_prob"] for line in out]

    def of_torch(model):
        out = []
        for a, b in QUESTIONS:
            ids, first = tokenizer.encode(a + b).ids, len(tokenizer.encode(a).ids)
            with torch.no_grad():
                log_probs = model.eval()(torch.tensor([ids])).logits[0].log_softmax(-1)
            out.append(sum(float(log_probs[i - 1, ids[i]]) for i in range(first, len(ids))))
        return out

    apart = lambda a, b: max(abs(x - y) for x, y in zip(a, b, strict=True))
    ours, wanted, plain = answers(tuned), of_torch(theirs), answers(base)
    report.check(apart(ours, wanted) <= 1e-3 and apart(plain, wanted) > 0.1,
                 f"{name}: {', '.join(modules)}: differs by {apart(ours, wanted):.1e}, without the adapter by {apart(plain, wanted):.1e}")
    run.run("export", "--checkpoint", tuned, "--to", "peft", "--out", again)
    back = of_torch(PeftModel.from_pretrained(hf_models.load(directory)[0], again))
    report.check(apart(back, wanted) <= 1e-3, f"{name}: written again, in PEFT: differs by {apart(back, wanted):.1e}")


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
        for family in seed.draw("fused adapters", FUSED, 1):
            fused(report, args.ostro, directory, family)
    report.finish()


if __name__ == "__main__":
    main()
