"""Peer: the training step of the installed Levanter (marin-levanter of PyPI), through its own Trainer.

    python levanter_llama.py --size small58 --dtype f32 --threads 2

bf16 = its policy p=f32,c=bfloat16. It draws its own initial weights, so its loss is near the others', not equal. How it
is driven: common.py.
"""
import argparse, os, tempfile
import common as C

a, c = C.arguments(argparse.ArgumentParser())
B, S = c["batch"], c["seq"]
os.environ.update(JAX_PLATFORMS="cpu", WANDB_MODE="disabled", HF_HUB_OFFLINE="1")
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
import importlib.metadata
import haliax as hax
import jax
import jmp
import numpy as np
from levanter.checkpoint import CheckpointerConfig
from levanter.layers.attention import AttentionMask
from levanter.models.llama import LlamaConfig
from levanter.models.lm_model import LmExample
from levanter.optim import AdamConfig
from levanter.tracker import NoopConfig
from levanter.trainer import Trainer, TrainerConfig

model = LlamaConfig(max_seq_len=S, hidden_dim=c["H"], intermediate_dim=c["ffn"], num_layers=c["L"],
                    num_heads=c["heads"], num_kv_heads=c["kv"], gradient_checkpointing=False)
config = TrainerConfig(mp=jmp.get_policy("p=f32,c=bfloat16" if a.dtype == "bf16" else "f32"), id="peer",
                       tracker=NoopConfig(), num_train_steps=1000, train_batch_size=B, require_accelerator=False,
                       log_jaxprs=False, log_xla_hlo=False,
                       checkpointer=CheckpointerConfig(base_path=tempfile.mkdtemp(prefix="ostro_bench_levanter_")))
optimizer = AdamConfig(learning_rate=C.ADAM["lr"], weight_decay=C.ADAM["wd"], beta1=C.ADAM["betas"][0],
                       beta2=C.ADAM["betas"][1], epsilon=C.ADAM["eps"], max_grad_norm=C.ADAM["clip"],
                       lr_schedule="constant", warmup=0)
batch_axis, vocab = hax.Axis("batch", B), hax.Axis("vocab", c["V"])
weights = np.ones((B, S), np.float32)
weights[:, -1] = 0  # it predicts a sequence's own next tokens

with Trainer(config, optimizer.build(1000), lambda m, example, *, key=None: m.compute_next_token_loss(example, key=key),
             add_default_hooks=False) as trainer:
    state = trainer.initial_state(jax.random.PRNGKey(0),
                                  model_init=lambda: model.build(vocab, key=jax.random.PRNGKey(1)))

    def step(i):
        global state
        tokens, _ = C.batch(c, B, S, i)
        axes = (batch_axis, model.max_Pos)
        info = trainer.train_step(state, LmExample(tokens=hax.named(tokens, axes), attn_mask=AttentionMask.causal(),
                                                   loss_weight=hax.named(weights, axes)))
        state = info.state
        jax.block_until_ready(jax.tree_util.tree_leaves(state))
        return float(info.loss)

    C.drive(f"levanter {importlib.metadata.version('marin-levanter')}, jax {jax.__version__}", step)
