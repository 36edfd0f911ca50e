"""A part of serve_test.py: a server whose parameters stay in the checkpoint answers as one that has them in memory."""
import concurrent.futures
import json
import shutil
import subprocess


def streamed(test, server_class, check):
    asked = [{"prompt": "the copyright " + "of the " * i, "max_tokens": 9, "temperature": 0.8, "seed": i, "logprobs": 2, "receipt": i == 0} for i in range(6)]
    found = {}
    for name, words in (("memory", ()), ("disk", ("--stream_weights", "--keep_bytes", "0")), ("kept", ("--stream_weights",))):
        server = server_class(test.ostro, test.folder, "runs/nano", "--listen", "127.0.0.1:0", *words)
        try:
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                answers = list(pool.map(lambda fields: server.complete(**fields)["choices"][0], asked))
            (test.folder / "r.json").write_text(json.dumps(answers[0].pop("receipt")))
            text = test.program("verify", "--receipt", "r.json", "--checkpoint", "runs/nano")
            check(text.startswith("equal: 9 tokens"), f"{name}: {text}")
            vectors = [d["embedding"] for d in server.post("/v1/embeddings", {"input": ["the", "a copy"], "pooling": "mean"})["data"]]
            found[name] = [answers, vectors]
            server.stop()
        finally:
            server.process.kill()
    check(found["memory"] == found["disk"] == found["kept"], "parameters that are read from disk give other answers")
    check(len({json.dumps(a) for a in found["disk"][0]}) == len(asked), "all answers are alike")  # the control
    shutil.copytree(test.folder / "runs/nano", test.folder / "runs/damaged")
    newest = sorted((test.folder / "runs/damaged/checkpoints").glob("step-*"))[-1]
    for path in newest.rglob("*"):
        if path.is_file() and path.suffix != ".json":
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    for run, words, says in (("nano", ("--keep_bytes", "5"), "together with --stream_weights"), ("nano", ("--stream_weights", "--keep_bytes", "-1"), "use 0 or more"),
                             ("nano", ("--stream_weights", "--adapter", "a=b"), "leave one of them out"), ("damaged", ("--stream_weights",), newest.name)):
        done = subprocess.run([test.ostro, "serve", f"runs/{run}", "--listen", "127.0.0.1:0", *words], cwd=test.folder, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode in (1, 2) and says in done.stderr, f"serve {run} {words}: {done.returncode} {done.stderr}")
