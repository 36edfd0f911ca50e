"""ForgedRuns: what all cases of forged_test.py share: a good run, its copies, and what a command must say of one.

The good run has 20 steps and checkpoints after steps 5, 10, 15 and 20; it stays as it is, each case changes a copy.
The cases are methods of the classes in the forged_*.py beside this file; no method here is one.
"""

import json
import shutil

import forger
from harness import check

STEPS, EVERY = 20, 5
LAST, MIDDLE = "step-00000020", "step-00000010"


class ForgedRuns:
    def __init__(self, workspace):
        self.w = w = workspace
        self.config = w.config("good", STEPS, EVERY)
        w.train(self.config)
        self.hash = w.good("hash", "runs/good").strip()
        self.states = w.checkpoints("good")

    def copy(self, name):
        """A copy of the good run as run NAME; its configuration and its checkpoints' folder."""
        config = self.w.config(name, STEPS, EVERY, data__cache_dir="cache-good")
        shutil.copytree(self.w.root / "runs" / "good", self.w.root / "runs" / name)
        return config, self.w.root / "runs" / name / "checkpoints"

    def verify(self, run, *words, says, status=1, env=None):
        """verify of a run ends so, and has lines with all the words of each of `says`."""
        got, out, err = self.w.run("verify", run, *words, env=env)
        check(got == status, f"verify {run} {words}: exit status {got}, not {status}\n{out}{err}")
        for line_says in says:
            check(any(all(word in line for word in line_says) for line in out.splitlines()),
                  f"verify {run} {words}: no line with {line_says}:\n{out}{err}")
        return out

    def readers(self, config, checkpoint):
        """Every command that reads one checkpoint."""
        common = ["--checkpoint", checkpoint]
        return [
            ["sample", *common, "--prompt", "the", "--max_new_tokens", "4", "--json"],
            ["eval", *common, "--config", config, "--json"],
            ["export", *common, "--to", "hf", "--out", "exported"],
            ["grad", *common, "--config", config, "--step", "0", "--out", "gradients.safetensors"],
            *([["inspect", checkpoint]] if "step-" in checkpoint else []),
        ]

    def refused(self, config, checkpoint, says, sound=True):
        """Every reader refuses it; when it is `sound` in itself, takes it with --unchecked and warns."""
        for command in self.readers(config, checkpoint):
            self.w.bad(*command, says=[*says, "--unchecked"])
            if not sound:
                continue
            text = self.w.good(*command, "--unchecked")
            check("warning: " in text and "not checked against the chain" in text,
                  f"{command}: no warning that nothing was checked:\n{text}")
        check(not (self.w.root / "exported").exists() or sound, "a refused checkpoint was exported")
        shutil.rmtree(self.w.root / "exported", ignore_errors=True)

    def taken(self, config, checkpoint, warns=()):
        """Every reader takes it without a warning, but that with the words of `warns` when there are any."""
        for command in self.readers(config, checkpoint):
            text = self.w.good(*command)
            warnings = [line for line in text.splitlines() if line.startswith("warning: ")]
            check(len(warnings) == (1 if warns else 0) and all(word in warnings[0] for word in warns),
                  f"{command}: warnings {warnings}, not {warns}")

    def goes_on(self, name, config, step, *says):
        """Training falls back to `step`, says why, and ends with the good run's chain and checkpoints."""
        text = self.w.train(config)
        warnings = [line for line in text.splitlines() if line.startswith("warning: ")]
        check(f"resuming runs/{name} after step {step}" in text, f"not from step {step}:\n{text}")
        check(any(all(word in line for word in says) for line in warnings), f"no warning with {says}:\n{text}")
        check(self.w.chain(name) == self.w.chain("good"), f"{name}: the chain differs from the good run's")
        check(self.w.checkpoints(name) == self.states, f"{name}: other checkpoints than the good run's")
        self.verify(f"runs/{name}", "--no_replay", status=0, says=[["4 fine"]])

    def refused_damage(self, config, run, file):
        for command in self.readers(config, run):
            self.w.bad(*command, says=[LAST])
        check(not (self.w.root / "exported").exists(), "a damaged checkpoint was exported")

    def rename_states(self, chain, names):
        """The checkpoint entries of these directories name other states."""
        of_step = {int(folder[5:]): name for folder, name in names.items()}
        forger.rewrite_chain(chain, lambda e: e | {"name": of_step.get(e["step"], e["name"])} if e["kind"] == "checkpoint" else e)

    def reseal(self, checkpoints):
        """The manifests name the heads of the chain as it is now."""
        entries = map(json.loads, (checkpoints.parent / "chain.jsonl").read_text().splitlines())
        heads = {e["step"]: e["h"] for e in entries if e["kind"] == "step"}
        for folder in checkpoints.iterdir():
            step = forger.read_manifest(folder)["step"]
            if step in heads:
                forger.seal(folder, chain_head=heads[step])
