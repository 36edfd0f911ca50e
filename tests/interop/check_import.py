#!/usr/bin/env python3
"""Imports what transformers writes, and compares in f32; exports it, and imports what transformers makes of that.

For a random model of a family: log-probabilities of text within 2e-4, gradients of a batch within 2e-5 of each one's
largest element, greedy text equal wherever the margin is clear, and after export, transformers and another import the
same state, hash by hash. Planted errors (planted.py), one for each field of the description that the model uses, must
differ by at least 10 times the tolerance, sizes be refused; a field that is in none of the tables of errors, and in a
full run one for which no model had an error, fail. A run that begins with the directory has the chain of one that
begins with its import; its genesis names the files. The first shape has rows without tokens. 27 families in two
shapes, of which a sampled run takes two.
Of a mixture: experts are chosen as transformers chooses them wherever its margin exceeds 1e-5. Log-probabilities show a
choice: with the runner-up in place of the last expert chosen in any one layer they differ by more than the tolerance.
A Llama, a Mistral and a Qwen 3 made into mixtures (--upcycle) have the log-probabilities that they had.
Usage: check_import.py --ostro build/.../ostro [--only FAMILY...]
"""
import argparse
import contextlib
import copy
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from unittest import mock

import hf_models
import numpy as np
import planted
import torch
import yaml
from transformers import AutoTokenizer
from planted import LENGTH
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors, save_file
from tiny_run import Report, TinyRun, seed

ROWS_WITHOUT_TOKENS = 28
LIMIT, GRADIENT_LIMIT = 2e-4, 2e-5
MARGIN = 1e-5  # between an expert's score and that of the first one not chosen: choices are clear above it
PROMPTS = ["def ", "    return ", "for "]
# Digits, capitals, spaces and letters beyond ASCII, which pre-tokenizers cut in different ways.
MIXED = "x = 1234567 don'T  caf\u00e9 e\u0301\n\n\tHTTPServer \u6771\u4eac 12 \r\n (a_b)"


# What the families are, said once more: values of model.type decoder that differ from Llama's.
LAYER_NORM = {"norm": "layer", "norm_bias": True, "mlp_bias": True, "qkv_bias": True, "out_bias": True, "gated_mlp": False}
GEMMA = {"norm_place": "sandwich", "norm_scale": "one_plus_weight", "scale_embedding": True}
OLMO = {"norm_place": "post", "qk_norm": "whole"}
ALWAYS = {"mistral": {"layer_pattern": ["sliding"]}, "phi3": {"layer_pattern": ["sliding"]},
          "starcoder2": LAYER_NORM | {"layer_pattern": ["sliding"]}, "gpt2": LAYER_NORM | {"positions": "learned"},
          "gpt_neox": LAYER_NORM, "qwen2": {"qkv_bias": True}, "qwen3": {"qk_norm": "head"}, "gemma2": GEMMA,
          "gemma3_text": GEMMA | {"qk_norm": "head"}, "olmo2": OLMO, "olmo3": OLMO,
          "gemma": GEMMA | {"norm_place": "pre"}, "glm": {"rope_interleaved": True}, "ernie4_5": {"rope_interleaved": True},
          "stablelm": {"norm": "layer", "norm_bias": True},
          "helium": {"rope_interleaved": True}, "glm4": {"rope_interleaved": True, "norm_place": "sandwich"},
          "mixtral": {"layer_pattern": ["sliding"], "norm_topk_prob": True},
          "qwen3_moe": {"layer_pattern": ["sliding"], "qk_norm": "head"}, "olmoe": {"qk_norm": "whole"},
          "qwen2_moe": {"shared_expert_gate": True}, "deepseek_v2": {"rope_interleaved": True},
          "deepseek_v3": {"router_scores": "sigmoid", "router_bias": True, "group_score": "best_two"}}
DEFAULTS = {"positions": "rope", "rope_interleaved": False, "partial_rotary_factor": 1.0, "rope_pattern": ["rope"],
            "norm": "rms", "norm_place": "pre", "norm_scale": "weight", "parallel": False, "sliding_window": None,
            "layer_pattern": ["full"], "rope_local_theta": None, "attn_logit_softcapping": None,
            "final_logit_softcapping": None, "attention_multiplier": None, "query_pre_attn_scalar": None,
            "scale_embedding": False, "embedding_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0,
            "num_experts": 0, "norm_topk_prob": False, "router_scores": "softmax", "routed_scaling_factor": 1.0, "n_group": 1,
            "topk_group": 1, "group_score": "best"}


