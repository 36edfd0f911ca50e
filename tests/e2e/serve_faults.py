"""Parts of serve_test.py: what is wrong around a server: no space left under its log of receipts, a chat template that fails or
does not end, files of the served checkpoint that another program changes, two requests at once on a connection, a checkpoint
of other numerics. Each is one clear error, and others get their answers."""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys

for folder in ("fault", "suite"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import forger
import seed

# A page of a tmpfs.
PAGE = 4096
TEMPLATE = """{% for m in messages %}{% if m.content == 'loop' %}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}
{% elif m.content == 'fail' %}{{ raise_exception('no such turn') }}{% endif %}<{{ m.role }}> {{ m.content }} {% endfor %}<assistant>"""


def _copy(test, name):
    """A copy of the run with its last checkpoint alone, and this."""
    run, old = test.folder / "runs" / name, test.folder / "runs/nano"
    newest = max((old / "checkpoints").glob("step-*"))
    shutil.copytree(old, run, ignore=lambda folder, names: [n for n in names if n.startswith("step-") and n != newest.name])
    return run, run / "checkpoints" / newest.name


def _error(status, text, check):
    """The message of an answer in the form of an error."""
    error = json.loads(text)["error"]
    check(set(error) == {"message", "type", "param", "code"}, f"{status} {text}")
    return error["message"]


def disk(test, server_class, check):
    """No space under the log: a request that asks for a receipt gets 503, others go on; with space again it is as before."""
    place = test.folder / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={16 * PAGE}", "tmpfs", place], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  NOT TRIED: a file system of 64 KiB cannot be mounted ({done.stderr.strip()}), so no disk was full under a log of receipts")
        return
    try:
        server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", "--receipts", str(place / "log"))
        try:
            fields = {"prompt": "the copyright ", "max_tokens": 4, "seed": 3}
            wanted = server.complete(**fields)["choices"][0]["text"]

            def receipt():
                return server.raw("POST", "/v1/completions", json.dumps(fields | {"receipt": True}))[:2]

            check(receipt()[0] == 200, "no receipt while there is space")
            with (place / "filler").open("wb", buffering=0) as filler:
                try:
                    while filler.write(bytes(PAGE)):
                        pass
                except OSError as error:
                    check("No space left" in str(error), str(error))
            last = next(text for status, text in (receipt() for _ in range(100)) if status != 200)  # the last page of the log has some room
            for _ in range(3):
                status, text = receipt()
                check(status == 503 and "No space left on device" in _error(status, text, check) and "receipts.jsonl" in text.decode(), f"{status} {text}")
                check(server.complete(**fields)["choices"][0]["text"] == wanted, "an answer without a receipt depends on the disk")
            check(b"no receipt can be kept now" in last, f"{last}")
            status, text, _ = server.raw("POST", "/v1/completions", json.dumps(fields | {"receipt": True, "stream": True}))
            check(b"no receipt can be kept now" in text and b"[DONE]" not in text, f"a stream whose receipt cannot be kept: {status} {text}")
            check(server.raw("GET", "/health")[0] == 200 and server.raw("GET", "/ready")[0] == 200, "not healthy")
            (place / "filler").unlink()
            kept = [receipt() for _ in range(3)]
            check([status for status, _ in kept] == [200] * 3, f"there is space again: {kept}")
            numbers = [json.loads(text)["choices"][0]["receipt"]["receipt"]["number"] for _, text in kept]
            check(numbers == list(range(numbers[0], numbers[0] + 3)), f"{numbers}")
            server.stop()
        finally:
            server.process.kill()
        lines = (place / "log/receipts.jsonl").read_text().splitlines()
        said = test.program("verify", "--receipts", str(place / "log/receipts.jsonl"))
        check(len(lines) == numbers[-1] + 1 and said.startswith(f"equal: {len(lines)} receipts are one chain"), said)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def templates(test, server_class, check):
    """A template that raises, and one that does not end, which two requests at once ask for."""
    run, _ = _copy(test, "loop")
    (run / "chat_template.jinja").write_text(TEMPLATE)
    server = server_class(test.ostro, test.folder, "runs/loop", "--listen", "127.0.0.1:0")
    try:
        def chat(word):
            return server.raw("POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": word}], "max_tokens": 2, "seed": 1}))[:2]

        alone, plain = chat("work"), {"prompt": "the ", "max_tokens": 3, "seed": 4}
        wanted = server.complete(**plain)["choices"]
        check(alone[0] == 200, f"{alone}")
        status, text = chat("fail")
        check(status == 400 and "the template says: no such turn" in _error(status, text, check), f"{status} {text}")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            loops = [pool.submit(chat, "loop") for _ in range(4)]  # more than read requests at a time
            others = 0
            while not all(one.done() for one in loops):
                check(server.raw("GET", "/health")[0] == 200, "not healthy")
                check(server.complete(**plain)["choices"] == wanted and json.loads(chat("work")[1])["choices"] == json.loads(alone[1])["choices"],
                      "an answer depends on another's template")
                others += 1
            for one in loops:
                status, text = one.result()
                check(status == 400 and "2000000 steps" in _error(status, text, check), f"{status} {text}")
        check(others > 0, "no request came between")
        server.stop()
    finally:
        server.process.kill()


