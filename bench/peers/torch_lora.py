"""Peer: one step of LoRA on a Llama by PEFT and transformers (adapters on all matrices but the head, AdamW fused, clip by
global norm), from the weights of common.init.

    python torch_lora.py --size nano --rank 16 --threads 2 [--compile]

How it is driven: common.py.
"""
import argparse, os
import common as C

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
ap = argparse.ArgumentParser()
ap.add_argument("--compile", action="store_true")
ap.add_argument("--rank", type=int, default=16)
a, c = C.arguments(ap)
for v in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[v] = str(a.threads)
import peft
import torch
import torch.nn.functional as F
from torch_model import stepper
from transformers import LlamaConfig, LlamaForCausalLM
torch.set_num_threads(a.threads)

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=c["V"], hidden_size=c["H"], intermediate_size=c["ffn"], num_hidden_layers=c["L"],
    num_attention_heads=c["heads"], num_key_value_heads=c["kv"], max_position_embeddings=c["seq"], rms_norm_eps=C.EPS,
    rope_theta=C.THETA, tie_word_embeddings=False, use_cache=False))
PLACES = {"n1": "input_layernorm", "n2": "post_attention_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj",
          "v": "self_attn.v_proj", "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
w = C.init(c)
weights = {"model.embed_tokens.weight": w["emb"], "model.norm.weight": w["norm"], "lm_head.weight": w["head"]}
for i in range(c["L"]):
    weights |= {f"model.layers.{i}.{place}.weight": w[name][i] for name, place in PLACES.items()}
model.load_state_dict({name: torch.from_numpy(x.copy()) for name, x in weights.items()})
model = peft.get_peft_model(model, peft.LoraConfig(r=a.rank, lora_alpha=8, target_modules="all-linear", bias="none"))
trained = [p for p in model.parameters() if p.requires_grad]


def loss_fn(ids, labels):
    logits = model(input_ids=ids).logits
    return F.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.reshape(-1))


fn = torch.compile(loss_fn) if a.compile else loss_fn
C.drive(f"peft {peft.__version__}, torch {torch.__version__}" + (" compile" if a.compile else " eager"), stepper(c, fn, trained))
