"""Trains a mixture of experts and a dense model of the same active size on the quickstart's texts, and compares held-out bits a byte.

For each seed both see the same tokens: a Llama, and a mixture of 8 experts of half its MLP's width, two for a token. Passes when the
mixture is better with every seed, when its load stays even, and when the same mixture without what balances it (one run)
collapses and `ostro train` warns of it. Sizes are small, for minutes of one core.

  scripts/quickstart.sh                                         # makes quickstart/tokenizer.json and quickstart/cache
  scripts/venv_python.sh bench/mixture.py                       # three seeds
  scripts/venv_python.sh bench/mixture.py --steps 20 --seeds 0
"""
import argparse, json, pathlib, subprocess, sys, tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = {"seq_len": 128, "hidden_dim": 128, "num_layers": 4, "num_heads": 4, "num_kv_heads": 2}
DENSE = SIZE | {"type": "llama", "intermediate_dim": 352}
UNBALANCED = SIZE | {"type": "mixtral", "intermediate_dim": 176, "num_experts": 8, "num_experts_per_tok": 2,
                     "track_expert_load": True}
MIXTURE = UNBALANCED | {"router_aux_loss_coef": 0.01, "router_z_loss_coef": 0.001}
EVEN = 0.9  # of the entropy of loads, 1 at most
WARNING = "balance them"  # of the warning


class Run:
    """One training run of a model; `more` are overrides of the configuration."""

    def __init__(self, a, folder, name, model, seed, *more):
        self.program, self.path = pathlib.Path(a.ostro).resolve(), folder / name
        config = yaml.safe_load((ROOT / "configs/quickstart.yaml").read_text())
        config["model"], config["optimizer"] = model, {"type": "adam", "learning_rate": 0.002, "weight_decay": 0.1,
                                                       "warmup": 0.05}
        data = pathlib.Path(a.data).resolve()
        config["data"] |= {"tokenizer": str(data / "tokenizer.json"), "cache_dir": str(data / "cache")}
        config["trainer"] |= {"id": name, "log_dir": str(folder), "seed": seed, "num_train_steps": a.steps, "mp": "f32",
                              "steps_per_eval": 1000000, "tracker": [{"type": "json"}],
                              "checkpointer": {"keep": [{"every": a.steps}]}}
        config["numerics"] = {"leaf_examples": 8}
        self.config = folder / f"{name}.yaml"
        self.config.write_text(json.dumps(config))
        self.log = self.run("train", "--config", self.config, *more)

    def run(self, *words):
        done = subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"ostro {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout + done.stderr

    def bits_per_byte(self):
        text = subprocess.run([str(self.program), "eval", "--config", str(self.config), "--checkpoint", str(self.path), "--json"],
                              capture_output=True, text=True, check=True).stdout
        return json.loads(text)["bits_per_byte"]

    def last(self, key):
        """The metric of the last step that has it."""
        lines = map(json.loads, (self.path / "metrics.jsonl").read_text().splitlines())
        return [line[key] for line in lines if key in line][-1]


def main():
    ap = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    ap.add_argument("--ostro", default=ROOT / "build/release/ostro/cli/ostro")
    ap.add_argument("--data", default=ROOT / "quickstart", help="folder with tokenizer.json and cache/")
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    a = ap.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="ostro_mixture_") as name:
        folder = pathlib.Path(name)
        for seed in a.seeds:
            dense, mixture = Run(a, folder, f"dense{seed}", DENSE, seed), Run(a, folder, f"mixture{seed}", MIXTURE, seed)
            x, y, entropy = dense.bits_per_byte(), mixture.bits_per_byte(), mixture.last("moe/entropy")
            print(f"seed {seed}: held-out bits a byte {x:.4f} (dense), {y:.4f} (mixture), {100 * (y / x - 1):+.2f} %; entropy of its "
                  f"loads {entropy:.3f}", flush=True)
            if y >= x:
                failed.append(f"seed {seed}: the mixture is not better")
            if entropy < EVEN:
                failed.append(f"seed {seed}: the mixture's loads are uneven")
        alone = Run(a, folder, "unbalanced", UNBALANCED, a.seeds[0])
        warned = [line.strip() for line in alone.log.splitlines() if WARNING in line]
        print(f"without balance: {alone.bits_per_byte():.4f} bits a byte, entropy {alone.last('moe/entropy'):.3f}, largest load "
              f"{alone.last('moe/max_load'):.2f}; {warned[:1] or 'no warning'}")
        if not warned:
            failed.append("without balance: no warning of a collapse")
    print("\n".join(failed) or "ok")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
