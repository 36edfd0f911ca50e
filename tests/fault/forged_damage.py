"""DamagedRuns: cases of forged_test.py: checkpoints that are damaged or missing, and a run without a chain."""

import shutil

import forger
from forged_runs import LAST, MIDDLE, ForgedRuns
from harness import check


class DamagedRuns(ForgedRuns):
    def damaged(self):
        config, checkpoints = self.copy("damaged")
        chunk = checkpoints / LAST / "model/layers/mlp/down/weight/c.0.0.0"
        manifest = checkpoints / LAST / "manifest.json"
        for file, harm in ((chunk, flipped), (chunk, truncated), (manifest, flipped), (manifest, truncated)):
            whole = file.read_bytes()
            file.write_bytes(harm(whole))
            self.verify("runs/damaged", "--no_replay", says=[["3 fine (steps 5, 10, 15)"], [LAST, "damaged"]])
            self.refused_damage(config, "runs/damaged", file)
            file.write_bytes(whole)
        self.taken(config, "runs/damaged")
        chunk.write_bytes(flipped(chunk.read_bytes()))
        # With --unchecked readers pass over a damaged one, as a run without a chain would have it.
        text = self.w.good(*self.readers(config, "runs/damaged")[0], "--unchecked")
        check("falling back to" in text and "step-00000015" in text, f"no fall back:\n{text}")
        self.goes_on("damaged", config, 15, LAST, "damaged")
        middle = checkpoints / MIDDLE / "model/layers/mlp/down/weight/c.0.0.0"
        middle.write_bytes(truncated(middle.read_bytes()))
        self.verify("runs/damaged", says=[["3 fine (steps 5, 15, 20)"], [MIDDLE, "damaged"], ["equal"]])
        self.taken(config, "runs/damaged")

    def missing(self):
        config, checkpoints = self.copy("missing")
        shutil.rmtree(checkpoints / MIDDLE)
        self.verify("runs/missing", status=3, says=[["3 fine (steps 5, 15, 20)"], ["incomplete: ", MIDDLE, "missing"], ["equal"]])
        self.taken(config, "runs/missing")
        shutil.rmtree(checkpoints / LAST)
        out = self.w.verdict("incomplete", "runs/missing", "--no_replay", says=[MIDDLE, "missing", "and 1 more like it"])
        check("2 fine (steps 5, 15)" in out, out)
        # The newest there is not the newest of the run: it must be asked for by its name.
        for command in self.readers(config, "runs/missing"):
            self.w.bad(*command, says=[LAST, "missing", "step-00000015", "--unchecked"])
        self.taken(config, "runs/missing/checkpoints/step-00000015")
        shutil.copytree(self.w.root / "runs" / "good" / "checkpoints" / MIDDLE, checkpoints / MIDDLE)
        self.goes_on("missing", config, 15, LAST, "missing")
        shutil.rmtree(checkpoints)
        for command in self.readers(config, "runs/missing"):
            self.w.bad(*command, says=["runs/missing"])

    def none_honest(self):
        config, checkpoints = self.copy("none")
        for folder in checkpoints.iterdir():
            forger.forge(folder)
        self.verify("runs/none", says=[["0 fine"], ["step-00000005", "forged", "and 3 more like it"], ["equal"]])
        self.w.bad("train", "--config", config, says=["none of the 4 checkpoints can be used", LAST, "forged", "copy"])
        check(self.w.chain("none") == self.w.chain("good"), "a run that cannot go on was changed")

    def no_chain(self):
        """A checkpoint that was copied out of its run is read, and that nobody checked it is said."""
        _, checkpoints = self.copy("left")
        forger.forge(checkpoints / MIDDLE)
        away = self.w.root / "away"
        shutil.copytree(checkpoints / MIDDLE, away / MIDDLE)
        for command in self.readers(self.config, f"away/{MIDDLE}"):
            words = ["--tokenizer", "tokenizer.json"] if command[0] in ("sample", "export") else []
            text = self.w.good(*command, *words)
            check(text.count("no chain to check") == 1, f"{command}: not said that there is no chain:\n{text}")
            quiet = self.w.good(*command, *words, "--unchecked")
            check("no chain" not in quiet, f"{command} --unchecked:\n{quiet}")
        shutil.rmtree(self.w.root / "exported")

    def relative_paths(self):
        """Inside the run's folders the chain is found as well."""
        _, checkpoints = self.copy("relative")
        forger.forge(checkpoints / LAST)
        for cwd, path in ((checkpoints, LAST), (checkpoints / LAST, "."), (checkpoints.parent, "."),
                          (checkpoints / LAST / "model", f"../../../checkpoints/./{LAST}/")):
            self.w.bad("sample", "--checkpoint", path, "--prompt", "the", "--max_new_tokens", "4", cwd=cwd,
                       says=["forged", "--unchecked"])
        link = self.w.root / "link"
        link.symlink_to(checkpoints / LAST)
        self.w.bad("inspect", "link", says=["forged", "--unchecked"])


def flipped(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]


def truncated(data):
    return data[: len(data) // 2]