@contextlib.contextmanager
def hooked(modules, hook):
    handles = [m.register_forward_hook(hook) for m in modules]
    try:
        yield
    finally:
        for h in handles:
            h.remove()


def ranking(router, logits):
    """What a router weighs experts by, what it chooses them by, and by how much the groups it chooses from are better."""
    bias = getattr(router, "e_score_correction_bias", None)
    scores = logits.float().softmax(-1) if bias is None else logits.float().sigmoid()
    chosen_by = scores if bias is None else scores + bias
    groups = router.num_group if bias is not None or getattr(router, "topk_method", "") == "group_limited_greedy" else 1
    if groups == 1:
        return scores, chosen_by, torch.full(logits.shape[:1], torch.inf)
    members = chosen_by.unflatten(-1, (groups, -1))
    of_groups = members.max(-1).values if bias is None else members.topk(2).values.sum(-1)
    best = of_groups.topk(router.topk_group + 1).values
    limited = members.masked_fill((of_groups < best[:, -2:-1])[..., None], -torch.inf).flatten(-2)
    return scores, limited, best[:, -2] - best[:, -1]


def runner_up(router, _, output):
    """The output of a router that takes the first expert not chosen in place of the last one chosen."""
    logits, weights_before, _ = output
    scores, chosen_by, _ = ranking(router, logits)
    best = chosen_by.topk(router.top_k + 1).indices
    other = torch.cat([best[:, :-2], best[:, -1:]], -1)
    weights = scores.gather(-1, other)
    return logits, weights / weights.sum(-1, keepdim=True) * weights_before.sum(-1, keepdim=True), other


def numbers(value):
    """PyYAML takes 1e-06, which has no point, for text."""
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return float(value) if isinstance(value, str) and re.fullmatch(r"[\d.]+e[-+]?\d+", value) else value


