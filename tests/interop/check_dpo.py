#!/usr/bin/env python3
"""Compares DPO with PyTorch on the CPU in f32, from the same model and batches; in full with TRL's own trainer.

Losses of 20 steps of AdamW within 1e-4 of those that DPO's formulas give on the model of `ostro export --to hf`, and
the margins that Ostro reports within 1e-4 of theirs. Five losses, of which a sampled run takes one. In full
(OSTRO_TEST_SIZE=full) the losses are those of TRL's DPOTrainer; its tokens and completions are those of the store, for
texts and conversations, and the tokens that count in supervised tuning are those of SFTTrainer's assistant mask, for four
templates.
Usage: check_dpo.py --ostro build/.../ostro
"""
import argparse
import json
import os
import random
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from tiny_run import Report, TinyRun, made_text, seed
from torch_steps import adamw_steps

LOSSES = {
    "sigmoid": {"beta": 0.3},
    "sigmoid_norm": {"beta": 5.0},
    "ipo": {"beta": 0.5},
    "hinge": {"beta": 0.2},
    "robust": {"beta": 0.3, "label_smoothing": 0.1},
}
STEPS = 20
LENGTH = 48
# A rate at which rounding errors do not grow in 20 steps.
OPTIMIZER = {"learning_rate": 0.0005, "warmup": 0, "lr_schedule": "constant", "weight_decay": 0}
TEMPLATE = ("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + ';' }}"
            "{% endgeneration %}{% else %}{{ m.content + ' >\\n' }}{% endif %}{% endfor %}")

# What else the templates of models look like: which tokens count, and where the text around them ends, differs.
MARK, END = "{% generation %}", "{% endgeneration %}"
TEMPLATES = {
    "line": TEMPLATE,
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}" + MARK +
              "{{ m.content }}{{ '<|im_end|>' }}" + END + "{{ '\\n' }}{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}"
              "{% endfor %}",
    # The header counts as well, spaces are cut, and a system message has a place of its own.
    "inst": "{%- if messages[0].role == 'system' -%}{{ '<<' + messages[0].content + '>>' }}{%- set rest = messages[1:] -%}"
            "{%- else -%}{%- set rest = messages -%}{%- endif -%}{%- for m in rest -%}{%- if m.role == 'assistant' -%}" + MARK +
            "{{- ' ' + m.content | trim + ' </s>' -}}" + END + "{%- else -%}{{- '[INST] ' + m.content | trim + ' [/INST]' -}}"
            "{%- endif -%}{%- endfor -%}",
    # Only the last answer counts.
    "last": "{% for m in messages %}{% if m.role == 'assistant' and loop.last %}{{ 'A: ' }}" + MARK + "{{ m.content }}" + END +
            "{{ '.' }}{% else %}{{ m.role[0] + ': ' + m.content + '\\n' }}{% endif %}{% endfor %}",
}


def text_rows():
    """Prompts with a line that follows and one from elsewhere; every third without a prompt of its own."""
    rng, rows = random.Random(5), []
    for i in range(90):
        lines = [line.strip() for line in made_text(random.Random(1000 + i)).splitlines() if len(line.strip()) > 12]
        # Where a prompt is the common beginning, it is to end where words do.
        others = [line for line in lines[3:] if line[0] != lines[1][0]]
        prompt, chosen, rejected = lines[0], " " + lines[1], " " + rng.choice(others)[: rng.randrange(8, 40)]
        if i % 3 == 0:
            rows.append({"chosen": prompt + chosen, "rejected": prompt + rejected})
        else:
            rows.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return rows


def chat_rows():
    rows = []
    for i, row in enumerate(text_rows()):
        prompt = [{"role": "user", "content": row.get("prompt", f"line {i}")}]
        if i % 2:
            prompt += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
        chosen, rejected = ([{"role": "assistant", "content": row[k].strip()}] for k in ("chosen", "rejected"))
        rows.append({"prompt": prompt, "chosen": chosen, "rejected": rejected} if i % 3 else
                    {"chosen": prompt + chosen, "rejected": prompt + rejected})
    return rows


def component(name, directory, rows, form):
    path = directory / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"train_urls": [], "validation_urls": [], "cache_dir": str(directory / f"{name}_cache"),
            "components": {name: {"train_urls": [str(path)], "validation_fraction": 0, "format": form}},
            "train_weights": {name: 1}}


def arrays(batch):
    """[pair, side, pos] of a step's pairs."""
    rows = batch["sequences"]
    return {k: torch.tensor([r[k] for r in rows]).view(len(rows), 2, LENGTH) for k in ("tokens", "targets", "loss_mask")}


def log_probs(model, batch):
    """[pair, side]: of the answers."""
    tokens, targets = (batch[k].flatten(0, 1) for k in ("tokens", "targets"))
    each = model(tokens).logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    return (each.double().view(batch["tokens"].shape) * batch["loss_mask"]).sum(-1)


