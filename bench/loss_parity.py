"""Trains the model of bench/dense.yaml in PyTorch on the very batches of `ostro train` and compares the held-out losses.

Both sides start from the same weights (the run's initial ones, exported) and see the same batches, learning rates and
held-out sequences; transformers' Llama under bf16 autocast with AdamW is the other side. Per seed: one run of `ostro`,
one of PyTorch. Passes when the mean held-out losses of all seeds differ by at most --limit (relative). The full
length takes hours of one core in PyTorch; --steps shortens it, on both sides.

  scripts/quickstart.sh                                         # makes quickstart/tokenizer.json and quickstart/cache
  scripts/venv_python.sh bench/loss_parity.py                   # three seeds, the config's number of steps
  scripts/venv_python.sh bench/loss_parity.py --steps 20 --seeds 0

The initial weights come out of a run of one step whose learning rate is too small to move any weight.
"""
import argparse, decimal, json, math, os, pathlib, subprocess, sys, tempfile, time

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
import numpy as np
import torch
import yaml
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Ours:
    """The commands of one seed. `more` are overrides of the config."""

    def __init__(self, a, folder, seed):
        self.program, self.folder, self.seed = pathlib.Path(a.ostro).resolve(), folder, seed
        data = pathlib.Path(a.data).resolve()
        self.config = ["--config", pathlib.Path(a.config).resolve(), "--data.tokenizer", data / "tokenizer.json",
                       "--data.cache_dir", data / "cache", "--trainer.log_dir", folder, "--trainer.seed", seed]
        if a.steps:
            self.config += ["--trainer.num_train_steps", a.steps]

    def run(self, *words):
        done = subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"ostro {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def train(self, name, *more):
        self.run("train", *self.config, "--trainer.id", name, "--trainer.steps_per_eval", 1000000, *more)
        return self.folder / name

    def initial_weights(self):
        run = self.train(f"init{self.seed}", "--trainer.num_train_steps", 1, "--optimizer.learning_rate", 1e-30)
        self.run("export", "--checkpoint", run, "--to", "hf", "--out", self.folder / f"hf{self.seed}")
        return self.folder / f"hf{self.seed}"

    def held_out(self, checkpoint):
        """Loss, and the held-out sequences as arrays [sequence, pos]."""
        file = self.folder / f"held_out{self.seed}.safetensors"
        out = json.loads(self.run("eval", *self.config, "--checkpoint", checkpoint, "--per_token", file, "--json"))
        return out["loss"], load_file(file)

    def batch(self, step):
        rows = json.loads(self.run("data", "batch", *self.config, "--step", step, "--json"))["sequences"]
        return [np.array([r[key] for r in rows]) for key in ("tokens", "targets", "loss_mask")]


def learning_rate(o, step, steps):
    """Warm-up, then cosine: the schedule of bench/dense.yaml."""
    warmup = int(decimal.Decimal(str(o["warmup"])) * steps) if o["warmup"] <= 1 else int(o["warmup"])
    if step < warmup:
        return o["learning_rate"] * step / warmup
    floor = o["learning_rate"] * o["min_lr_ratio"]
    return floor + (o["learning_rate"] - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def losses(model, tokens, targets, bf16):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        logits = model(torch.from_numpy(tokens).long(), use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1),
                                             torch.from_numpy(targets).long().flatten(), reduction="none")


def train_torch(ours, weights, resolved, held_out):
    o, steps = resolved["optimizer"], resolved["trainer"]["num_train_steps"]
    bf16 = "bf" in resolved["trainer"]["mp"]
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    plain = [p for n, p in model.named_parameters() if any(w in n for w in ("norm", "embed", "bias"))]
    decayed = [p for n, p in model.named_parameters() if not any(w in n for w in ("norm", "embed", "bias"))]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": o["weight_decay"]},
                                   {"params": plain, "weight_decay": 0.0}],
                                  betas=(o["beta1"], o["beta2"]), eps=o["epsilon"], fused=True)
    began, trained = time.time(), []
    for step in range(steps):
        tokens, targets, mask = ours.batch(step)
        mask = torch.from_numpy(mask.astype(np.float32)).flatten()
        loss = (losses(model, tokens, targets, bf16) * mask).sum() / mask.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), o["max_grad_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(o, step, steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        trained.append(loss.item())
        if step % 20 == 0 or step + 1 == steps:
            print(f"  PyTorch step {step}: loss {trained[-1]:.4f}, {time.time() - began:.0f} s", flush=True)
    total = weight = 0.0
    with torch.no_grad():
        for i in range(0, len(held_out["tokens"]), 8):
            part = {k: held_out[k][i:i + 8] for k in ("tokens", "targets", "mask")}
            mask = torch.from_numpy(part["mask"].astype(np.float64)).flatten()
            total += (losses(model, part["tokens"], part["targets"], bf16).double() * mask).sum().item()
            weight += mask.sum().item()
    return trained, total / weight


def chain_losses(run):
    entries = map(json.loads, (run / "chain.jsonl").read_text().splitlines())
    return [float.fromhex(e["loss"]) for e in entries if e["kind"] == "step"]


def main():
    ap = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    ap.add_argument("--ostro", default=ROOT / "build/release/ostro/cli/ostro")
    ap.add_argument("--config", default=ROOT / "bench/dense.yaml")
    ap.add_argument("--data", default=ROOT / "quickstart", help="folder with tokenizer.json and cache/")
    ap.add_argument("--steps", type=int, help="instead of the config's")
    ap.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    ap.add_argument("--limit", type=float, default=0.005)
    a = ap.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory(prefix="ostro_parity_") as folder:
        for seed in a.seeds:
            ours = Ours(a, pathlib.Path(folder), seed)
            run = ours.train(f"seed{seed}")
            resolved = yaml.safe_load((run / "config.yaml").read_text())
            for key, value in resolved["optimizer"].items():  # YAML 1.1 reads 1e-08 as text
                if isinstance(value, str) and key not in ("type", "lr_schedule"):
                    resolved["optimizer"][key] = float(value)
            if resolved["optimizer"]["lr_schedule"] != "cosine":
                sys.exit("only the cosine schedule is written out here")
            loss, held_out = ours.held_out(run)
            trained, other = train_torch(ours, ours.initial_weights(), resolved, held_out)
            chain = chain_losses(run)
            print(f"seed {seed}: first training losses {chain[0]:.5f} and {trained[0]:.5f}, last {chain[-1]:.4f} and "
                  f"{trained[-1]:.4f}; held-out {loss:.5f} (ostro) and {other:.5f} (PyTorch), "
                  f"{100 * (loss / other - 1):+.3f} %", flush=True)
            pairs.append((loss, other))
    mean = [sum(p[i] for p in pairs) / len(pairs) for i in (0, 1)]
    difference = mean[0] / mean[1] - 1
    ok = abs(difference) <= a.limit
    print(f"{'ok' if ok else 'FAILED'}: mean held-out loss of {len(pairs)} seeds {mean[0]:.5f} (ostro) and {mean[1]:.5f} "
          f"(PyTorch), {100 * difference:+.3f} % (limit {100 * a.limit} %)")
    sys.exit(0 if ok else 1)


main()
