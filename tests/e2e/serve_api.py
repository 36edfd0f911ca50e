"""Parts of serve_test.py: the paths beside completions and chats, and the check of a whole log of receipts, a run
that goes on."""
import json
import re
import shutil
import time


def paths(test, server, check):
    """Counters, the tokenizer, the template, one model, and every method."""
    info = server.raw("GET", "/tokenizer_info")
    check(info[0] == 200 and json.loads(info[1])["eos_token"] == "<|endoftext|>" and "<assistant>" in json.loads(info[1])["chat_template"], f"{info}")
    messages = [{"role": "user", "content": "the work"}]
    text = server.post("/apply_template", {"messages": messages})["prompt"]
    check(text.rstrip("\n") == "<user> the work <assistant>", f"{text!r}")
    developer = server.post("/apply_template", {"messages": [{"role": "developer", "content": "be"}, *messages]})["prompt"]
    check(developer.rstrip("\n") == "<system> be <user> the work <assistant>", f"{developer!r}")
    for path in ("/apply_template", "/tokenize", "/v1/chat/completions"):
        error = server.post(path, {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}, status=400)["error"]
        check('has "enable_thinking", which the model\'s chat template does not read' in error["message"] and error["param"] == "chat_template_kwargs", f"{path}: {error}")
    ids = server.post("/tokenize", {"messages": messages})["tokens"]
    check(ids == server.post("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"], "the template's text has other ids")
    one, every = server.raw("GET", "/v1/models/nano"), server.raw("GET", "/v1/models")
    check(json.loads(every[1])["data"] == [json.loads(one[1])], f"{one} {every}")
    check(server.raw("GET", "/v1/models/other")[0] == 404, "a model that is not there")
    check(server.raw("OPTIONS", "/v1/completions")[0] == 204 and server.raw("HEAD", "/health")[:2] == (200, b""), "OPTIONS or HEAD")
    for method in ("PUT", "DELETE", "PATCH"):
        status, body, headers = server.raw(method, "/v1/completions", "{}")
        check(status == 405 and "POST" in headers["Allow"] and "error" in json.loads(body), f"{method}: {status} {body}")

    def counters():
        status, body, headers = server.raw("GET", "/metrics")
        check(status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), f"/metrics: {status} {headers}")
        lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
        check(all(re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line) for line in lines), f"{lines}")
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}

    before = counters()
    made = server.complete(prompt=[1, 2, 3], max_tokens=5, n=2)["usage"]["completion_tokens"]
    after = counters()

    def more(name):
        return after[name] - before.get(name, 0)

    check(more("ostro_generated_tokens_total") == made and more("ostro_prompt_tokens_total") == 3, f"{after}")
    check(more('ostro_requests_total{path="/v1/completions",status="200"}') == 1 and more("ostro_request_seconds_count") == 1, f"{after}")
    check(more("ostro_time_to_first_token_seconds_count") == 1 and after["ostro_requests_running"] == 0, f"{after}")


def responses(server, check):
    """/v1/responses says what a chat says, whole and as events."""
    fields = {"max_output_tokens": 20, "seed": 5, "temperature": 0.9}
    chat = server.post("/v1/chat/completions", {"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "the work"}],
                                                "max_tokens": 20, "seed": 5, "temperature": 0.9})
    whole = server.post("/v1/responses", fields | {"input": "the work", "instructions": "be", "receipt": True})
    text = whole["output"][0]["content"][0]["text"]
    check(text == chat["choices"][0]["message"]["content"], f"{text!r}, a chat says {chat}")
    check(whole["usage"]["output_tokens"] == chat["usage"]["completion_tokens"] and whole["receipt"]["receipt"]["seed"] == "5", f"{whole}")
    items = [{"role": "developer", "content": "be"}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "the work"}]}]
    status, body, headers = server.raw("POST", "/v1/responses", json.dumps(fields | {"input": items, "stream": True}))
    check(status == 200 and headers["Content-Type"].startswith("text/event-stream"), f"{status} {headers}")
    events = [json.loads(event.split("\ndata: ", 1)[1]) for event in body.decode().split("\n\n") if event]
    check("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta") == text, f"{events}")
    check([e["sequence_number"] for e in events] == list(range(len(events))) and events[-1]["response"]["usage"] == whole["usage"], f"{events[-1]}")
    for more, says in (({"store": True}, "keeps no responses"), ({"previous_response_id": "a"}, "keeps none"), ({"input": []}, "at least one item")):
        error = server.post("/v1/responses", {"input": "a"} | more, status=400)["error"]
        check(says in error["message"] and error["param"] in more, f"{error}")