def _change(path, how):
    """Changes a chunk file of f32 numbers: all signs, as a new file or in the old one; cuts it; removes it."""
    content = bytearray(path.read_bytes())
    content[3::4] = content[3::4].translate(bytes(i ^ 0x80 for i in range(256)))
    if how == "replaced":
        (path.parent / "part").write_bytes(content)
        (path.parent / "part").rename(path)
    elif how == "overwritten":
        path.write_bytes(content)
    elif how == "cut":
        os.truncate(path, len(content) // 2)
    else:
        path.unlink()


def _import(test):
    """An import of a Llama in bf16 with one tensor of 4 MiB, which is at first served from the checkpoint's own file."""
    folder, width, inner, vocabulary = test.folder / "bf16", 64, 8192, 512
    shapes = {"model.embed_tokens.weight": (vocabulary, width), "lm_head.weight": (vocabulary, width), "model.norm.weight": (width,)}
    for layer in range(2):
        for name, shape in (("self_attn.q_proj", (width, width)), ("self_attn.k_proj", (width // 2, width)), ("self_attn.v_proj", (width // 2, width)),
                            ("self_attn.o_proj", (width, width)), ("mlp.gate_proj", (inner, width)), ("mlp.up_proj", (inner, width)),
                            ("mlp.down_proj", (width, inner)), ("input_layernorm", (width,)), ("post_attention_layernorm", (width,))):
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    numbers = bytearray(random.Random(1).randbytes(2 * width * inner))
    numbers[1::2] = numbers[1::2].translate(bytes(0x3C | i & 0x81 for i in range(256)))  # bf16 around 0.01
    header, tensors, at = {}, [], 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        tensors.append(numbers[:size] if len(shape) == 2 else b"\x80\x3f" * shape[0])
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": vocabulary, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}))
    test.program("import", "--from", "hf", "bf16", "--out", "imported", "--tokenizer", "runs/nano/tokenizer.json")
    return test.folder / "imported"


def files(test, server_class, check):
    """Files of the served checkpoint are changed: answers keep their bits, or are one error that names a file."""
    fields = [{"prompt": "the copyright", "max_tokens": 5, "seed": i, "logprobs": 1} for i in range(2)]
    every, changed, refused = ("replaced", "overwritten", "cut", "removed"), {}, 0
    (run, newest), imported = _copy(test, "changed"), _import(test)
    for name, model, folder, hows, words in (
            ("mapped", imported, imported, every if seed.full() else ("overwritten", "removed"), ()), ("memory", run, newest, every, ()),
            ("streamed", run, newest, every, ("--stream_weights", "--keep_bytes", "0"))):
        sound = {path: path.read_bytes() for path in folder.rglob("c.*") if "/model/" in str(path)}
        for how in hows:
            server = server_class(test.ostro, test.folder, str(model), "--listen", "127.0.0.1:0", *words)
            try:
                maps = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
                check((str(folder) in maps) == (name == "mapped"), f"{name}: files of the checkpoint are {'' if str(folder) in maps else 'not '}mapped")
                before = [server.complete(**one)["choices"] for one in fields]
                for path in sound:
                    _change(path, how)
                for one, choices in zip(fields, before, strict=True):
                    status, text, _ = server.raw("POST", "/v1/completions", json.dumps(one))
                    if status == 200:
                        check(json.loads(text)["choices"] == choices, f"{name}: a checkpoint that is {how} gives other bits")
                        continue
                    refused += 1
                    said = _error(status, text, check)
                    check(name == "streamed" and status == 500 and re.search(r"/c\.[0-9.]+[: ]", said), f"{name}, {how}: {status} {text}")
                check(server.raw("GET", "/health")[0] == 200, f"{name}, {how}: not healthy")
                changed[name, how] = status
                server.stop()
            finally:
                server.process.kill()
            for path, content in sound.items():
                path.write_bytes(content)
    check(all(status == 200 for (name, _), status in changed.items() if name != "streamed"), f"{changed}")
    check(refused == 8 and "200" not in str([s for (name, _), s in changed.items() if name == "streamed"]), f"what is read anew was not seen to be another: {changed}")
    for path in sound:  # the control: a server that begins with this damage says so
        _change(path, "overwritten")
    done = subprocess.run([test.ostro, "serve", str(run), "--listen", "127.0.0.1:0"], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 1 and done.stderr.count("error:") == 1 and str(newest) in done.stderr, f"what is damaged is served: {done.stderr}")


def pipelined(test, server, check):
    """Two requests in one write: the first is answered, the connection ends, and nobody executes the second."""
    def request(**fields):
        body = json.dumps(fields)
        return f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    def counted():
        text = server.raw("GET", "/metrics")[1].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith('ostro_requests_total{path="/v1/completions"'))

    wanted = server.complete(prompt="the ", max_tokens=4, seed=1)["choices"][0]["text"]
    for second in (request(prompt="a ", max_tokens=4, seed=2), request(prompt="a " * 4000, max_tokens=1), b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 9):
        before, got = counted(), b""
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as both:
            both.sendall(request(prompt="the ", max_tokens=4, seed=1) + second)
            while piece := both.recv(65536):
                got += piece
        head, _, body = got.partition(b"\r\n\r\n")
        check(head.startswith(b"HTTP/1.1 200 ") and b"Connection: close" in head and got.count(b"HTTP/1.1 ") == 1, f"two requests in one write: {got}")
        check(json.loads(body)["choices"][0]["text"] == wanted, f"{body}")
        check(counted() == before + 1, f"{second[:20]}: {counted() - before} requests were executed")


def numerics(test, server_class, check):
    """A checkpoint of another version of the numerics, whose hashes fit: an error at the start that has both versions."""
    run, newest = _copy(test, "other_numerics")
    forger.write_manifest(newest, forger.read_manifest(newest) | {"numerics_version": "2"})
    for words in (("--unchecked",), ("--unchecked", "--stream_weights")):
        for where in (run, newest):
            done = subprocess.run([test.ostro, "serve", str(where), "--listen", "127.0.0.1:0", *words], cwd=test.folder, capture_output=True, text=True,
                                  timeout=120, check=False)
            check(done.returncode != 0 and not done.stdout and done.stderr.count("error:") == 1 and
                  f"{newest}: the checkpoint has numerics version 2; this program computes version 1" in done.stderr, f"{where} {words}: {done.returncode} {done.stderr}")
    forger.rewrite_chain(run / "chain.jsonl", lambda entry: entry | {"numerics": "2"} if "numerics" in entry else entry)
    forger.refit(run)
    done = subprocess.run([test.ostro, "serve", str(run), "--listen", "127.0.0.1:0"], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode != 0 and "numerics version 2" in done.stderr, f"a run of other numerics: {done.stderr}")
    forger.write_manifest(newest, forger.read_manifest(newest) | {"numerics_version": "1"})
    server = server_class(test.ostro, test.folder, str(newest), "--unchecked", "--listen", "127.0.0.1:0")  # the control: nothing else was wrong
    try:
        server.stop()
    finally:
        server.process.kill()
