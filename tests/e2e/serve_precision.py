"""A part of serve_test.py: a run in each precision, a mixture in integers, and runs in others by --mp. Log-probabilities over HTTP are, bit for bit, those of
training's program with this trainer.mp; `score` and `sample` compute the same; a receipt names the precision, and a forged
one is found. Needs the adapters of serve_adapters.py."""
import json
import shutil
import struct
import subprocess

from serve_adapters import serial


def tensors(path):
    """The arrays of a safetensors file with f32 and i32, as lists, flat."""
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, one in json.loads(data[8:end]).items():
        if name != "__metadata__":
            begin, stop = (end + at for at in one["data_offsets"])
            out[name] = struct.unpack(f"<{(stop - begin) // 4}{'f' if one['dtype'] == 'F32' else 'i'}", data[begin:stop])
    return out


def precisions(test, server_class, check):
    test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", "cut", "--trainer.num_train_steps", "6", "--trainer.mp", "p=f32,c=int8", "--model.tie_word_embeddings", "true")
    mixture = ("--model.type", "mixtral", "--model.num_experts", "4")
    test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", "mixed", "--trainer.num_train_steps", "2", "--trainer.mp", "p=f32,c=int8", *mixture)
    integers = "c=int8,a=int8"
    test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", "sliced", "--trainer.num_train_steps", "3", "--trainer.mp", f"p=f32,{integers}")
    options = {"nano": (), "cut": ("--model.tie_word_embeddings", "true"), "mixed": mixture, "sliced": ()}
    own = {"nano": "bf16", "cut": "int8", "mixed": "int8", "sliced": integers}

    def trained(run, mp):
        """Tokens and log-probabilities of held-out text, by the program whose loss training has."""
        test.program("eval", "--config", "configs/nano_test.yaml", *options[run], "--checkpoint", f"runs/{run}", "--trainer.mp", mp, "--per_token", "tokens.safetensors")
        return tensors(test.folder / "tokens.safetensors")

    of_training = {(run, mp): trained(run, mp) for run in ("nano", "cut") for mp in ("f32", "bf16", "int8")} | {("mixed", "int8"): trained("mixed", "int8")}
    of_training["nano", "bf16_tc16"] = trained("nano", "bf16_tc16")
    check(of_training["nano", "bf16_tc16"]["log_prob"] != of_training["nano", "bf16"]["log_prob"], "the rule of tensor cores computes as N7")
    of_training |= {("sliced", mp): trained("sliced", mp) for mp in (integers, "int8")}
    check(of_training["sliced", integers]["log_prob"] != of_training["sliced", "int8"]["log_prob"], "attention on integers computes as that of floats")
    # The control: no two precisions have the same losses.
    check(len({of_training["cut", mp]["log_prob"] for mp in ("f32", "bf16", "int8")}) == 3, "precisions compute the same")
    prompt, documents = "the copyright ", {}
    for run, mp, words in (("cut", "int8", ()), ("cut", "int8", ("--stream_weights",)), ("cut", "bf16", ("--mp", "p=f32,c=bfloat16")), ("nano", "int8", ("--mp", "int8")), ("nano", "f32", ("--mp", "f32")), ("nano", "bf16_tc16", ("--mp", "p=f32,c=bf16_tc16")), ("mixed", "int8", ()), ("sliced", integers, ())):
        name, used = f"{run} {words}", [w for w in words if w != "--stream_weights"]
        server = server_class(test.ostro, test.folder, f"runs/{run}", "--listen", "127.0.0.1:0", *words)
        try:
            check(json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["mp"] == mp, f"{name}: /v1/models does not say {mp}")
            there = of_training[run, mp]
            ids, expected = list(there["tokens"][:64]), list(there["log_prob"][:63])
            check(ids[1:] == list(there["targets"][:63]), "the rows are no text")
            for length in (64, 9):
                got = server.complete(prompt=ids[:length], max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
                check(got[1:] == expected[:length - 1], f"{name}: {got[1:4]} over HTTP, {expected[:3]} in training")
            rated = server.complete(prompt="<|endoftext|>" + prompt, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
            score = json.loads(test.program("score", "--checkpoint", f"runs/{run}", *used, given=json.dumps({"text": prompt}) + "\n"))
            check(serial(rated[1:]) == score["log_prob"] and score.get("mp") == (None if mp == own[run] else mp), f"{name}: {serial(rated[1:])}, {score}")
            made = server.complete(prompt=prompt, max_tokens=12, temperature=0.9, seed=7, return_token_ids=True, receipt=True)["choices"][0]
            line = json.loads(test.program("sample", "--checkpoint", f"runs/{run}", "--prompt", prompt, "--max_new_tokens", "12", "--temperature", "0.9", "--seed", "7", "--json", *words))
            check(made["token_ids"] == line["ids"] and line.get("mp") == score.get("mp"), f"{name}: {made}, sample made {line}")
            documents[run, mp] = made["receipt"]
            check(made["receipt"]["receipt"]["dtype"] == (mp if used else ""), f"{name}: {made['receipt']}")
            server.stop()
        finally:
            server.process.kill()

    def verdict(document, run, code, says, **settings):
        (test.folder / "r.json").write_text(json.dumps(document))
        text = test.program("verify", "--receipt", "r.json", "--checkpoint", f"runs/{run}", code=code, **settings)
        check(says in text.split("\n")[0], f"{says} is not in {text}")

    for (run, mp), document in documents.items():
        verdict(document, run, 0, "equal: 12 tokens", OSTRO_ISA="generic")
        if run in ("mixed", "sliced") or mp == "bf16_tc16":
            continue
        for other in {"f32", "bf16", "int8"} - {mp}:
            forged = json.loads(json.dumps(document))
            forged["receipt"]["dtype"] = other
            verdict(forged, run, 1, f"differs: the precision is {other} in the receipt, and its forward program is that of {mp}")
            if other != own[run]:  # with the program of the other precision, too, its numbers differ
                forged["receipt"]["forward"] = documents.get((run, other), document)["receipt"]["forward"]
                verdict(forged, run, 1, "differs")
    verdict(documents["cut", "int8"], "cut", 0, "equal: 12 tokens", OSTRO_EXECUTOR="interpreter")
    verdict(documents["sliced", integers], "sliced", 0, "equal: 12 tokens", OSTRO_EXECUTOR="interpreter")
    forged = json.loads(json.dumps(documents["sliced", integers]))
    forged["receipt"]["dtype"] = "int8"
    verdict(forged, "sliced", 1, f"differs: the precision is int8 in the receipt, and its forward program is that of {integers}")
    contexts(test, server_class, check, verdict, documents["nano", "f32"])
    adapters(test, server_class, check, prompt)
    released(test, check)
    for command in (("serve", "runs/nano", "--listen", "127.0.0.1:0"), ("score", "--checkpoint", "runs/nano"), ("sample", "--checkpoint", "runs/nano", "--prompt", "a", "--max_new_tokens", "1")):
        for mp, says in (("f16", 'unknown type "f16"; use f32, bfloat16, int8 or bf16_tc16'), ("p=bf16", "parameters are always f32")):
            done = subprocess.run([test.ostro, *command, "--mp", mp], cwd=test.folder, input="", capture_output=True, text=True, timeout=120, check=False)
            check(done.returncode == 2 and f"--mp {mp}: " in done.stderr and says in done.stderr, f"{command} --mp {mp}: {done.returncode} {done.stderr}")


def contexts(test, server_class, check, verdict, of_own):
    """With --seq_len a server has another context, which its receipts name; `verify` opens the model in it. `of_own`: a receipt of the model's own, 64."""
    server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--seq_len", "200")
    try:
        check(json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["max_model_len"] == 200, "/v1/models does not say the context")
        pages = [line for line in server.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith('ostro_cache_pages{state="all"}')]
        check(pages and int(pages[0].split()[-1]) == 32, f"16 answers of two pages each: {pages}")
        made = server.complete(prompt="the copyright ", max_tokens=100, temperature=0.9, seed=7, return_token_ids=True, receipt=True)["choices"][0]
        command = [test.ostro, "sample", "--checkpoint", "runs/nano", "--prompt", "the copyright ", "--max_new_tokens", "100", "--temperature", "0.9", "--seed", "7", "--json"]
        done, own = (subprocess.run([*command, "--seq_len", n], cwd=test.folder, capture_output=True, text=True, timeout=300, check=True) for n in ("200", "64"))
        warning = "the model's own context is 64 (model.seq_len)"
        check(f"--seq_len 200: {warning}" in done.stderr and warning not in own.stderr, f"the warning of a longer context: {done.stderr} {own.stderr}")
        line = json.loads(done.stdout)
        check(made["token_ids"] == line["ids"], f"{made}, sample made {line}")
        error = server.post("/v1/completions", {"prompt": "the copyright " * 200}, status=400)["error"]["message"]
        check("context is 200" in error, error)
        server.stop()
    finally:
        server.process.kill()
    document = made["receipt"]
    check(document["receipt"]["context"] == 200 and of_own["receipt"]["context"] == 64, f"{document['receipt']}")
    verdict(document, "nano", 0, f"equal: {len(made['token_ids'])} tokens")

    def edited(document, context):
        return document | {"receipt": document["receipt"] | {"context": context}}

    verdict(edited(of_own, 200), "nano", 1, "differs: the context is 200 in the receipt, and its forward program is that of 64")
    verdict(edited(document, 201), "nano", 4, "cannot check: the forward program is")
    for wrong in (0, 1, 2**31 + 1, 2**63 - 1):  # a receipt can name 2 to 2^31
        done = subprocess.run([test.ostro, "serve", "runs/nano", "--listen", "127.0.0.1:0", "--seq_len", str(wrong)], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 2 and f"--seq_len {wrong}: model.seq_len has to be 2 to 2147483648" in done.stderr, f"--seq_len {wrong}: {done.returncode} {done.stderr}")


def released(test, check):
    """Grok-1's rounding is that of bf16: another precision is refused before any parameter is read."""
    test.program("train", "--config", "configs/nano_test.yaml", "--trainer.id", "released", "--trainer.num_train_steps", "3", "--model.type", "grok", "--model.num_experts", "4", "--model.rounding", "released")
    score = ("score", "--checkpoint", "runs/released")
    test.program(*score, given='{"text": "the copyright"}\n')
    for data in (test.folder / "runs/released/checkpoints").glob("*/*"):
        if data.name != "manifest.json":
            shutil.rmtree(data) if data.is_dir() else data.unlink()
    for command in (score, ("serve", "runs/released", "--listen", "127.0.0.1:0"), ("serve", "runs/released", "--stream_weights", "--listen", "127.0.0.1:0")):
        # The control: without --mp the parameters are missed.
        for words, code, says in ((("--mp", "int8"), 2, "--mp int8: model.rounding is released"), (("--mp", "f32"), 2, "--mp f32: model.rounding is released"), ((), None, "checkpoints/")):
            done = subprocess.run([test.ostro, *command, *words], cwd=test.folder, input="", capture_output=True, text=True, timeout=120, check=False)
            check(done.returncode in ((code,) if code else (1, 2)) and says in done.stderr, f"{command} {words}: {done.returncode} {done.stderr}")


def adapters(test, server_class, check, prompt):
    """In int8 too, a model with an adapter answers as `ostro sample` and `score` with the run that trained it."""
    receipts = {}
    server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--mp", "int8", "--cache_pages", "7", "--adapter", "a=runs/tuned", "--adapter", "c=peft")
    try:
        pages = [line for line in server.raw("GET", "/metrics")[1].decode().splitlines() if line.startswith('ostro_cache_pages{state="all"}')]
        check(pages and int(pages[0].split()[-1]) == 2 * 7, f"a and c in one runner, and the model, whose integers are of f32: {pages}")
        for name, run in (("nano", "runs/nano"), ("nano:a", "runs/tuned"), ("nano:c", "runs/tuned")):
            line = json.loads(test.program("sample", "--checkpoint", run, "--prompt", prompt, "--max_new_tokens", "12", "--temperature", "0.8", "--seed", "5", "--json", "--mp", "int8"))
            made = server.complete(model=name, prompt=prompt, max_tokens=12, temperature=0.8, seed=5, return_token_ids=True, receipt=True)["choices"][0]
            check(made["token_ids"] == line["ids"], f"{name}: {made}, sample made {line}")
            receipts[name] = made["receipt"]
            rated = server.complete(model=name, prompt="<|endoftext|>" + prompt, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
            score = json.loads(test.program("score", "--checkpoint", run, "--mp", "int8", given=json.dumps({"text": prompt}) + "\n"))["log_prob"]
            check(serial(rated[1:]) == score, f"{name}: {serial(rated[1:])}, score says {score}")
        server.stop()
    finally:
        server.process.kill()
    for name, adapter in (("nano:a", "a=runs/tuned"), ("nano:c", "c=peft")):  # the program of int8 is found without weights
        for dtype, code, says in (("int8", 0, "equal: 12 tokens"), ("bf16", 1, "differs: the precision is bf16 in the receipt, and its forward program is that of int8")):
            document = receipts[name] | {"receipt": receipts[name]["receipt"] | {"dtype": dtype}}
            (test.folder / "r.json").write_text(json.dumps(document))
            text = test.program("verify", "--receipt", "r.json", "--checkpoint", "runs/nano", "--adapter", adapter, code=code)
            check(text.startswith(says), f"{name} in {dtype}: {text}")
