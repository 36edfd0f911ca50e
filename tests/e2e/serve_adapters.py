"""A part of serve_test.py: a model with adapters. What an adapter's model answers has the bits of `ostro sample` and
`ostro score` with the run that trained it, beside the others; receipts name the adapter."""
import concurrent.futures
import json
import shutil
import subprocess


def serial(values):
    total = 0.0
    for value in values:
        total += value
    return total


def adapters(test, server_class, check):
    for name, rank, seed in (("tuned", 4, 1), ("other", 3, 2)):
        test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", name, "--trainer.initialize_from", "runs/nano", "--trainer.num_train_steps", "4",
                     "--trainer.seed", str(seed), "--adapter.type", "lora", "--adapter.rank", str(rank), "--optimizer.learning_rate", "0.02")
    test.program("export", "--checkpoint", "runs/tuned", "--to", "peft", "--base", "nano", "--out", "peft")
    runs = {"nano": "runs/nano", "nano:a": "runs/tuned", "nano:b": "runs/other", "nano:c": "runs/tuned"}
    where = ("--adapter", "a=runs/tuned", "--adapter", "b=runs/other", "--adapter", "c=peft")
    server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--cache_pages", "7", *where)
    try:
        served = {m["id"]: m for m in json.loads(server.raw("GET", "/v1/models")[1])["data"]}
        check(list(served) == list(runs) and "adapter" not in served["nano"], f"{served}")
        hashes = [served[name]["adapter"] for name in runs if name != "nano"]
        check(hashes[0] == hashes[2] != hashes[1] and len({m["state"] for m in served.values()}) == 1, f"{served}")
        check(json.loads(server.raw("GET", "/v1/models/nano:b")[1]) == served["nano:b"], "one model")
        pages = [line for line in server.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith('ostro_cache_pages{state="all"}')]
        check(pages and int(pages[0].split()[-1]) == 2 * 7, f"the model with a and c in one runner, and b, which has another rank: {pages}")
        prompt = "the copyright "

        def answer(name, **more):
            return server.complete(model=name, prompt=prompt, max_tokens=12, temperature=0.8, seed=5, return_token_ids=True, logprobs=0, **more)

        alone = {}
        for name, run in runs.items():
            line = json.loads(test.program("sample", "--checkpoint", run, "--prompt", prompt, "--max_new_tokens", "12", "--temperature", "0.8", "--seed", "5", "--json"))
            got = answer(name)
            check(got["model"] == name and got["choices"][0]["token_ids"] == line["ids"], f"{name}: {got}, sample made {line}")
            alone[name] = got["choices"]
            rated = server.complete(model=name, prompt="<|endoftext|>" + prompt, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
            score = json.loads(test.program("score", "--checkpoint", run, given=json.dumps({"text": prompt}) + "\n"))["log_prob"]
            check(serial(rated[1:]) == score, f"{name}: {serial(rated[1:])}, score says {score}")
        check(alone["nano:a"] == alone["nano:c"], "the adapter of a run and its export differ")
        check(len({json.dumps(alone[name]) for name in runs}) == 3, "an adapter changes nothing")  # the control
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            together = list(pool.map(lambda name: (name, answer(name)["choices"]), list(runs) * 6))
        check(all(choices == alone[name] for name, choices in together), "an answer depends on requests for other models")
        vectors = {name: server.post("/v1/embeddings", {"model": name, "input": prompt})["data"] for name in runs}
        check(vectors["nano:a"] == vectors["nano:c"] != vectors["nano"], "embeddings of adapters")
        error = server.post("/v1/completions", {"model": "nano:d", "prompt": "a"}, status=404)["error"]
        check('"nano", "nano:a", "nano:b", "nano:c"' in error["message"] and error["code"] == "model_not_found", f"{error}")
        for name, words, code, says in (("nano:b", ("--adapter", "x=runs/other"), 0, "equal: 12"), ("nano:c", ("--adapter", "x=peft"), 0, "equal: 12"), ("nano:a", ("--adapter", "x=runs/tuned"), 0, "equal: 12"),
                                        ("nano", ("--adapter", "x=peft"), 0, "equal: 12"), ("nano:b", ("--adapter", "x=peft"), 1, "the adapter is"),
                                        ("nano:b", (), 1, f"the adapter is {hashes[1]} in the receipt, none here")):
            choice = answer(name, receipt=True)["choices"][0] if name == "nano" else server.complete(
                model=name, prompt=prompt, max_tokens=12, nonce="a lottery", receipt=True)["choices"][0]
            (test.folder / "r.json").write_text(json.dumps(choice["receipt"]))
            text = test.program("verify", "--receipt", "r.json", "--checkpoint", "runs/nano", *words, code=code)
            check(says in text, f"{name} {words}: {text}")
        server.stop()
    finally:
        server.process.kill()
    shutil.copytree(test.folder / "peft", test.folder / "broken")
    (test.folder / "broken/adapter_model.safetensors").write_bytes(b"x" * 40)
    for words, says in ((("a=runs/nano",), "this model has no adapter"), (("a=runs/none",), "runs/none"), (("runs/tuned",), "write NAME=DIR"), (("=runs/tuned",), "write NAME=DIR"),
                        (("a b=runs/tuned",), "write NAME=DIR"), (("a=runs/tuned", "a=peft"), "the name a is that of runs/tuned already"), (("a=broken",), "adapter_model.safetensors"),
                        (("a=runs/tuned", "--follow"), "leave one of them out"), (("a=runs/tuned", "--mp", "f16"), "use f32, bfloat16, int8 or bf16_tc16")):
        done = subprocess.run([test.ostro, "serve", "runs/nano", "--listen", "127.0.0.1:0", "--adapter", *words], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode in (1, 2) and says in done.stderr, f"serve --adapter {words}: {done.returncode} {done.stderr}")
    for base, says in (("runs/nano/checkpoints/step-00000010", "of another base"), ("runs/tuned", "has an adapter itself")):
        for path in ("runs/other", "peft"):
            done = subprocess.run([test.ostro, "serve", base, "--listen", "127.0.0.1:0", "--adapter", f"a={path}"], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
            check(done.returncode in (1, 2) and (says in done.stderr or "adapter for another base" in done.stderr), f"{base}, {path}: {done.stderr}")
