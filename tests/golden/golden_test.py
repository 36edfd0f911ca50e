"""Seven runs whose hashes are kept in hashes.json, on every instruction set that this machine has.

The runs differ from each other in as many options as possible. Their text comes from a fixed generator, so the hash
covers tokenizer, token store, data order, initial weights, arithmetic and chain. A hash that moves means another
numerics version or a fixed bug: say so in the commit that writes it with --update.

A sampled run (tests/suite/seed.py) takes one config of the seven through the interpreter. Of the emulated instruction
sets (--isas) it leaves to the program without emulation (--native) those that it can use.

  python3 tests/golden/golden_test.py --ostro build/release/ostro/cli/ostro [--update | --isas NAME... --native PROGRAM]
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "matrix"))
sys.path.insert(0, str(HERE.parent / "suite"))
import runs
import seed

STEPS = 8
CONFIGS = {
    # f32, tied, sequences of an odd length, whole batches as one leaf.
    "f32_tied": {
        "trainer.mp": "f32", "model.tie_word_embeddings": True, "model.seq_len": 77, "model.hidden_dim": 48,
        "model.num_heads": 3, "model.num_kv_heads": 1, "model.intermediate_dim": 104, "numerics.leaf_examples": 6,
        "numerics.cells": {}, "optimizer.weight_decay": 0.0, "optimizer.max_grad_norm": None, "trainer.seed": 7,
    },
    # bf16 with feature leaves, long wavelengths, z-loss, another activation and schedule.
    "bf16_leaves": {
        "model.seq_len": 192, "model.hidden_dim": 64, "model.intermediate_dim": 96, "model.num_layers": 3,
        "model.activation_function": "gelu_new", "model.z_loss_weight": 1e-3,
        "model.rope": {"type": "llama3", "theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 64},
        "numerics.leaves": {"kv_heads": 2, "mlp": 4}, "numerics.leaf_examples": 2, "numerics.cells": {"mlp": 4},
        "optimizer.lr_schedule": "linear", "optimizer.decay": 4, "optimizer.max_grad_norm": 0.25,
    },
    # bf16, attention within documents only, eras, permanent checkpoints in the chain.
    "bf16_documents": {
        "data.block_cross_document_attention": True, "data.shuffle": 16, "data.enforce_eos": True,
        "model.seq_len": 130, "model.head_dim": 32, "model.activation_function": "gelu", "numerics.leaf_examples": 3,
        "trainer.checkpointer.keep": [{"every": 5}], "optimizer.lr_schedule": "inv_sqrt", "trainer.seed": 3,
    },
    # Integer products, the head's of a tied table; a short last block along mlp and along the tokens of a leaf.
    "int8": {
        "trainer.mp": "p=f32,c=int8", "model.seq_len": 130, "model.intermediate_dim": 300,
        "model.tie_word_embeddings": True, "numerics.leaf_examples": 3, "trainer.seed": 11,
    },
    # Integer products, of attention too, over two blocks of keys, within documents, with a window, sinks and a soft cap.
    "int8_attention": {
        "trainer.mp": "p=f32,c=int8,a=int8", "model.type": "decoder", "model.seq_len": 150, "model.attention_sink": True,
        "model.sliding_window": 70, "model.layer_pattern": ["sliding", "full"], "model.attn_logit_softcapping": 20.0,
        "data.block_cross_document_attention": True, "numerics.leaf_examples": 3, "trainer.seed": 13,
    },
    # The rule of tensor cores, of experts beside a shared one too, with feature leaves; contractions end inside a group.
    "bf16_tc16": {
        "trainer.mp": "p=f32,c=bf16_tc16", "model.type": "qwen2_moe", "model.num_experts": 3, "model.num_experts_per_tok": 2,
        "model.shared_intermediate_dim": 24, "model.hidden_dim": 36, "model.num_heads": 3, "model.num_kv_heads": 1, "model.seq_len": 53,
        "numerics.leaves": {"mlp": 2}, "numerics.leaf_examples": 3, "trainer.seed": 14,
    },
    # Integer products of experts, some with more rows than a block, beside a shared expert and a dense first layer.
    "int8_experts": {
        "trainer.mp": "p=f32,c=int8", "model.type": "qwen2_moe", "model.num_experts": 3, "model.num_experts_per_tok": 2,
        "model.shared_intermediate_dim": 24, "model.first_k_dense_replace": 1, "model.dense_intermediate_dim": 40,
        "model.seq_len": 130, "numerics.leaf_examples": 3, "trainer.seed": 12,
    },
}
INTERPRETER = {"OSTRO_EXECUTOR": "interpreter"}
OTHERS = [INTERPRETER, {"OSTRO_SIM_WORKERS": "3", "OSTRO_THREADS": "2"}]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ostro", required=True)
    ap.add_argument("--update", action="store_true")
    ap.add_argument("--isas", nargs="+", help="only these, each of which has to be there, and nothing else")
    ap.add_argument("--native", help="with --isas: the program whose instruction sets need no emulation")
    a = ap.parse_args()
    if a.isas and not a.native:
        ap.error("--isas needs --native")
    if a.update and a.isas:
        ap.error("--update writes hashes on which every run agrees, and --isas leaves some out")
    known = {} if a.update else json.loads((HERE / "hashes.json").read_text())
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ostro_golden_") as folder:
        work = runs.Workspace(a.ostro, folder)
        usable, lacking = runs.usable_isas(work)
        for isa, reason in lacking.items():
            print(f"not run  OSTRO_ISA={isa}: {reason}")
        others = OTHERS
        if a.isas:
            if missing := [isa for isa in a.isas if isa not in usable]:
                print(f"FAILED   {', '.join(missing)}: not on this machine")
                return 1
            native = runs.usable_isas(runs.Workspace(a.native, pathlib.Path(folder) / "native"))[0]
            usable, others = [isa for isa in a.isas if seed.full() or isa not in native], []
            print(f"instruction sets: {', '.join(usable) or 'none that the processor lacks'}")
        interpreted = CONFIGS if a.update or a.isas else seed.draw("configs in the interpreter", CONFIGS, 1)
        for name, changes in CONFIGS.items():
            changes = {**changes, "trainer.num_train_steps": STEPS}
            first = None
            every = [other for other in others if other != INTERPRETER or name in interpreted]
            for settings in every + [{"OSTRO_ISA": isa} for isa in usable]:
                label = " ".join(f"{k}={v}" for k, v in settings.items())
                run = work.run(f"{name} {label}".replace(" ", "_"), changes, settings)
                if first is None:
                    first = run
                    losses = run.losses()
                    if not all(map(math.isfinite, losses)) or losses[-1] >= losses[0] or run.not_finite():
                        print(f"FAILED   {name}: a run that proves nothing: losses {losses[0]} to {losses[-1]}")
                        failed += 1
                    if a.update:
                        known[name] = run.hash
                equal = run.hash == known.get(name)
                failed += not equal
                print(f"{'equal   ' if equal else 'FAILED  '} {name} {label}: {run.hash} in {run.seconds:.1f} s")
                if run.hash != first.hash:
                    print("    " + runs.first_difference(first, run))
    if a.update:
        (HERE / "hashes.json").write_text(json.dumps(known, indent=2) + "\n")
    if len(set(known.values())) != len(CONFIGS):
        print("FAILED   two configs have one hash")
        failed += 1
    return 1 if failed else 0


sys.exit(main())