def formula(kind, gain, lengths, beta, label_smoothing=0.0):
    """The losses of pairs as the papers have them."""
    if kind in ("sigmoid_norm", "ipo"):
        gain = gain / lengths
    delta = gain[:, 0] - gain[:, 1]
    if kind == "ipo":
        return (delta - 1 / (2 * beta)) ** 2
    if kind == "hinge":
        return torch.relu(1 - beta * delta)
    right, wrong = -F.logsigmoid(beta * delta), -F.logsigmoid(-beta * delta)
    if kind == "robust":
        return ((1 - label_smoothing) * right - label_smoothing * wrong) / (1 - 2 * label_smoothing)
    return right


class Formulas:
    """Loss and margin of a batch by the formulas. `swapped`: the control, which takes the losers for the chosen."""

    def __init__(self, path, kind, options, swapped=False):
        load = lambda: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self.model, self.reference, self.kind, self.options, self.swapped = load(), load(), kind, options, swapped

    def loss(self, batch):
        if self.swapped:
            batch = {k: v.flip(1) for k, v in batch.items()}
        with torch.no_grad():
            reference = log_probs(self.reference, batch)
        gain = log_probs(self.model, batch) - reference
        margin = self.options["beta"] * (gain[:, 0] - gain[:, 1]).mean().item()
        return formula(self.kind, gain, batch["loss_mask"].sum(-1), **self.options).mean(), margin


class Trl:
    """The same by TRL's trainer."""

    def __init__(self, directory, path, kind, options):
        from datasets import Dataset
        from trl import DPOConfig, DPOTrainer

        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        arguments = DPOConfig(output_dir=str(directory / "trl"), loss_type=[kind], report_to=[], use_cpu=True, bf16=False,
                              gradient_checkpointing=False, max_length=None, **options)
        self.trainer = DPOTrainer(model=model, args=arguments, processing_class=tokenizer(path),
                                  train_dataset=Dataset.from_list([{"prompt": "a", "chosen": " b", "rejected": " c"}]))
        self.model = self.trainer.model.train()  # it has no dropout; TRL keeps figures of training apart

    def loss(self, batch):
        # Chosen texts first, then the others; a text is its tokens and the last target.
        ids, mask, attention = [], [], []
        for side in (0, 1):
            for tokens, targets, weights in zip(*(batch[k][:, side] for k in ("tokens", "targets", "loss_mask"))):
                ids.append(torch.cat([tokens[:1], targets]))
                mask.append(torch.cat([torch.zeros(1), weights]).long())
                end = int(mask[-1].nonzero()[-1]) + 1
                attention.append((torch.arange(LENGTH + 1) < end).long())
        inputs = {"input_ids": torch.stack(ids), "attention_mask": torch.stack(attention),
                  "completion_mask": torch.stack(mask)}
        loss = self.trainer.compute_loss(self.model, inputs)
        return loss, self.trainer._metrics["train"]["rewards/margins"][-1]


def tokenizer(path):
    from transformers import AutoTokenizer

    out = AutoTokenizer.from_pretrained(path)
    out.chat_template = TEMPLATE
    if out.pad_token is None:
        out.pad_token = out.eos_token
    return out


def steps(other, batches):
    """Losses and margins."""
    return adamw_steps(other.model, other.loss, batches, OPTIMIZER)


def check(report, base, kind, options, full):
    directory, hf = base.directory, base.directory / "hf"
    run = TinyRun(base.ostro, directory, kind, {
        "data": component("pairs", directory, text_rows(), {"type": "preference"}),
        "model": {"seq_len": LENGTH}, "objective": {"type": "dpo", "loss_type": kind, **options},
        "optimizer": OPTIMIZER,
        "trainer": {"initialize_from": str(base.run_directory), "num_train_steps": STEPS, "train_batch_size": 8}})
    run.train()
    batches = [arrays(run.batch(step)) for step in range(STEPS)]
    ours = run.losses()
    metrics = map(json.loads, (run.run_directory / "metrics.jsonl").read_text().splitlines())
    our_margins = [m["train/margin"] for m in metrics if "train/margin" in m]
    others = [("the formula", Formulas(hf, kind, options))]
    if full:
        others.append(("TRL", Trl(directory, hf, kind, options)))
    for name, other in others:
        losses, margins = steps(other, batches)
        worst = max(abs(a - b) for a, b in zip(ours, losses))
        report.check(worst <= 1e-4 and len(ours) == STEPS,
                     f"{kind} beside {name}: {STEPS} losses, {ours[0]:.4f} to {ours[-1]:.4f}, largest difference "
                     f"{worst:.1e} (limit 1e-4)")
        worst = max(abs(a - b) for a, b in zip(our_margins, margins))
        limit = 1e-4 * max(1, *map(abs, our_margins))
        report.check(worst <= limit and len(our_margins) == STEPS,
                     f"{kind} beside {name}: margins up to {max(our_margins):.3f}, largest difference {worst:.1e} "
                     f"(limit {limit:.1e})")
    control = max(abs(a - b) for a, b in zip(ours[:2], steps(Formulas(hf, kind, options, swapped=True), batches[:2])[0]))
    report.check(control > 1e-3, f"{kind}: control with the answers swapped differs by {control:.1e}")


