"""JSON lines to token ids on disk by `datasets` and `tokenizers`; prints one JSON line. Run by text_to_store.py.

Usage: datasets_map.py TEXTS.jsonl TOKENIZER.json CACHE_FOLDER processes|threads CORES
`processes` maps with so many of them, each encoding with one thread; `threads` with one process and tokenizers' own threads.
"""
import hashlib, json, os, sys, time

texts, tokenizer_path, cache, how, cores = sys.argv[1:]
os.environ.update(TOKENIZERS_PARALLELISM="true" if how == "threads" else "false", RAYON_NUM_THREADS=cores, HF_HUB_OFFLINE="1")

import datasets, numpy as np, tokenizers  # after the environment that they read

datasets.disable_progress_bars()
tokenizer = tokenizers.Tokenizer.from_file(tokenizer_path)
eos = tokenizer.token_to_id("<|endoftext|>")


def encode(batch):
    return {"input_ids": [e.ids + [eos] for e in tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)]}


begin = time.perf_counter()
rows = datasets.load_dataset("json", data_files=texts, split="train", cache_dir=cache)
rows = rows.map(encode, batched=True, num_proc=int(cores) if how == "processes" else None, remove_columns=rows.column_names)
seconds = time.perf_counter() - begin
digest, tokens = hashlib.sha256(), 0
for i in range(0, len(rows), 1000):
    ids = np.concatenate(rows[i:i + 1000]["input_ids"]).astype("<i8")
    digest.update(ids.tobytes())
    tokens += len(ids)
print(json.dumps({"seconds": seconds, "rows": len(rows), "tokens": tokens, "sha256": digest.hexdigest()}))
