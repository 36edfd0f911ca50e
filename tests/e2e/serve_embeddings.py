"""A part of serve_test.py: embeddings are functions of checkpoint, text and pooling, on every engine and beside any
neighbours."""
import base64
import concurrent.futures
import json
import struct


def embeddings(test, server, server_class, check):
    text = (test.folder / "LICENSE").read_text()
    inputs = [text[31 * i:31 * i + 6 * i + 4] for i in range(16)]

    def vector(server, pooling, one):
        return server.post("/v1/embeddings", {"input": one, "pooling": pooling})["data"][0]["embedding"]

    found = {}
    for pooling in ("last", "mean"):
        found[pooling] = [vector(server, pooling, one) for one in inputs]
        check(len({tuple(v) for v in found[pooling]}) == len(inputs), "two texts have one embedding")
        every = server.post("/v1/embeddings", {"input": inputs, "pooling": pooling, "encoding_format": "base64", "dimensions": 32})
        raw = [base64.b64decode(d["embedding"]) for d in every["data"]]
        check(raw == [struct.pack("<32f", *v) for v in found[pooling]], "Base64 has other bits")
        check([list(struct.unpack("<32f", r)) for r in raw] == found[pooling], "a number does not read back exactly")
        ids = [server.post("/tokenize", {"prompt": one})["tokens"] for one in inputs]
        by_ids = server.post("/v1/embeddings", {"input": ids, "pooling": pooling})
        check([d["embedding"] for d in by_ids["data"]] == found[pooling], "ids give other embeddings than their text")
        check(by_ids["usage"]["prompt_tokens"] == every["usage"]["total_tokens"] == sum(map(len, ids)), f"{by_ids['usage']}")
        # Beside answers, all at once.
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = [pool.submit(server.complete, prompt=one, max_tokens=8) for one in inputs[::2]]
            check(list(pool.map(lambda one: vector(server, pooling, one), inputs)) == found[pooling], "an embedding depends on its neighbours")
            for answer in answers:
                answer.result()
    check(found["last"] != found["mean"] and server.post("/v1/embeddings", {"input": inputs[0]})["data"][0]["embedding"] == found["last"][0], "last is not the default")
    for says, status, fields in (("embeddings of this model have 32", 400, {"input": "a", "dimensions": 16}), ("is missing", 400, {}),
                                 ("the nearest is", 400, {"input": "a", "encodingformat": "float"}), ("65 tokens at place 1", 400, {"input": [[1], [1] * 65]}),
                                 ("is not served here", 404, {"input": "a", "model": "x"}), ("use last or mean", 400, {"input": "a", "pooling": "cls"})):
        error = server.post("/v1/embeddings", fields, status=status)["error"]
        check(says in error["message"], f"{fields}: {error}")
    # The interpreter, which is the specification; and another checkpoint, as the control.
    for checkpoint, equal in (("runs/nano", True), ("runs/nano/checkpoints/step-00000010", False)):
        other = server_class(test.ostro, test.folder, checkpoint, "--listen", "127.0.0.1:0", settings={"OSTRO_EXECUTOR": "interpreter"})
        try:
            for pooling in found:
                got = [vector(other, pooling, one) for one in inputs[:4]]
                check((got == found[pooling][:4]) == equal, f"{checkpoint}, {pooling}: the interpreter gives {json.dumps(got)[:300]}")
            other.stop()
        finally:
            other.process.kill()