def shown(run, rows, name):
    """(ids, weights) of all rows of a component's store."""
    out = []
    for row in range(rows):
        line = run.run("data", "show", "--config", run.config_path, "--component", name, "--row", row, "--json")
        entry = json.loads(line)
        out.append((entry["ids"], entry.get("loss_weights", [1] * len(entry["ids"]))))
    return out


def check_tokens(report, base):
    """TRL's tokens of pairs, and its masks of conversations in several templates, are the store's."""
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer, SFTConfig

    directory, hf = base.directory, base.directory / "hf"
    model = lambda: AutoModelForCausalLM.from_pretrained(hf, dtype=torch.float32)
    quiet = {"output_dir": str(directory / "trl"), "report_to": [], "use_cpu": True, "bf16": False, "max_length": None}
    conversations = {"type": "preference", "chat_template": TEMPLATE}
    for name, rows, form in (("texts", text_rows(), {"type": "preference"}), ("talks", chat_rows(), conversations)):
        run = TinyRun(base.ostro, directory, name, {"data": component(name, directory, rows, form),
                                                    "model": {"seq_len": LENGTH}, "objective": {"type": "dpo"}})
        run.run("data", "build", "--config", run.config_path)
        own, equal = shown(run, len(rows), name), 0
        for with_prompt in (True, False):
            chosen = [i for i, r in enumerate(rows) if ("prompt" in r) == with_prompt]
            trainer = DPOTrainer(model=model(), args=DPOConfig(**quiet), processing_class=tokenizer(hf),
                                 train_dataset=Dataset.from_list([rows[i] for i in chosen]))
            for i, theirs in zip(chosen, trainer.train_dataset):
                ids, parts = own[i]
                mine = [[t for t, p in zip(ids, parts) if p == part] for part in range(4)]
                equal += mine == [theirs["prompt_ids"], theirs["chosen_ids"], theirs["prompt_ids"],
                                  theirs["rejected_ids"]]
        report.check(equal == len(rows), f"{name}: {equal} of {len(rows)} pairs have the tokens and completions of TRL")

    for name, template in TEMPLATES.items():
        check_mask(report, base, name, template, model(), SFTConfig(assistant_only_loss=True, **quiet))


def check_mask(report, base, name, template, model, arguments):
    """The tokens that count in supervised tuning are those of TRL's assistant mask."""
    from datasets import Dataset
    from trl import SFTTrainer

    rows = [{"messages": [{"role": "system", "content": f"be number {i}"}] * (i % 4 == 0) + r.get("prompt", []) + r["chosen"]}
            for i, r in enumerate(chat_rows())]
    run = TinyRun(base.ostro, base.directory, f"sft_{name}", {
        "data": component(f"sft_{name}", base.directory, rows, {"type": "chat", "chat_template": template})})
    run.run("data", "build", "--config", run.config_path)
    own = shown(run, len(rows), f"sft_{name}")
    words = tokenizer(base.directory / "hf")
    words.chat_template = template
    trainer = SFTTrainer(model=model, args=arguments, processing_class=words, train_dataset=Dataset.from_list(rows))
    # TRL says it with labels: -100 where a token does not count.
    theirs = [(list(t["input_ids"]), [int(label != -100) for label in t["labels"]]) for t in trainer.train_dataset]
    equal = sum(mine == other for mine, other in zip(own, theirs))
    counted, all_of = int(sum(sum(w) for _, w in own)), sum(len(w) for _, w in own)
    report.check(equal == len(rows) and 0 < counted < all_of,
                 f"template {name}: {equal} of {len(rows)} conversations count TRL's tokens, {counted} of {all_of} in all")
    moved = sum(mask[1:] == w[:-1] for (_, mask), (_, w) in zip(theirs, own))
    report.check(moved == 0, f"template {name}: control with the mask moved by one token differs everywhere")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    report = Report()
    full = seed.size() != "sample"
    with tempfile.TemporaryDirectory() as directory:
        base = TinyRun(args.ostro, directory, "base", {})
        base.train()
        base.run("export", "--checkpoint", base.run_directory, "--to", "hf", "--out", base.directory / "hf")
        for kind in seed.draw("losses", LOSSES, 1):
            check(report, base, kind, LOSSES[kind], full)
        if full:
            check_tokens(report, base)
    report.finish()


if __name__ == "__main__":
    main()
