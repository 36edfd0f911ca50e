#!/usr/bin/env python3
"""Imports ten configurations of Levanter and ten of transformers.TrainingArguments, with the keys that published ones
use, and trains what they give for ten steps, scaled down. Those that ask for what has no counterpart are refused, by
the names of the keys.

    import_configs_test.py --ostro PROGRAM [--trained N]
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402
from program import Program, check  # noqa: E402

# name: (YAML, names that a refusal has; none: it is imported, values of the result)
LEVANTER = {
    "gpt2_small": ("""
data: {id: openwebtext, cache_dir: "gs://bucket/cache"}
""", ["data.id"], {}),
    "gpt2_nano": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
model: {type: gpt2, hidden_dim: 32, num_heads: 4, num_layers: 2, seq_len: 1024, embed_pdrop: 0.0, scan_layers: true}
trainer: {mp: "p=f32,c=bfloat16", num_train_steps: 100, train_batch_size: 32, tracker: {type: wandb, project: levanter},
  checkpointer: {keep: [{every: 50}], save_interval: 5m}, require_accelerator: false}
optimizer: {learning_rate: 1E-3, weight_decay: 0.1, warmup: 0.01}
""", [], {"trainer.num_train_steps": "100", "model.seq_len": "1024"}),
    "llama_pile": ("""
data:
  tokenizer: TOKENIZER
  cache_dir: cache
  shuffle: true
  train_urls: [texts/*.txt]
model: {type: llama, seq_len: 2048, hidden_dim: 768, intermediate_dim: 2048, num_heads: 12, num_kv_heads: 12,
  num_layers: 12, gradient_checkpointing: true, use_flash_attention: true, flash_attention_block_size: 1024}
trainer: {train_batch_size: 256, per_device_parallelism: 4, model_axis_size: 1, batch_axis: batch, ray: {address: null},
  tensor_parallel_axes: [mlp], fsdp_axis: embed, profiler: true, profiler_start_step: 5, wandb: {project: x}}
optimizer: {type: adam, learning_rate: 6e-4, lr_schedule: cosine, min_lr_ratio: 0.1, beta1: 0.9, beta2: 0.95}
z_loss_weight: 1e-4
hf_save_path: "gs://bucket/hf"
hf_save_steps: 1000
""", [], {"model.z_loss_weight": "1e-4", "trainer.num_train_steps": "400000", "trainer.mp": "f32"}),
    "llama_defaults": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
""" + "trainer: {seed: 3}\n", [], {"trainer.train_batch_size": "512", "model.hidden_dim": "4096"}),
    "mixture": ("""
data:
  tokenizer: TOKENIZER
  configs:
    web: {train_urls: [texts/0.txt, texts/1.txt]}
    code: {train_urls: [texts/2.txt], validation_urls: [texts/3.txt], text_key: content}
  train_weights: {web: 0.75, code: 0.25}
  stop_strategy: restart
  mixture_block_size: 16
  permutation_type: feistel
model: {type: llama, num_layers: 2}
trainer: {train_batch_size: [{start: 0, value: 16}, {start: 5, value: 32}], num_train_steps: 10,
  checkpointer: {base_path: "gs://b/c", keep: [{every: 5}]}}
optimizer: {type: lion, learning_rate: 1e-4, decay: 0.2}
""", [], {"data.components.web.train_urls": "[texts/0.txt, texts/1.txt]", "trainer.train_batch_size": "[[0, 16], [5, 32]]"}),
    "mistral": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
model: {type: mistral, sliding_window: 4096, upcast_attn: false}
trainer: {num_train_steps: 20, load_checkpoint: false, log_jaxprs: false, distributed: {num_processes: 4},
  watch: {watch_targets: [grads], interval: 0}}
optimizer: {learning_rate: 3e-4, cycles: 2, rewarmup: 0.1}
""", [], {"model.num_kv_heads": "8", "optimizer.cycles": "2", "trainer.watch_norms": None}),
    "sophia": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