def log(test, documents, check):
    """The log of a server: its chain, signatures, and receipts that a challenge draws."""
    path, folder = test.folder / "log/receipts.jsonl", test.folder / "openings"
    folder.mkdir()
    lines = path.read_text().splitlines(keepends=True)
    (folder / "other.txt").write_text("no receipt")
    opened = {}
    for i, document in enumerate(documents):
        (folder / f"{i}.json").write_text(json.dumps(document))
        opened[document["receipt"]["number"]] = f"{i}.json"
    text = test.program("verify", "--receipts", "log/receipts.jsonl", "--key", "pub.pem")
    check(text.startswith(f"equal: {len(lines)} receipts are one chain; 0 were drawn"), text)
    everything = ("--sample", str(len(lines)), "--challenge", "lottery", "--checkpoint", "runs/nano")
    text = test.program("verify", "--receipts", "log/receipts.jsonl", *everything, "--openings", "openings", code=0 if len(opened) == len(lines) else 3)
    check(text.count("its opening is not at hand") == len(lines) - len(opened), text)
    # As many as there are openings for: a log of these alone is not a chain, so the draws are looked through.
    good = None
    for i in range(200):
        words = ("--sample", "1", "--challenge", f"lottery {i}")
        result = json.loads(test.program("verify", "--receipts", "log/receipts.jsonl", *words, "--json", code=3))
        if result["drawn"][0] in opened:
            good = (*words, "--checkpoint", "runs/nano", "--json")
            break
    check(good is not None, "no draw has an opening")
    drawn = result["drawn"]
    # Without the checkpoint: what was drawn, and that it was not chosen again.
    text = test.program("verify", "--receipts", "log/receipts.jsonl", *words, "--openings", "openings", code=3)
    check(text.startswith(f"incomplete: 1 of {len(lines)} receipts were drawn, and their answers were not chosen again; --checkpoint K")
          and f"drawn: {drawn[0]}\n" in text and "shown" not in text, text)
    result = json.loads(test.program("verify", "--receipts", "log/receipts.jsonl", *good, "--openings", "openings"))
    check(result["verdict"] == "equal" and result["drawn"] == drawn and result["replayed"] == 1 and result["output_tokens"] > 0, f"{result}")
    wrong = "runs/nano/checkpoints/step-00000010"
    text = test.program("verify", "--receipts", "log/receipts.jsonl", *good[:4], "--checkpoint", wrong, "--openings", "openings", code=4)
    check("cannot check: receipt" in text and "the checkpoint at hand is" in text, text)

    def verdict(content, code, says, *words):
        (test.folder / "bad.jsonl").write_text(content)
        text = test.program("verify", "--receipts", "bad.jsonl", *words, code=code)
        check(says in text.split("\n")[0], f"{says} is not in {text}")

    verdict("".join(lines[:1] + lines[2:]), 1, "does not follow the one before it")
    verdict("".join(lines[1:]), 1, "line 1 does not follow")
    verdict("".join(lines)[:-20], 3, "has no end")
    verdict("", 3, "has no receipt")
    verdict(lines[0] + "{}\n", 1, "bad.jsonl: line 2")
    changed = json.loads(lines[1])
    changed["receipt"]["seed"] = "99"
    verdict(lines[0] + json.dumps(changed) + "\n" + "".join(lines[2:]), 1, "the signature is not one of this receipt")
    verdict("".join(lines), 1, "(--key)", "--key", "other.pem")
    # An opening that is not what the receipt's hashes say.
    number = result["drawn"][0]
    forged = json.loads((folder / opened[number]).read_text())
    forged["opening"]["output_ids"][0] ^= 1
    (folder / opened[number]).write_text(json.dumps(forged))
    text = test.program("verify", "--receipts", "log/receipts.jsonl", *good[:-1], "--openings", "openings", code=1)
    check(text.startswith(f"differs: receipt {number}: the output of the opening"), text)
    text = test.program("verify", "--receipts", "log/receipts.jsonl", *good[:4], "--openings", "openings", code=1)
    check(text.startswith(f"differs: receipt {number}: the output of the opening") and "not chosen again" in text, text)
    for words, says in ((("--openings", "openings"), "--sample N"), (("--checkpoint", "runs/nano"), "--sample N"),
                        (("--sample", "9999", "--challenge", "a", "--checkpoint", "runs/nano"), "9999"), (("--receipt", "r.json"), "stand in place"),
                        (("--leaf", "1:0"), "--leaf"), (("--sample", "1", "--checkpoint", "runs/nano"), "--challenge")):
        text = test.program("verify", "--receipts", "log/receipts.jsonl", *words, code=2)
        check(says in text, f"{words}: {text}")
    shutil.rmtree(folder)


def follow(test, server_class, check):
    """A run whose checkpoints come one after the other: each is served, and its receipts hold."""
    run, later = test.folder / "runs/grow", test.folder / "later"
    shutil.copytree(test.folder / "runs/nano", run)
    steps = sorted(path.name for path in (run / "checkpoints").iterdir() if path.name.startswith("step-"))
    check(len(steps) >= 3, f"{steps}")
    later.mkdir()
    for name in steps[1:]:
        (run / "checkpoints" / name).rename(later / name)
    server = server_class(test.ostro, test.folder, "runs/grow", "--follow", "--unchecked", "--listen", "127.0.0.1:0")
    try:
        states = []

        def state():
            return json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["state"]

        for name in steps[:3]:
            if name in steps[1:]:
                (later / name).rename(run / "checkpoints" / name)
            for _ in range(3000):
                if state() not in states:
                    break
                time.sleep(0.02)
            check(state() not in states, f"{name} is not served")
            states.append(state())
            answer = server.complete(prompt="the copyright ", max_tokens=9, seed=2, receipt=True)
            receipt = answer["choices"][0]["receipt"]
            check(receipt["receipt"]["state"] == states[-1] and answer["system_fingerprint"].endswith(states[-1]), f"{name}: {answer}")
            (test.folder / "r.json").write_text(json.dumps(receipt))
            text = test.program("verify", "--receipt", "r.json", "--checkpoint", f"runs/nano/checkpoints/{name}")
            check(text.startswith("equal: "), f"{name}: {text}")
        server.stop()
    finally:
        server.process.kill()
    text = test.program("serve", "runs/nano/checkpoints/" + steps[-1], "--follow", "--listen", "127.0.0.1:0", code=2)
    check("--follow:" in text and "no run that has checkpoints" in text, text)
