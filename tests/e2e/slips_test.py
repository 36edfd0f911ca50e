#!/usr/bin/env python3
"""Gives the program what people get wrong, and looks at every sentence that comes back.

Thirty configurations with several mistakes each, drawn from a list of mistakes: one run must name all of them, each
with the line it stands in. Then slips on the command line, help, and what other trainers call things.

    slips_test.py --ostro PROGRAM [--configurations N]
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402
from program import Program, check  # noqa: E402

# (section, key, value as YAML, what the error says). A key is used once in a configuration.
MISTAKES = [
    ("trainer", "lr", "1e-3", "it is called optimizer.learning_rate here"),
    ("trainer", "max_steps", "100", "it is called trainer.num_train_steps here"),
    ("trainer", "num_train_step", "100", 'the nearest known key is "trainer.num_train_steps"'),
    ("trainer", "per_device_train_batch_size", "8", "it is called trainer.train_batch_size here"),
    ("trainer", "gradient_accumulation_steps", "4", "it is called numerics.leaf_examples here"),
    ("trainer", "bf16", "true", "it is called trainer.mp: bfloat16 here"),
    ("trainer", "fp16", "true", "there is no training in fp16"),
    ("trainer", "epochs", "3", "it is called trainer.num_train_steps here"),
    ("trainer", "seed", "-1", "-1 is negative"),
    ("trainer", "id", "a/b", "cannot name a directory"),
    ("trainer", "steps_per_eval", "soon", "expected an integer"),
    ("trainer", "max_eval_batches", "0", "0 is too small"),
    ("trainer", "log_dir", "gs://bucket/runs", "is no local folder"),
    ("trainer", "mp", "fp8", "unknown type"),
    ("trainer", "ray", "{address: null}", "workers are started by ostro launch"),
    ("trainer", "distributed", "{num_processes: 4}", "workers are started by ostro launch"),
    ("trainer", "tracker", "{type: wandbb}", "unknown type"),
    ("trainer", "checkpointer", "{base_path: x}", "it is called trainer.log_dir here"),
    ("trainer", "load_checkpoint_path", "x", "the same command resumes a run"),
    ("trainer", "profiler", "true", "ostro train --profile"),
    ("trainer", "device", "gpu", "use cpu, cuda, cuda:N or auto"),
    ("trainer", "per_device_parallelism", "4", "set numerics.leaf_examples"),
    ("trainer", "hang_timeout", "30", "expected a duration"),
    ("optimizer", "type", "adamw", "it is called optimizer.type: adam here"),
    ("optimizer", "learning_rat", "1", 'the nearest known key is "optimizer.learning_rate"'),
    ("optimizer", "weight_decay", "-1", "use 0 or more"),
    ("optimizer", "beta2", "1.5", "is not allowed"),
    ("optimizer", "lr_schedule", "polynomial", "expected one of constant"),
    ("optimizer", "warmup_ratio", "0.1", "it is called optimizer.warmup here"),
    ("optimizer", "max_grad_norm", "0", "use a positive number or null"),
    ("optimizer", "betas", "[0.9, 0.95]", "set optimizer.beta1 and optimizer.beta2"),
    ("model", "num_layers", "two", "expected an integer"),
    ("model", "n_embd", "64", "it is called model.hidden_dim here"),
    ("model", "dropout", "0.1", "there is no dropout"),
    ("model", "activation_function", "swish", "expected one of silu"),
    ("model", "use_bias", "true", "qkv_bias"),
    ("model", "initializer_range", "0", "is not positive"),
    ("model", "z_loss_weight", "-1", "is negative"),
    ("model", "gradient_checkpointing", "some", 'unknown name "some"'),
    ("data", "validation_fraction", "1.5", "is not a fraction"),
    ("data", "shufle", "true", 'the nearest known key is "data.shuffle"'),
    ("data", "configs", "{web: {}}", "data.components"),
    ("data", "id", "wikitext", "are not fetched"),
    ("data", "mixture_block_size", "0", "use 1 or more"),
    ("data", "chunk_cache_mib", "-5", "is not a number of MiB"),
    ("data", "tokeniser", "t.json", 'the nearest known key is "data.tokenizer"'),
    ("", "z_loss_weight", "0.1", "the option of this name is model.z_loss_weight"),
    ("", "hf_save_path", "out", "ostro export --to hf"),
    ("", "eval_harness", "{task_spec: [x]}", "ostro eval --tasks"),
    ("", "initialize_from_hf", "org/model", "it is called trainer.initialize_from here"),
    ("", "use_hf_model_config", "true", "trainer.initialize_from"),
    ("", "learning_rate", "1e-3", "the option of this name is optimizer.learning_rate"),
    ("", "trianer", "{}", 'the nearest known key is "trainer"'),
    ("numerics", "leaf_example", "4", 'the nearest known key is "numerics.leaf_examples"'),
    ("chain", "leaf_gradients", "sometimes", "expected true or false"),
]
NO_EFFECT = ["model: {use_flash_attention: true}", "model: {flash_attention_block_size: 512}", "model: {attn_backend: x}",
             "model: {scan_layers: true}", "trainer: {batch_axis: batch}", "trainer: {require_accelerator: false}",
             "trainer: {per_device_parallelism: -1}", "trainer: {fp16: false}", "data: {cache_options: {batch_size: 1}}"]


def write(program, chosen):
    """The configuration's lines, and the number of each mistake's line."""
    lines, where = [], {}
    sections = {"data": ["train_urls: [texts]"], "trainer": [], "model": [], "optimizer": [], "numerics": [], "chain": []}
    for mistake in chosen:
        section, key, value, _ = mistake
        if section:
            sections[section].append((mistake, f"{key}: {value}"))
    for section, items in sections.items():
        if items:
            lines.append(f"{section}:")
        for item in items:
            text = item if isinstance(item, str) else item[1]
            lines.append(f"  {text}")
            if not isinstance(item, str):
                where[item[0]] = len(lines)
    for mistake in chosen:
        if not mistake[0]:
            lines.append(f"{mistake[1]}: {mistake[2]}")
            where[mistake] = len(lines)
    (program.folder / "c.yaml").write_text("\n".join(lines) + "\n")
    return where


def check_configurations(program, count):
    rng = random.Random(seed.seed())
    pool = []
    for number in range(count):
        size = rng.randint(2, 10)
        if len(pool) < size:  # so that every mistake is seen
            pool = rng.sample(MISTAKES, len(MISTAKES)) + pool
        chosen = list({(m[0], m[1]): m for m in (pool.pop() for _ in range(size))}.values())
        where = write(program, chosen)
        said = program.run("config", "check", "c.yaml", code=2)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        for mistake, line in where.items():
            found = [e for e in errors if e.startswith(f"error: c.yaml:{line}: ") and mistake[3] in e]
            check(found, f"configuration {number}: line {line}, {mistake}: not in\n{said}")
        check(len(errors) == len(where), f"configuration {number}: {len(errors)} errors, {len(where)} mistakes:\n{said}")
    print(f"{count} configurations with several mistakes each: every mistake named in one run")


def check_accepted(program):
    for text in NO_EFFECT:
        (program.folder / "c.yaml").write_text(text.replace("data: {", "data: {train_urls: [x], ") if "data" in text
                                               else text + "\ndata: {train_urls: [x]}\n")
        said = program.run("config", "check", "c.yaml")
        check("has no effect here" in said and "makes sense" in said, f"{text}: {said}")


def check_slips(program):
    (program.folder / "good.yaml").write_text("data: {train_urls: [x]}\n")
    for words, says in [
        (["train", "good.yaml", "--device", "gpu"], "use cpu, cuda, cuda:N or auto"),
        (["train", "good.yaml", "--gpus", "1"], "--trainer.device cuda:N"),
        (["train", "good.yaml", "--max_steps", "3"], "--trainer.num_train_steps"),
        (["train", "good.yaml", "--learning-rate", "3"], "--optimizer.learning_rate"),
        (["train", "config/x.py"], "a configuration is a YAML file"),
        (["good.yaml"], "ostro train --config good.yaml"),
        (["resume"], "ostro train"), (["report"], "ostro inspect RUN --html"), (["finetune"], "docs/guide/finetune.md"),
        (["trian"], 'the nearest is "train"'),
        (["train", "good.yaml", "trainer.seed=x"], "trainer.seed: expected an integer"),
    ]:
        said = program.run(*words, code=2)
        check(says in said, f"{words}: {says} is not in: {said}")
    said = program.run("config", "check", "good.yaml", "trainer.seed=3", "trainer.num_train_steps=1e3")
    check("makes sense" in said, said)
    (program.folder / "x.py").write_text("")
    for text, says in [("a:\n\tb: 1\n", "c.yaml:2: this line is indented with a tab"),
                       ("trainer:\n  seed: 1\n   id: x\n", "c.yaml:3: this line is indented by 3 spaces, and line 2 before it by 2")]:
        (program.folder / "c.yaml").write_text(text)
        said = program.run("config", "check", "c.yaml", code=2)
        check(says in said, said)
    for words in (["data", "stats", "--config", "good.yaml", "--data.tokenizer", "gone/t.json"],):
        said = program.run(*words, code=1)
        check("data.tokenizer: gone/t.json does not exist; paths are relative to the folder that you are in" in said, said)


def check_help(program):
    short, long = program.run("train", "--help"), program.run("train", "--help-all")
    check(len(short.splitlines()) < 90, f"--help has {len(short.splitlines())} lines")
    order = [short.index(f"\n{section}:\n") for section in ("trainer", "data", "model", "optimizer")]
    check(order == sorted(order), f"sections in the order {order}")
    check(program.run("help", "train") == short, "ostro help train is not ostro train --help")
    check("Usage" in program.run("help"), "ostro help")
    keys = set(re.findall(r"^  --([a-z_]+\.[a-z_.<>\[\]0-9]+)", long, re.M))
    check(len(keys) > 150 and "trainer.hang_timeout" in keys, f"{len(keys)} keys in --help-all")
    about = program.run("train", "--help", "warmup")
    check("--optimizer.warmup" in about and "--trainer.id" not in about, about)
    check("no key has this name" in program.run("train", "--help", "nonsense", code=2), "a key that is none")
    for words in ("train --help", "train --help-all", "--help"):
        done = subprocess.run(f"'{program.ostro}' {words} | head -n 1", shell=True, executable="/bin/bash",
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1, f"{words} | head: {done}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--configurations", type=int, default=30)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(args.ostro, folder)
        check_configurations(program, args.configurations)
        check_accepted(program)
        check_slips(program)
        check_help(program)
    print("slips, notes and help: as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