optimizer: {type: sophia-h, learning_rate: 1e-3, gamma: 0.01}
""", ["optimizer.type", "sophia-h"], {}),
    "dropout": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
model: {type: gpt2, resid_pdrop: 0.1, embed_pdrop: 0.1}
""", ["model.resid_pdrop", "model.embed_pdrop"], {}),
    "continued": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER}
initialize_from_hf: meta-llama/Llama-3.1-8B
use_hf_model_config: true
""", ["use_hf_model_config"], {}),
    "skip_and_ema": ("""
data: {train_urls: [texts/*.txt], tokenizer: TOKENIZER, enforce_eos: true, cache_options: {batch_size: 256}}
model: {type: qwen3, seq_len: 4096, hidden_dim: 1024, num_layers: 4}
trainer: {num_train_steps: 50, steps_per_eval: 10, max_eval_batches: 5, seed: 0, id: my-run, log_dir: logs,
  jax_config: {jax_threefry_partitionable: true}, watch: {interval: 5}, crash_on_nan: true}
optimizer: {type: muon, learning_rate: 0.02, momentum: 0.95, skip_bad_steps: true}
eval_harness: {task_spec: [hellaswag]}
log_entropy: true
""", [], {"trainer.id": "my-run", "optimizer.skip_bad_steps": "true",
             "trainer.watch_norms": "[gradients, parameters]"}),
}

ARGUMENTS = {
    "defaults": ({"output_dir": "out", "max_steps": 100}, [], {"optimizer.learning_rate": "5e-05", "trainer.seed": "42",
                                                              "optimizer.beta2": "0.999", "trainer.mp": "f32"}),
    "causal": ({"output_dir": "runs/gpt2", "overwrite_output_dir": True, "do_train": True, "do_eval": True,
                "per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "learning_rate": 3e-4,
                "max_steps": 1000, "warmup_steps": 100, "lr_scheduler_type": "cosine", "bf16": True,
                "logging_steps": 10, "save_steps": 500, "eval_strategy": "steps", "eval_steps": 250,
                "report_to": ["wandb", "tensorboard"], "weight_decay": 0.1, "adam_beta2": 0.95, "max_grad_norm": 1.0,
                "dataloader_num_workers": 8, "ddp_find_unused_parameters": False, "gradient_checkpointing": True},
               [], {"trainer.train_batch_size": "32", "trainer.mp": '"p=f32,c=bfloat16"', "optimizer.warmup": "100.0",
                    "trainer.id": "gpt2", "trainer.steps_per_eval": "250"}),
    "epochs": ({"output_dir": "out", "num_train_epochs": 3, "per_device_train_batch_size": 8}, ["num_train_epochs"], {}),
    "fp16": ({"output_dir": "out", "max_steps": 10, "fp16": True, "fp16_opt_level": "O1"}, ["fp16"], {}),
    "noise": ({"output_dir": "out", "max_steps": 10, "neftune_noise_alpha": 5, "label_smoothing_factor": 0.1,
               "group_by_length": True}, ["neftune_noise_alpha", "group_by_length"], {}),
    "sft": ({"output_dir": "sft", "max_steps": 50, "max_length": 1024, "dataset_text_field": "text", "warmup_ratio": 0.03,
             "optim": "adamw_torch_fused", "push_to_hub": False, "hub_model_id": None, "tf32": True, "save_total_limit": 2,
             "remove_unused_columns": False}, [], {"model.seq_len": "1024", "optimizer.warmup": "0.03", "data.text_key": "text"}),
    "adafactor": ({"output_dir": "t5", "max_steps": 50, "optim": "adafactor", "learning_rate": 1e-3,
                   "lr_scheduler_type": "constant", "save_strategy": "no"}, [], {"optimizer.type": "adafactor",
                                                                                "trainer.checkpointer.keep": "[]"}),
    "deepspeed": ({"output_dir": "out", "max_steps": 10, "deepspeed": "ds.json"}, ["deepspeed"], {}),
    "best": ({"output_dir": "out", "max_steps": 10, "load_best_model_at_end": True, "metric_for_best_model": "loss"},
             ["load_best_model_at_end"], {}),
    "polynomial": ({"output_dir": "out", "max_steps": 10, "lr_scheduler_type": "polynomial", "seed": 7,
                    "torch_compile": True}, ["lr_scheduler_type"], {}),
}

SMALL = {"model.seq_len": "32", "model.hidden_dim": "32", "model.num_layers": "2", "model.num_heads": "4",
         "trainer.train_batch_size": "4", "trainer.num_train_steps": "10", "trainer.steps_per_eval": "0",
         "trainer.log_dir": "runs", "numerics.leaf_examples": "2", "optimizer.warmup": "0"}


def value_of(text, path):
    """A value of block YAML as Ostro writes it."""
    at, depth = text.splitlines(), 0
    for name in path.split(".")[:-1]:
        start = at.index("  " * depth + name + ":")
        at, depth = at[start + 1:], depth + 1
    prefix = "  " * depth + path.split(".")[-1] + ": "
    found = [line[len(prefix):] for line in at if line.startswith(prefix)]
    return found[0] if found else None


def import_one(program, name, file, refused, values):
    out = f"{name}.out.yaml"
    said = program.run("config", "import", file, "--out", out, code=2 if refused else 0)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if refused:
        for key in refused:
            check(any(key in line for line in errors), f"{name}: {key} is not named in {said}")
        check(not (program.folder / out).exists(), f"{name}: was refused and written")
        return None
    text = (program.folder / out).read_text()
    for path, value in values.items():
        check(value_of(text, path) == value, f"{name}: {path} is {value_of(text, path)}, not {value}:\n{text}")
    return out


def train(program, name, out):
    words = [w for key, value in SMALL.items() for w in (f"--{key}", value)]
    text = (program.folder / out).read_text()
    if not any(line.strip().startswith("train_urls:") for line in text.splitlines()):
        words += ["--data.train_urls", "[texts/*.txt]", "--data.tokenizer", "t.json"]
    if "type: gpt2" not in text:  # the others have these keys
        words += ["--model.num_kv_heads", "2", "--model.intermediate_dim", "48"]
    else:
        words += ["--model.max_position_embeddings", "64"]
    said = program.run("train", "--config", out, *words, "--trainer.id", name, "--data.cache_dir", f"cache-{name}")
    check("run hash: " in said, f"{name}: {said}")
    if "gradients, parameters" in text:
        lines = [json.loads(line) for line in (program.folder / "runs" / name / "metrics.jsonl").read_text().splitlines()]
        watched = [line["step"] for line in lines if any(key.startswith("watch/param_norm/") for key in line)]
        check(watched == [5, 10], f"norms are written after the steps {watched}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--trained", type=int, default=2, help="how many are trained, in the sampled form")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(args.ostro, folder)
        (program.folder / "texts").mkdir()
        for i in range(4):
            (program.folder / "texts" / f"{i}.txt").write_text(" ".join(f"word{k % 97} number {k * i}" for k in range(900)))
        program.run("tokenizer", "train", "--input", "texts/*.txt", "--vocab_size", "300", "--out", "t.json")
        made = {}
        for name, (text, refused, values) in LEVANTER.items():
            (program.folder / f"{name}.yaml").write_text(text.replace("TOKENIZER", "t.json"))
            made[name] = import_one(program, name, f"{name}.yaml", refused, values)
        for name, (arguments, refused, values) in ARGUMENTS.items():
            (program.folder / f"{name}.json").write_text(json.dumps(arguments, indent=1))
            made[name] = import_one(program, name, f"{name}.json", refused, values)
        said = program.run("config", "import", "epochs.json", "--out", "e.yaml", "--trainer.num_train_steps", "12")
        check("num_train_steps: 12" in (program.folder / "e.yaml").read_text(), said)
        check("is there already" in program.run("config", "import", "epochs.json", "--out", "e.yaml",
                                                "--trainer.num_train_steps", "12", code=2), "overwritten")
        usable = [name for name, out in made.items() if out]
        chosen = usable if seed.full() else seed.draw("imported configurations", usable, args.trained)
        for name in chosen:
            train(program, name, made[name])
    print(f"{len(made)} configurations: {len(usable)} imported, {len(made) - len(usable)} refused by names; trained: "
          f"{', '.join(chosen)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
