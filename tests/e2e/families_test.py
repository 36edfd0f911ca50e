#!/usr/bin/env python3
"""Tests families of decoders from the command line: a run of one process has the chain of a run of two workers, of
another number of threads and of tensor parallelism.

The loss falls, and the model continues a text. A sampled run takes three of the families.

  python3 tests/e2e/families_test.py --ostro build/release/ostro/cli/ostro [--only FAMILY]
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from program import check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed

STEPS = 12
HEADS = "num_heads: 4, num_kv_heads: 2"
WINDOW = "sliding_window: 24"
LATENT = "num_heads: 4, kv_lora_rank: 16, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 16"
# What a small model of the family sets beside sizes, so that its features show in 96 positions.
FAMILIES = {
    "llama": HEADS,
    "decoder": HEADS + ", norm: layer, norm_bias: true, norm_place: sandwich, parallel: true, qk_norm: whole, attention_sink: "
                       "true, sliding_window: 24, layer_pattern: [sliding, full], rope: {type: yarn, factor: 2}, "
                       "rope_interleaved: true, head_bias: true",
    "mistral": HEADS + ", " + WINDOW,
    "qwen2": HEADS,
    "qwen3": HEADS,
    "gemma2": HEADS + ", query_pre_attn_scalar: 12, " + WINDOW,
    "gemma3": HEADS + ", layer_pattern: [sliding, sliding, full], " + WINDOW,
    "olmo2": HEADS,
    "olmo3": HEADS + ", rope: {type: yarn, factor: 2}, " + WINDOW,
    "phi3": HEADS + ", partial_rotary_factor: 0.75, " + WINDOW,
    "gpt2": "num_heads: 4, max_position_embeddings: 128",
    "gpt_neox": "num_heads: 4, partial_rotary_factor: 0.5",
    "starcoder2": HEADS + ", " + WINDOW,
    "granite": HEADS + ", embedding_multiplier: 6, attention_multiplier: 0.2, residual_multiplier: 0.4, logits_scaling: 3",
    "smollm3": HEADS,
    "helium": HEADS + ", rope: {type: longrope, long_factor: [2.0], original_max_position_embeddings: 64}",
    "glm4": HEADS + ", vocab_size: 352, rope: {type: dynamic, original_max_position_embeddings: 64}",
    "gemma": HEADS,
    "glm": HEADS,
    "seed_oss": HEADS + ", out_bias: true, mlp_bias: true",
    "ernie4_5": HEADS,
    "stablelm": HEADS + ", qkv_bias: true",
    "mixtral": HEADS + ", num_experts: 4, track_expert_load: true, router_bias_update_rate: 0.01, router_aux_loss_coef: 0.01, "
                       "router_z_loss_coef: 0.001, " + WINDOW,
    "qwen3_moe": HEADS + ", num_experts: 6, num_experts_per_tok: 3, " + WINDOW,
    "olmoe": HEADS + ", num_experts: 5",
    "grok": HEADS + ", num_experts: 4",
    "qwen2_moe": HEADS + ", num_experts: 4, shared_intermediate_dim: 48, first_k_dense_replace: 1, dense_intermediate_dim: 80",
    "deepseek_v2": LATENT + ", num_experts: 4, num_experts_per_tok: 2, n_group: 2, dense_intermediate_dim: 80, "
                            "shared_intermediate_dim: 48, rope: {type: yarn, factor: 2, mscale_all_dim: 0.7}",
    "deepseek_v3": LATENT + ", q_lora_rank: 24, num_experts: 8, num_experts_per_tok: 3, first_k_dense_replace: 2, "
                            "shared_intermediate_dim: 32, track_expert_load: true, router_bias_update_rate: 0.01",
}


# Widths of a mixture beside that of its experts, which leaves cut and tensor parallelism splits, too.
WIDTHS = {"qwen2_moe": ["shared_mlp", "dense_mlp"], "deepseek_v2": ["shared_mlp", "dense_mlp"],
          "deepseek_v3": ["shared_mlp", "dense_mlp"]}


class Place:
    def __init__(self, ostro, top):
        self.ostro, self.top = ostro, top
        rng = random.Random(7)
        words = [f"w{i:x}" for i in range(60)]
        (top / "text.txt").write_text(" ".join(rng.choice(words) for _ in range(12000)))
        self.run(["tokenizer", "train", "--input", str(top / "text.txt"), "--vocab_size", "320", "--out",
                  str(top / "tokenizer.json")])

    def run(self, words, threads=2):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"OSTRO_CACHE_DIR": str(self.top / "kernels"), "OSTRO_THREADS": str(threads)}
        done = subprocess.run([self.ostro, *words], env=env, text=True, timeout=300, capture_output=True, check=False)
        check(done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def config(self, family, options):
        widths = "".join(f", {axis}: 2" for axis in WIDTHS.get(family, []))
        path = self.top / f"{family}.yaml"
        path.write_text(f"""
data: {{train_urls: ["{self.top}/text.txt"], cache_dir: "{self.top}/cache", tokenizer: "{self.top}/tokenizer.json"}}
model: {{type: {family}, seq_len: 96, hidden_dim: 32, intermediate_dim: 64, num_layers: 4, {options}}}
trainer: {{log_dir: "{self.top}/runs", train_batch_size: 4, num_train_steps: {STEPS}, steps_per_eval: 0}}
numerics: {{leaf_examples: 1, leaves: {{kv_heads: 2, mlp: 2, vocab: 2{widths}}}, cells: {{embed: 4}}}}
optimizer: {{type: adam, learning_rate: 0.01}}
""")
        return str(path)

    def chain(self, name):
        return (self.top / "runs" / name / "chain.jsonl").read_bytes()

    def check_family(self, family, options):
        config = self.config(family, options)

        def train(name, command, *more, threads=2):
            self.run([*command, "--config", config, "--trainer.id", f"{family}-{name}", *more], threads)
            return self.chain(f"{family}-{name}")

        alone = train("alone", ["train"], threads=1)
        check(train("threads", ["train"]) == alone, f"{family}: threads change the chain")
        check(train("rows", ["launch", "local", "--workers", "2"]) == alone, f"{family}: two workers change the chain")
        tensor = train("tensor", ["launch", "local", "--workers", "2"], "--trainer.mesh.axes", "{data: -1, model: 2}",
                       "--trainer.tensor_parallel_axes", f"[{', '.join(['kv_heads', 'mlp', 'vocab', *WIDTHS.get(family, [])])}]")
        check(tensor == alone, f"{family}: tensor parallelism changes the chain")
        metrics = [json.loads(line) for line in
                   (self.top / "runs" / f"{family}-alone" / "metrics.jsonl").read_text().splitlines()]
        losses = [row["train/loss"] for row in metrics if "train/loss" in row]
        check(losses[-1] < losses[0] - 0.3, f"{family}: the loss went from {losses[0]} to {losses[-1]}")
        where = str(self.top / "runs" / f"{family}-alone")
        said = json.loads(self.run(["sample", "--checkpoint", where, "--prompt", "w1 w2", "--max_new_tokens", "8",
                                    "--temperature", "0", "--json"]).splitlines()[-1])
        check(said, f"{family}: it continues no text")
        print(f"{family}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; one process, threads, two workers, tensor: one chain",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    families = [args.only] if args.only else seed.draw("families", FAMILIES, 3)
    with tempfile.TemporaryDirectory() as top:
        place = Place(str(pathlib.Path(args.ostro).resolve()), pathlib.Path(top))
        for family in families:
            place.check_family(family, FAMILIES[family])


if __name__ == "__main__":
    main()
