#!/usr/bin/env python3
"""Models that are not what their provenance.json or their record says: `ostro verify RUN --model DIR` names each fraud, and
accepts every honest export. A fraud is planted together with every hash that a cheater can write anew.

    model_frauds_test.py --ostro BINARY [CASE...]
"""

import hashlib
import json
import shutil
import struct
import sys

import forger
from harness import check, run_cases

STEPS, EVERY = 10, 5
LAST = "step-00000010"
WEIGHTS = "model.safetensors"
GROK = {"type": "grok", "seq_len": 16, "hidden_dim": 16, "intermediate_dim": 24, "num_layers": 2, "num_heads": 2,
        "num_kv_heads": 1, "num_experts": 4}


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tensors_of(path):
    """The header's tensors by name, and the whole file; offsets in the file."""
    data = bytearray(path.read_bytes())
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    for one in header.values():
        if "data_offsets" in one:
            one["begin"], one["end"] = (8 + size + at for at in one["data_offsets"])
    return {name: one for name, one in header.items() if name != "__metadata__"}, data


def bf16_of(value):
    """The 16 bits of the nearest bf16, ties to even, of a finite number."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


class Cases:
    def __init__(self, workspace):
        self.w = w = workspace
        self.checkpoints = w.root / "runs" / "good" / "checkpoints"
        shared = {"data__cache_dir": "cache"}
        w.train(w.config("good", STEPS, EVERY, **shared))
        w.train(w.config("other", STEPS, EVERY, trainer__seed=1, **shared))
        w.train(w.config("lora", STEPS, EVERY, trainer__initialize_from="runs/good",
                         adapter={"type": "lora", "rank": 4, "alpha": 8}, optimizer__learning_rate=0.1, **shared))
        for seed in (0, 1):
            w.train(w.config(f"grok{seed}", EVERY, EVERY, model=GROK, trainer__seed=seed, **shared))
        for dtype in ("f32", "bf16"):
            self.export("good", dtype, "--dtype", dtype)
        self.export("other", "other")
        self.export("lora", "merged", "--merge_lora")
        for seed in (0, 1):
            w.good("export", "--checkpoint", f"runs/grok{seed}", "--to", "grok", "--out", f"int8-{seed}")

    def export(self, run, name, *words, to="hf", env=None):
        self.w.good("export", "--checkpoint", f"runs/{run}", "--to", to, "--out", name, *words, env=env)

    def copy(self, model):
        """A fresh copy of an exported model, to plant a fraud in."""
        path = self.w.root / "fraud"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.w.root / model, path)
        return path

    def relist(self, model):
        """Lets provenance.json list the hashes that the files have now."""
        path = model / "provenance.json"
        made = json.loads(path.read_text())
        for name, digest in made["files"].items():
            digest |= {"bytes": (model / name).stat().st_size, "sha256": sha(model / name)}
        self.rewrite(path, made)

    @staticmethod
    def rewrite(path, made):
        path.write_text(forger.canonical(made) + "\n")

    def named(self, *says, run="good", word="differs", alone="differs", words=()):
        """The fraud is named by the record, and by the directory alone as far as its own hashes tell."""
        self.w.verdict(alone, "fraud")
        return self.w.verdict(word, f"runs/{run}", "--model", "fraud", *words, says=says)

    def replanted(self, *says, run="good"):
        """The fraud in a directory of which every hash fits."""
        self.relist(self.w.root / "fraud")
        return self.named(*says, run=run, alone="incomplete")

    def honest(self):
        """Every kind of export, written with 1 and 2 threads and checked with others, with and without vector units."""
        w = self.w
        kinds = {"f32": ("good", "hf", "--dtype", "f32"), "bf16": ("good", "hf", "--dtype", "bf16"),
                 "f16": ("good", "hf", "--dtype", "f16"), "shards": ("good", "hf", "--shard_size", "20000"),
                 "merged": ("lora", "hf", "--merge_lora"), "merged16": ("lora", "hf", "--merge_lora", "--dtype", "bf16"),
                 "adapter": ("lora", "peft", "--base", "model"), "int8": ("grok0", "grok"),
                 "grok16": ("grok0", "grok", "--dtype", "bf16"), "grok32": ("grok0", "grok", "--dtype", "f32")}
        for name, (run, to, *words) in kinds.items():
            self.export(run, f"one-{name}", *words, to=to)
            self.export(run, f"two-{name}", *words, to=to, env={"OSTRO_THREADS": "2", "OSTRO_ISA": "generic"})
            for file in (w.root / f"one-{name}").rglob("*"):
                check(file.is_dir() or file.read_bytes() == (w.root / f"two-{name}" / file.relative_to(w.root / f"one-{name}"))
                      .read_bytes(), f"{name}: {file} is another with two threads")
            w.verdict("equal", f"runs/{run}", "--model", f"two-{name}", says=["every byte of"])
        w.verdict("equal", "runs/lora", "--model", "one-merged", env={"OSTRO_THREADS": "2", "OSTRO_ISA": "generic"})
        head = w.good("hash", "runs/good").split()[0]
        text = w.verdict("equal", "runs/good", "--model", "bf16", "--run_hash", head)
        check("as given" in text, text)
        w.verdict("differs", "runs/good", "--model", "bf16", "--run_hash", "0" * 64, says=["run hash"])
        self.readme_may_change()

    def readme_may_change(self):
        model = self.copy("f32")
        (model / "README.md").write_text("a model card\n")
        self.named("every byte of", word="equal", alone="incomplete")
        status, out, _ = self.w.run("verify", "runs/good", "--model", "fraud", "--json")
        check(status == 0 and json.loads(out)["verdict"] == "equal", out)

    def one_weight(self):
        for dtype, name, size in (("f32", "lm_head.weight", 4), ("bf16", "model.norm.weight", 2)):
            model = self.copy(dtype)
            tensors, data = tensors_of(model / WEIGHTS)
            place = tensors[name]["begin"] + 5 * size
            data[place] ^= 1  # the last bit of its mantissa
            (model / WEIGHTS).write_bytes(data)
            self.named(WEIGHTS, name, "element [5]" if dtype == "bf16" else "element [0, 5]", "1 of")
            self.replanted(WEIGHTS, name, "1 of")

    def other_rounding(self):
        """Weights that come from the right ones by another rounding: the cause is said."""
        tensors, data = tensors_of(self.w.root / "f32" / WEIGHTS)
        ours, _ = tensors_of(self.w.root / "bf16" / WEIGHTS)
        roundings = {
            "cutting off": lambda x: struct.unpack("<I", struct.pack("<f", x))[0] >> 16,
            "f16": lambda x: bf16_of(struct.unpack("<e", struct.pack("<e", x))[0]),
        }
        for cause, rounded in roundings.items():
            model = self.copy("bf16")
            out = bytearray((model / WEIGHTS).read_bytes())
            for name, one in tensors.items():
                count = (one["end"] - one["begin"]) // 4
                values = struct.unpack_from(f"<{count}f", data, one["begin"])
                struct.pack_into(f"<{count}H", out, ours[name]["begin"], *map(rounded, values))
            (model / WEIGHTS).write_bytes(out)
            self.replanted(WEIGHTS, cause)
        # The bits of f16 under the name of bf16, in whole the file of an f16 export but for its header.
        self.export("good", "f16", "--dtype", "f16")
        model = self.copy("bf16")
        (model / WEIGHTS).write_bytes((self.w.root / "f16" / WEIGHTS).read_bytes())
        self.replanted("F16", "BF16")
        data = bytearray((self.w.root / "bf16" / WEIGHTS).read_bytes())
        theirs, halves = tensors_of(self.w.root / "f16" / WEIGHTS)
        for name, one in ours.items():
            data[one["begin"] : one["end"]] = halves[theirs[name]["begin"] : theirs[name]["end"]]
        (model / WEIGHTS).write_bytes(data)
        self.replanted("f16 where bf16 is claimed")

    def foreign_model(self):
        """An honest record with the model of another run, as it is, and under this run's provenance."""
        self.copy("other")
        self.named("another run", alone="incomplete")
        model = self.copy("other")
        shutil.copy(self.w.root / "f32" / "provenance.json", model)
        self.named(WEIGHTS, "another model")
        self.replanted(WEIGHTS, "another model")

    def foreign_chain(self):
        """An honest model with another run's chain above the checkpoints that it was made of."""
        run = self.w.root / "runs" / "joined"
        shutil.copytree(self.w.root / "runs" / "good", run)
        for name in ("chain.jsonl", "config.yaml"):
            shutil.copy(self.w.root / "runs" / "other" / name, run)
        self.w.verdict("differs", "runs/joined", "--model", "f32", says=["another run"])
        # With a provenance that names the foreign chain, too.
        model = self.copy("f32")
        made = json.loads((model / "provenance.json").read_text())
        made["sources"] = json.loads((self.w.root / "other" / "provenance.json").read_text())["sources"]
        self.rewrite(model / "provenance.json", made)
        self.named(LAST, "chain", run="joined", alone="incomplete")

    def provenance_of_another_export(self):
        """Copied from an export of another type or step of the same run: the model is the run's, the file is not its own."""
        for name, words in (("bf16", ()), ("early", ("--checkpoint", "runs/good/checkpoints/step-00000005"))):
            if words:
                self.w.good("export", *words, "--to", "hf", "--out", name)
            model = self.copy("f32")
            shutil.copy(self.w.root / name / "provenance.json", model)
            self.named(WEIGHTS)
            self.replanted(WEIGHTS)
        for change, says in (({"head": "0" * 64}, "entry 0000"), ({"state": "0" * 64}, "state 0000"),
                             ({"step": 5}, "entry"), ({"origin": {"state": "0" * 64}}, "sources[0].origin"),
                             ({"role": "base"}, "sources[0].role")):
            model = self.copy("f32")
            made = json.loads((model / "provenance.json").read_text())
            made["sources"][0] |= change
            self.rewrite(model / "provenance.json", made)
            self.named(says, alone="incomplete")

    def texts(self):
        """Files that are functions of the record, too: each change is named by its key."""
        model = self.copy("f32")
        config = model / "config.json"
        config.write_text(config.read_text().replace('"silu"', '"gelu"'))
        self.replanted("config.json", "hidden_act", "gelu", "silu")
        model = self.copy("f32")
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        merges = tokenizer["model"]["merges"]
        merges[7], merges[8] = merges[8], merges[7]
        (model / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
        self.replanted("tokenizer.json", "merges[7]")
        for name in ("generation_config.json", "tokenizer_config.json"):
            model = self.copy("f32")
            (model / name).write_text(json.dumps(json.loads((model / name).read_text()) | {"top_k": 3}))
            self.replanted(name, "top_k")

    def files_beside(self):
        """What programs would load beside the export, what is missing, and what is cut."""
        for name in ("adapter_model.safetensors", "pytorch_model.bin", "modeling.py", "chat_template.jinja",
                     "additional_chat_templates/tool.jinja"):
            model = self.copy("f32")
            (model / name).parent.mkdir(exist_ok=True)
            (model / name).write_bytes(b"{}")
            self.named(name, "not of the export")
        model = self.copy("f32")
        (model / WEIGHTS).unlink()
        self.named(WEIGHTS, "missing", word="incomplete", alone="incomplete")
        model = self.copy("f32")
        (model / WEIGHTS).write_bytes((model / WEIGHTS).read_bytes()[:-4])
        self.named(WEIGHTS)
        self.replanted(WEIGHTS)
        (model / "provenance.json").unlink()
        self.w.verdict("cannot check", "fraud", says=["provenance.json"])

    def adapter_twice(self):
        """The merge was merged once more, or not at all."""
        base, plain = tensors_of(self.w.root / "f32" / WEIGHTS)
        for times, words in ((2, "2 times"), (0, "not added"), (-1, "taken away instead of added")):
            model = self.copy("merged")
            tensors, data = tensors_of(model / WEIGHTS)
            for name, one in tensors.items():
                count = (one["end"] - one["begin"]) // 4
                # The run with the adapter holds its base in bf16.
                begin = [struct.unpack("<f", struct.pack("<I", bf16_of(x) << 16))[0]
                         for x in struct.unpack_from(f"<{count}f", plain, base[name]["begin"])]
                once = struct.unpack_from(f"<{count}f", data, one["begin"])
                changed = [b + times * (m - b) for b, m in zip(begin, once)]
                struct.pack_into(f"<{count}f", data, one["begin"], *changed)
            (model / WEIGHTS).write_bytes(data)
            self.replanted(WEIGHTS, words, run="lora")

    def quantised_of_another(self):
        model = self.copy("int8-1")
        self.named("another run", run="grok0", alone="incomplete")
        shutil.copy(self.w.root / "int8-0" / "provenance.json", model)
        self.named("another model", run="grok0")
        self.replanted("another model", run="grok0")
        # One file of many.
        model = self.copy("int8-0")
        files = sorted(f.relative_to(model) for f in model.rglob("tensor*"))
        one = next(f for f in files if (model / f).read_bytes() != (self.w.root / "int8-1" / f).read_bytes())
        shutil.copy(self.w.root / "int8-1" / one, model / one)
        self.replanted(str(one), run="grok0")

    def without_the_checkpoint(self):
        """A record of a chain and manifests: weights in f32 give the state's name, others do not."""
        run = self.w.root / "runs" / "light"
        shutil.copytree(self.w.root / "runs" / "good", run)
        for entry in (run / "checkpoints" / LAST).iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
        text = self.w.verdict("equal", "runs/light", "--model", "f32")
        check("hashes in its manifest give the state's name" in text, text)
        self.w.verdict("incomplete", "runs/light", "--model", "bf16", says=["needed"])
        model = self.copy("f32")
        tensors, data = tensors_of(model / WEIGHTS)
        data[tensors["model.norm.weight"]["begin"]] ^= 1
        (model / WEIGHTS).write_bytes(data)
        self.relist(model)
        self.named("model/norm", run="light", alone="incomplete")
        # The forger makes the manifest fit: the chain has another name.
        manifest = forger.read_manifest(run / "checkpoints" / LAST)
        manifest["tensors"][0]["sha256"] = "0" * 64
        forger.write_manifest(run / "checkpoints" / LAST, manifest)
        self.w.verdict("differs", "runs/light", "--model", "f32", says=[LAST])
        shutil.rmtree(run / "checkpoints" / LAST)
        self.w.verdict("incomplete", "runs/light", "--model", "f32", says=["no checkpoint of step 10"])

    def imports(self):
        """An import is a record without a chain; it keeps the state that its weights were made of."""
        w = self.w
        w.good("import", "--from", "hf", "bf16", "--out", "import")
        origin = json.loads((w.root / "import" / "origin.json").read_text())
        check(origin["from"]["state"] == forger.read_manifest(self.checkpoints / LAST)["name"], origin)
        check(origin["files"]["provenance.json"] == sha(w.root / "bf16" / "provenance.json"), origin)
        w.good("export", "--checkpoint", "import", "--to", "hf", "--out", "again")
        w.verdict("equal", "import", "--model", "again")
        w.verdict("differs", "runs/good", "--model", "again", says=["of no run"])
        w.verdict("differs", "import", "--model", "bf16", says=["is an import"])
        w.good("import", "--from", "grok", "int8-0", "--out", "import8", "--dtype", "int8")
        origin = json.loads((w.root / "import8" / "origin.json").read_text())
        check(origin["format"] == "grok" and origin["from"]["step"] == EVERY, origin)
        w.good("export", "--checkpoint", "import8", "--to", "grok", "--out", "again8")
        w.verdict("equal", "import8", "--model", "again8")
        check(json.loads((w.root / "again8" / "provenance.json").read_text())["made"] == "convert", "made of int8 weights")
        # The import is the run's state in bf16; the int8 model of another run is no cast of this one's.
        out = w.good("diff", "runs/good", "import")
        check("equal under the cast: the second has the values of the first, rounded to bf16" in out, out)
        w.good("import", "--from", "grok", "int8-1", "--out", "import9", "--dtype", "int8")
        status, out, _ = w.run("diff", "import8", "import9", "--only", "**/moe/down", "--json")
        check(status == 1 and all(t["changed"] > 0 for t in json.loads(out)["tensors"]), out)
        config = self.copy("bf16") / "config.json"
        config.write_text(config.read_text().replace('"silu"', '"relu"'))
        w.bad("import", "--from", "hf", "fraud", "--out", "not", says=["provenance.json", "config.json"])


if __name__ == "__main__":
    sys.exit(run_cases(Cases, helpers=("export", "copy", "relist", "rewrite", "named", "replanted", "readme_may_change")))