class Case:
    def __init__(self, report, ostro, scratch, family, shape, done):
        self.done = done  # fields of which an error was planted
        self.report, self.family, self.shape, self.name = report, family, shape, f"{family}_{shape}"
        self.run = TinyRun(ostro, scratch, self.name, {}, vocab_size=320, files=20)
        self.top = pathlib.Path(scratch)
        tokenizer = json.loads(self.run.tokenizer.read_text())
        vocab = 1 + max([*tokenizer["model"]["vocab"].values(), *(t["id"] for t in tokenizer["added_tokens"])])
        eos = next(t["id"] for t in tokenizer["added_tokens"])
        self.tokens = vocab
        rows = vocab + (ROWS_WITHOUT_TOKENS if shape == 0 else 0)
        model = hf_models.random_model(family, shape, rows, eos, seed=shape + 7)
        self.model, loose = hf_models.write_directory(model, self.top / self.name, shape, self.run.tokenizer)
        report.check(not loose, f"{self.name}: transformers reads what it wrote {loose}")
        self.checkpoint = self.import_from(self.top / self.name, "a")

    def import_from(self, directory, name):
        out = self.top / f"{self.name}.{name}"
        self.run.run("import", "--from", "hf", directory, "--out", out)
        return out

    def options(self, checkpoint):
        """The model's options as the training configuration beside the checkpoint has them; and all of them, as those
        of model.type decoder."""
        shown = numbers(yaml.safe_load((checkpoint / "train.yaml").read_text())["model"])
        whole = DEFAULTS | ALWAYS.get({"gemma3": "gemma3_text"}.get(shown["type"], shown["type"]), {}) | shown
        whole |= {"type": "decoder"}
        latent = "kv_lora_rank" in whole
        whole.setdefault("head_dim", whole["qk_nope_head_dim"] + whole["qk_rope_head_dim"] if latent
                         else whole["hidden_dim"] // whole["num_heads"])
        return shown, whole | ({} if "num_kv_heads" in whole else {"num_kv_heads": whole["num_heads"]})

    def write_config(self, model, name):
        config = self.run.config | {"model": model | {"seq_len": LENGTH}}
        config["trainer"] = config["trainer"] | {"train_batch_size": 4, "max_eval_batches": 1, "id": self.name}
        path = self.top / f"{self.name}.{name}.yaml"
        path.write_text(json.dumps(config))
        return path

    def log_probs(self, config, checkpoint=None):
        out = self.top / f"{self.name}.log_probs"
        self.run.run("eval", "--config", config, "--checkpoint", checkpoint or self.checkpoint, "--per_token", out, "--json")
        return load_file(out)

    def routers(self):
        return [m for m in self.model.modules() if type(m).__name__.lower().endswith("topkrouter")]

    def log_probs_of_model(self, tokens, targets):
        with torch.no_grad():
            return self.model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0].numpy()

    def check_log_probs(self, config):
        self.ours = ours = self.log_probs(config)
        tokens, targets = (torch.from_numpy(ours[k].astype(np.int64)) for k in ("tokens", "targets"))
        margins = []

        def note_margin(router, _, output):
            _, chosen_by, of_groups = ranking(router, output[0])
            best = chosen_by.topk(router.top_k + 1).values
            margins.append(torch.minimum(best[:, -2] - best[:, -1], of_groups).reshape(tokens.shape).numpy())

        with hooked(self.routers(), note_margin):
            theirs = self.log_probs_of_model(tokens, targets)
        counted = ours["mask"] == 1
        if margins:
            # Later positions attend to those where the choice is not clear.
            clear = np.minimum.accumulate(np.min(margins, 0), 1) > MARGIN
            self.report.check(clear.mean() > 0.5, f"{self.name}: {clear.mean():.1%} of tokens behind clear choices only, "
                              f"smallest margin {np.min(margins):.1e}")
            counted &= clear
            self.check_other_choices(ours, tokens, targets, counted)
            self.check_swapped(config, theirs, counted)
        worst = np.abs(theirs - ours["log_prob"])[counted].max()
        self.report.check(worst <= LIMIT and counted.sum() >= (100 if margins else 150),
                          f"{self.name}: {counted.sum()} log-probabilities, largest difference {worst:.1e} (limit {LIMIT})")
        return theirs, counted

    def check_other_choices(self, ours, tokens, targets, counted):
        for layer, router in enumerate(self.routers()):
            with hooked([router], runner_up):
                other = self.log_probs_of_model(tokens, targets)
            moved = np.abs(other - ours["log_prob"])[counted]
            self.report.check((moved > LIMIT).mean() >= 0.98 and moved.max() >= 10 * LIMIT,
                              f"{self.name}: planted: the runner-up chosen in layer {layer}: {(moved > LIMIT).mean():.1%} of "
                              f"log-probabilities differ, by {moved.max():.1e}")

    def check_swapped(self, config, theirs, counted):
        """Two tensors in each other's place: experts 0 and 1 of the first layer that has experts; gate and up of what is
        beside experts, and of a layer without them; the bias by which experts are chosen with the other sign."""
        names = {name for path in (self.top / self.name).glob("*.safetensors") for name in load_tensors(path)}
        first = min(int(re.search(r"layers\.(\d+)\.", name)[1]) for name in names if ".experts.0." in name)
        swaps = {"two experts": (f".layers.{first}.", ".experts.0.", ".experts.1."),
                 "gate and up of the shared experts": (".shared_expert", ".gate_proj.", ".up_proj."),
                 "gate and up without experts": (".mlp.", ".mlp.gate_proj.", ".mlp.up_proj."),
                 "the bias's sign": ("e_score_correction_bias", None, None)}
        for what, (where, one, other) in swaps.items():
            if not any(where in name and (one is None or one in name) for name in names):
                continue
            worst = self.worst_of_swapped(config, theirs, counted, where, one, other)
            self.report.check(worst >= 10 * LIMIT, f"{self.name}: planted: {what} swapped: differs by {worst:.1e}")

    def worst_of_swapped(self, config, theirs, counted, where, one, other):
        wrong = self.top / f"{self.name}.swapped"
        shutil.copytree(self.top / self.name, wrong)

        def renamed(name):
            if one is None or where not in name:
                return name
            return name.replace(one, "*").replace(other, one).replace("*", other)

        for path in wrong.glob("*.safetensors"):
            tensors = load_tensors(path)
            sign = {name: -1 if one is None and where in name else 1 for name in tensors}
            save_file({renamed(name): tensor * sign[name] for name, tensor in tensors.items()}, path, {"format": "pt"})
        index = wrong / "model.safetensors.index.json"
        if index.exists():  # the same names, perhaps in other files
            text = json.loads(index.read_text())
            text["weight_map"] = {name: p.name for p in wrong.glob("*.safetensors") for name in load_tensors(p)}
            index.write_text(json.dumps(text))
        made = self.import_from(wrong, "swapped_in")
        ours = self.log_probs(config, made)
        shutil.rmtree(wrong)
        shutil.rmtree(made)
        return np.abs(theirs - ours["log_prob"])[counted].max()

    def their_gradients(self):
        """As the files name them: name -> gradient and the largest element of the parameter that it is a part of."""
        renamed = {"lm_head.weight": "embed_out.weight"} if self.family == "gpt_neox" else {}  # while loading
        mixtral = self.family == "mixtral"
        words = {"gate": "w1", "up": "w3", "down": "w2"} if mixtral else {w: f"{w}_proj" for w in ("gate", "up", "down")}
        out = {}
        for name, p in self.model.named_parameters():
            gradient, name = p.grad.numpy(), renamed.get(name, name)
            if mixtral:
                name = name.replace(".mlp.", ".block_sparse_moe.")
            largest = np.abs(gradient).max()
            if ".experts." not in name:
                out[name] = gradient, largest
                continue
            stem = name.rsplit(".", 1)[0]
            for e, of_expert in enumerate(gradient):
                parts = {"down": of_expert} if name.endswith("down_proj") else dict(zip(("gate", "up"), np.split(of_expert, 2)))
                out |= {f"{stem}.{e}.{words[w]}.weight": (part, largest) for w, part in parts.items()}
        return out

    def planted(self, fields, table, count):
        """`count` of the errors of a table, in a full run all."""
        return [(field, fields[field]) for field in seed.draw(f"planted {table} {self.name}", list(fields), count)]

    def shown(self, field, condition, text):
        """A planted error has to show; it is remembered that one was planted."""
        self.done.add(field)
        self.report.check(condition, f"{self.name}: planted {field}{text}")

    def check_planted(self, model, theirs, counted):
        def worst_with(options):
            ours = self.log_probs(self.write_config(options, "wrong"))
            return np.abs(theirs - ours["log_prob"])[counted].max()

        right = worst_with(model)
        self.report.check(right <= LIMIT, f"{self.name}: as model.type decoder: largest difference {right:.1e}")
        for field, other in self.planted(planted.in_config(model), "config", 2):
            worst = worst_with(model | other)
            if planted.hides(self.model.config, field, model, other):
                self.report.check(worst <= LIMIT, f"{self.name}: {field}: {other}: the same frequencies, differs by {worst:.1e}")
            else:
                self.shown(field, worst >= 10 * LIMIT, f": {other}: differs by {worst:.1e}")
        for field, plant in self.planted(planted.in_model(model, self.model), "model", 2):
            whole, self.model = self.model, copy.deepcopy(self.model)
            plant(self.model)
            tokens, targets = (torch.from_numpy(self.ours[k].astype(np.int64)) for k in ("tokens", "targets"))
            worst = np.abs(self.log_probs_of_model(tokens, targets) - self.ours["log_prob"])[counted].max()
            self.model = whole
            self.shown(field, worst >= 10 * LIMIT, f", in transformers: differs by {worst:.1e}")
        for field, size in self.planted(planted.sizes(model), "sizes", 1):
            config = self.write_config(model | {field: size}, "size")
            done = subprocess.run([str(self.run.ostro), "eval", "--config", config, "--checkpoint", self.checkpoint],
                                  text=True, capture_output=True, check=False, cwd=self.run.directory)
            self.shown(field, done.returncode in (1, 2) and done.stderr.count("error: ") == 1,
                       f" {size}: {done.stderr.strip()[-160:]}")

    def gradients(self, config, *words):
        out = self.top / f"{self.name}.gradients"
        self.run.run("grad", "--config", config, "--step", 0, "--out", out, *(words or ("--checkpoint", self.checkpoint)))
        return load_file(out)

    def check_gradients(self, config, shown):
        of_import = self.gradients(config)
        ours = dict(of_import)
        rows = json.loads(self.run.run("data", "batch", "--config", config, "--step", 0, "--json"))["sequences"]
        tokens, targets = (torch.tensor([r[k] for r in rows]) for k in ("tokens", "targets"))
        mask = torch.tensor([r["loss_mask"] for r in rows], dtype=torch.float32)
        nll = -self.model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        self.model.zero_grad()
        ((nll * mask).sum() / mask.sum()).backward()
        theirs = self.their_gradients()
        bias = [k for k in ours if k.endswith("e_score_correction_bias")]  # a buffer, to which no derivative reaches
        self.report.check(all(not ours.pop(k).any() for k in bias), f"{self.name}: gradients of {len(bias)} biases of routers")
        self.report.check(ours.keys() == theirs.keys(), f"{self.name}: names of {len(ours)} gradients")
        # In a layer without rotation a key's bias moves all scores of a query alike: its derivative is 0, and what is computed
        # is rounding, of the size of the matrix's.
        unturned = {f"model.layers.{i}.self_attn.k_proj.bias" for i, turns in enumerate(getattr(self.model.config, "no_rope_layers", None) or ())
                    if not turns}
        largest = {k: theirs[k.replace(".bias", ".weight") if k in unturned else k][1] for k in theirs}
        worst_of = lambda mine: max((np.abs(mine[k] - theirs[k][0]).max() / largest[k], k) for k in theirs if k in mine)
        worst = worst_of(ours)
        self.report.check(worst[0] <= GRADIENT_LIMIT,
                          f"{self.name}: gradients differ by {worst[0]:.1e} of the largest element, {worst[1]}")
        for field, value in self.planted(planted.in_gradients(shown), "gradients", 1):
            worst = worst_of(self.gradients(self.write_config(shown | {field: value}, "wrong")))
            self.shown(field, worst[0] >= 10 * GRADIENT_LIMIT, f" {value}: gradients differ by {worst[0]:.1e}")
        # Without an import, from the directory: the same, and nothing is left behind.
        place = self.top / "borrowed"
        place.mkdir(exist_ok=True)
        with mock.patch.dict(os.environ, {"TMPDIR": str(place)}):
            begun = ("--checkpoint", "init", "--trainer.initialize_from", self.top / self.name)
            again = self.gradients(config, *begun)
            held = self.run.run("eval", "--config", config, "--json", *begun), self.run.run(
                "eval", "--config", config, "--json", "--checkpoint", self.checkpoint)
        losses = [json.loads(text)["loss"] for text in held]
        same = of_import.keys() == again.keys() and all(np.array_equal(of_import[k], again[k]) for k in again)
        self.report.check(same and losses[0] == losses[1] and not list(place.glob("ostro-import-*")),
                          f"{self.name}: gradients and held-out loss {losses[0]:.4f} from the directory are the import's")

    def check_greedy(self):
        clear = equal = passed_over = 0
        for prompt in PROMPTS:
            out = json.loads(self.run.run("sample", "--checkpoint", self.checkpoint, "--prompt", prompt,
                                          "--max_new_tokens", 24, "--json"))
            ids, first = out["prompt_ids"] + out["ids"], len(out["prompt_ids"])
            with torch.no_grad():
                logits = self.model(torch.tensor([ids])).logits[0, first - 1:-1]
            passed_over += int((logits.argmax(-1) >= self.tokens).sum())  # a row without a token was the largest
            top = logits[:, :self.tokens].topk(2)
            margins = (top.values[:, 0] - top.values[:, 1] > 1e-3).tolist()
            clear += sum(margins)
            equal += sum(c and int(t) == i for c, t, i in zip(margins, top.indices[:, 0], out["ids"]))
        self.report.check(clear == equal and clear >= 20, f"{self.name}: greedy text: {equal} of {clear} clear steps equal, "
                          f"{passed_over} where a row without a token is passed over")

    def check_round_trip(self):
        out, again = self.top / f"{self.name}.out", self.top / f"{self.name}.again"
        dtype = ["f32", "bf16"][self.shape]
        self.run.run("export", "--checkpoint", self.checkpoint, "--to", "hf", "--out", out, "--dtype", dtype)
        model, loose = hf_models.load(out)
        self.report.check(not loose, f"{self.name}: transformers reads the export {loose}")
        ours = json.loads(self.run.run("tokenizer", "encode", "--tokenizer", self.run.tokenizer, "--json", stdin=MIXED.encode()))
        tokenizer = AutoTokenizer.from_pretrained(out)
        theirs = tokenizer(MIXED, add_special_tokens=False)["input_ids"]
        self.report.check(ours == theirs, f"{self.name}: AutoTokenizer makes a {type(tokenizer).__name__} of the export, which "
                          f"gives the same {len(ours)} ids")
        model.to([torch.float32, torch.bfloat16][self.shape]).save_pretrained(again)
        for name in ("tokenizer.json", "tokenizer_config.json", "tokenization_plain.py"):
            if (out / name).exists():
                (again / name).write_bytes((out / name).read_bytes())
        second = self.import_from(again, "b")
        states = [json.loads((c / "checkpoints/step-00000000/manifest.json").read_text())["name"]
                  for c in (self.checkpoint, second)]
        self.report.check(states[0] == states[1], f"{self.name}: export, transformers, import: state {states[1][:12]}")
        third = self.top / f"{self.name}.third"
        self.run.run("export", "--checkpoint", second, "--to", "hf", "--out", third, "--dtype", dtype)
        # provenance.json names where the weights come from, a run or an import, so that it may differ; what it says of them may not.
        names = {n.name for n in out.iterdir()} - {"provenance.json"}
        others = sorted(n for n in names if (out / n).read_bytes() != (third / n).read_bytes())
        loose = {n.name for n in third.iterdir()} ^ names ^ {"provenance.json"}
        self.report.check(not others and not loose, f"{self.name}: the export of the import of an export is the same, byte for "
                          f"byte: {others}, {sorted(loose)}")

    def check_short_texts(self, original):
        """Texts up to the original length of a longrope, whose import has a longer context and computes in bf16."""
        context, continuation = "def move(self, x):", "\n    return x.size(3)"
        encode = lambda text: json.loads(self.run.run("tokenizer", "encode", "--tokenizer", self.run.tokenizer, "--json",
                                                      stdin=text.encode()))
        ids, first = encode(context + continuation), len(encode(context))
        with torch.no_grad():
            log_probs = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        theirs = sum(float(log_probs[i - 1, ids[i]]) for i in range(first, len(ids)))
        asked = json.dumps({"context": context, "continuation": continuation}).encode() + b"\n"
        ours = [json.loads(self.run.run("score", "--checkpoint", self.checkpoint, "--mp", "f32", *words, stdin=asked))["log_prob"]
                for words in (("--seq_len", original), ())]
        self.report.check(len(ids) <= original and abs(ours[0] - theirs) <= 1e-3 and abs(ours[1] - theirs) >= 1e-2,
                          f"{self.name}: with --seq_len {original} and --mp f32 {len(ids)} tokens differ by "
                          f"{abs(ours[0] - theirs):.1e}, without --seq_len by {abs(ours[1] - theirs):.1e}")

    def check_upcycled(self, theirs, counted):
        out, exported = self.top / f"{self.name}.upcycled", self.top / f"{self.name}.upcycled_out"
        self.run.run("import", "--upcycle", 4, "--checkpoint", self.checkpoint, "--out", out)
        shown, whole = self.options(out)

        def worst_with(options):
            ours = self.log_probs(self.write_config(options, "upcycled"), out)
            return np.abs(theirs - ours["log_prob"])[counted].max()

        worst, planted = worst_with(shown), worst_with(whole | {"norm_topk_prob": False})
        self.report.check(worst <= LIMIT and planted >= 10 * LIMIT,
                          f"{self.name}: as a {shown['type']} of 4 equal experts: largest difference {worst:.1e}; planted: weights "
                          f"that do not add up to 1: {planted:.1e}")
        if shown["type"] == "decoder":
            return
        self.run.run("export", "--checkpoint", out, "--to", "hf", "--out", exported)
        model, loose = hf_models.load(exported)
        ours = self.log_probs(self.write_config(shown, "upcycled"), out)
        with torch.no_grad():
            again = model(torch.from_numpy(ours["tokens"].astype(np.int64))).logits.log_softmax(-1)
        again = again.gather(-1, torch.from_numpy(ours["targets"].astype(np.int64))[..., None])[..., 0].numpy()
        worst = np.abs(again - ours["log_prob"])[counted].max()
        self.report.check(not loose and worst <= LIMIT,
                          f"{self.name}: transformers reads it as a {shown['type']}: differs by {worst:.1e} {loose}")

    def check_refused(self):
        """A directory whose last file of weights lacks its end: an error that names it, and nothing is left."""
        source, out = self.top / self.name, self.top / f"{self.name}.refused"
        damaged = self.top / f"{self.name}.damaged"
        shutil.copytree(source, damaged)
        last = sorted(damaged.glob("*.safetensors"))[-1]
        last.write_bytes(last.read_bytes()[:-1])
        done = subprocess.run([str(self.run.ostro), "import", "--from", "hf", damaged, "--out", out], text=True,
                              capture_output=True, check=False)
        left = [p.name for p in self.top.iterdir() if p.name.startswith(out.name)]
        self.report.check(done.returncode != 0 and last.name in done.stderr and "cut short" in done.stderr and not left,
                          f"{self.name}: cut by a byte: {done.stderr.strip()[:160]}; left {left}")

    def check_start_of_a_chain(self, config):
        """Runs that begin with the import and with the directory itself have one chain, whose genesis names the files;
        verify tells when one of them is another file."""
        source = self.top / self.name
        copy = self.top / f"{self.name}.copy"
        shutil.copytree(source, copy)
        chains = []
        for name, begin in (("a", self.checkpoint), ("b", copy)):
            self.run.run("train", "--config", config, "--trainer.num_train_steps", 1, "--optimizer.warmup", 0,
                         "--trainer.id", f"{self.name}.{name}", "--initialize_from", begin)
            chains.append((self.run.directory / "runs" / f"{self.name}.{name}" / "chain.jsonl").read_bytes())
        self.report.check(chains[0] == chains[1], f"{self.name}: a run from the directory has the chain of one from its import")
        origin = json.loads(chains[1].splitlines()[0])["origin"]
        names = {p.name for p in source.iterdir() if p.suffix == ".safetensors" or p.name == "config.json"}
        right = all(hashlib.sha256((source / n).read_bytes()).hexdigest() == h for n, h in origin["files"].items())
        self.report.check(right and names <= origin["files"].keys(),
                          f"{self.name}: the genesis names {len(origin['files'])} files of the model")
        run = self.run.directory / "runs" / f"{self.name}.b"
        self.run.run("verify", run)
        (copy / "config.json").write_text((copy / "config.json").read_text() + " ")
        done = subprocess.run([str(self.run.ostro), "verify", str(run)], text=True, capture_output=True, check=False,
                              cwd=self.run.directory)
        self.report.check(done.returncode == 1 and "config.json" in done.stdout and "SHA-256" in done.stdout,
                          f"{self.name}: with another config.json: {done.stdout.strip()[:200]}")

    def check_all(self):
        shown, whole = self.options(self.checkpoint)
        config = self.write_config(shown, "right")
        theirs, counted = self.check_log_probs(config)
        self.check_gradients(config, shown)
        if self.shape == 0:  # the other one computes in bf16
            self.check_greedy()
        rope = getattr(self.model.config, "rope_parameters", None) or {}
        if rope.get("rope_type") == "longrope" and rope["original_max_position_embeddings"] < LENGTH:
            self.check_short_texts(rope["original_max_position_embeddings"])
        self.check_round_trip()
        self.check_refused()
        self.check_start_of_a_chain(config)
        self.check_planted(whole, theirs, counted)
        if self.family in ("llama", "mistral", "qwen3"):
            self.check_upcycled(theirs, counted)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--only", nargs="*", help="these families, both shapes")
    args = parser.parse_args()
    report = Report()
    torch.set_num_threads(2)
    cases = [(family, shape) for family in hf_models.FAMILIES for shape in (0, 1)]
    if args.only:
        cases = [c for c in cases if c[0] in args.only]
    else:
        cases = seed.draw("imports", cases, 2)
    fields, done = planted.declared(), set()
    report.check(planted.unplanted(fields) == ([], []), f"{len(fields)} options that change bits, each in a table of errors: "
                 f"{planted.unplanted(fields)}")
    report.check(planted.unplanted(fields | {"new"}) == (["new"], []) and planted.unplanted(fields - {"norm"}) == ([], ["norm"]),
                 "control: an option without an error is found, and an error without an option")
    with tempfile.TemporaryDirectory() as scratch:
        for family, shape in cases:
            case = Case(report, args.ostro, scratch, family, shape, done)
            case.check_all()
    if len(cases) == 2 * len(hf_models.FAMILIES) and seed.full():
        missed = fields - done - planted.NOT_IN_LOGITS.keys()
        report.check(not missed, f"errors were planted in {len(done)} of these options; never in {sorted(missed)}")
    report.finish()


if __name__ == "__main__":
    main()
