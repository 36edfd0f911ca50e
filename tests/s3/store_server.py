"""An S3-compatible server for tests that is written to: conditional writes, uploads in parts, copies, removals, and
faults on demand, over s3_server.py, which reads and checks signatures."""
import hashlib
import itertools
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

from s3_server import Handler, Refusal, Server, check_signature

BUCKET = "runs"


class StoreHandler(Handler):
    """Faults, beside those of reading: "lost": the request is carried out, and no answer comes; "slow": the answer takes
    its time; "expired": the keys are refused."""

    def do_GET(self):
        self.refuse_expired() or super().do_GET()

    def do_PUT(self):
        self.change()

    def do_POST(self):
        self.change()

    def do_DELETE(self):
        self.change()

    def refuse_expired(self):
        """Whether the request was answered."""
        store = self.server
        token = self.headers.get("x-amz-security-token")
        if not store.tokens or token in store.tokens:
            return False
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.refuse(Refusal(400, "ExpiredToken", "The provided token has expired."))
        return True

    def refuse(self, refusal):
        self.send(refusal.status, f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message></Error>".encode(), {}, None)

    def change(self):
        raw_path, _, raw_query = self.path.partition("?")
        path, query = urllib.parse.unquote(raw_path), urllib.parse.parse_qsl(raw_query, keep_blank_values=True)
        if self.refuse_expired():
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.note(f"{self.command} {path}" + (f" ?{raw_query}" if raw_query else ""))
        try:
            if fault == "503":
                raise Refusal(503, "SlowDown", "Please reduce your request rate.")
            if fault == "reset":
                return self.reset()
            check_signature(self, path, query)
            if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
                raise Refusal(400, "XAmzContentSHA256Mismatch", "The body is another one.")
            bucket, _, key = path.lstrip("/").partition("/")
            if bucket not in self.server.buckets:
                raise Refusal(404, "NoSuchBucket", "The bucket does not exist.")
            self.server.hold(self.command, path)
            with self.server.writing:
                status, answer, headers = self.answer(bucket, key, dict(query), body)
            self.server.done(self.command, path)
            if fault == "slow":
                time.sleep(self.server.slow)
            if fault == "lost":
                return self.reset()
            self.send(status, answer, headers, None)
        except Refusal as refusal:
            self.refuse(refusal)

    def answer(self, bucket, key, query, body):
        store, objects = self.server, self.server.buckets[bucket]
        if self.command == "DELETE" and "uploadId" in query:
            if store.uploads.pop(query["uploadId"], None) is None:
                raise Refusal(404, "NoSuchUpload", "There is no such upload.")
            return 204, b"", {}
        if self.command == "DELETE":
            objects.pop(key, None)
            return 204, b"", {}
        metadata = {"x-amz-meta-ostro-write": self.headers.get("x-amz-meta-ostro-write", "")}
        if "uploads" in query:
            upload = f"upload/{next(store.numbers)}+="
            store.uploads[upload] = (bucket, key, metadata, {}, time.time())
            return 200, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode(), {}
        source = self.headers.get("x-amz-copy-source")
        if source:
            from_bucket, _, from_key = urllib.parse.unquote(source).lstrip("/").partition("/")
            if from_key not in store.buckets[from_bucket]:
                raise Refusal(404, "NoSuchKey", "The source does not exist.")
            body = store.buckets[from_bucket][from_key][0]
            wanted = self.headers.get("x-amz-copy-source-if-match")
            if wanted and wanted != '"' + hashlib.md5(body).hexdigest() + '"':
                raise Refusal(412, "PreconditionFailed", "The source is another one.")
            part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-amz-copy-source-range", ""))
            body = body[int(part[1]):int(part[2]) + 1] if part else body
        tag = '"' + hashlib.md5(body).hexdigest() + '"'
        if "partNumber" in query:
            if query["uploadId"] not in store.uploads:
                raise Refusal(404, "NoSuchUpload", "There is no such upload.")
            store.uploads[query["uploadId"]][3][int(query["partNumber"])] = (tag, body)
            return 200, f"<CopyPartResult><ETag>{tag}</ETag></CopyPartResult>".encode() if source else b"", {"ETag": tag}
        self.check_condition(objects, key)
        if "uploadId" in query:
            if query["uploadId"] not in store.uploads:
                raise Refusal(404, "NoSuchUpload", "There is no such upload.")
            _, _, metadata, parts, _ = store.uploads[query["uploadId"]]
            wanted = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag>", body.decode())
            if [(int(n), t) for n, t in wanted] != [(n, parts[n][0]) for n in sorted(parts)]:
                raise Refusal(400, "InvalidPart", "A part is missing.")
            pieces = [parts[n][1] for n in sorted(parts)]
            if any(len(piece) < 5 << 20 for piece in pieces[:-1]):
                raise Refusal(400, "EntityTooSmall", "A part is too small.")
            body = b"".join(pieces)
            del store.uploads[query["uploadId"]]
            tag = '"' + hashlib.md5(body).hexdigest() + '"'
            objects[key] = (body, int(time.time()), metadata)
            return 200, f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>".encode(), {}
        objects[key] = (body, int(time.time()), metadata)
        return 200, f"<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>".encode() if source else b"", {"ETag": tag}

    def check_condition(self, objects, key):
        if self.server.ignores_conditions:
            return
        wanted = self.headers.get("If-Match")
        if wanted and key not in objects:
            raise Refusal(404, "NoSuchKey", "The key does not exist.")
        there = '"' + hashlib.md5(objects[key][0]).hexdigest() + '"' if key in objects else None
        if (wanted and wanted != there) or (self.headers.get("If-None-Match") == "*" and there):
            self.server.refused.add(key)
            raise Refusal(412, "PreconditionFailed", "At least one of the preconditions did not hold.")

    def listing(self, objects, query):
        if "uploads" in query:
            rows = "".join(f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId><Initiated>"
                           f"{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(begun))}</Initiated></Upload>"
                           for upload, (_, key, _, _, begun) in self.server.uploads.items() if key.startswith(query["prefix"]))
            return f"<ListMultipartUploadsResult>{rows}</ListMultipartUploadsResult>".encode()
        with self.server.writing:
            return super().listing(objects, query)


class Store(Server):
    """`slow`: seconds that a slow answer takes. `tokens`: if not empty, the session tokens that are good. `refused`: keys at which a condition did not hold.
    `gates`: function of ("PUT", path) to an Event that the answer waits for, or None; the request is carried out before.
    `holds`: function of ("DELETE", path) to (Event, whether the request is then refused by 503), or None; the request
    waits for the Event before it is carried out."""

    def __init__(self):
        super().__init__()
        self.RequestHandlerClass = StoreHandler
        self.buckets[BUCKET] = {}
        self.uploads, self.numbers, self.writing = {}, itertools.count(1), threading.RLock()
        self.slow = 0.1
        self.tokens, self.refused, self.ignores_conditions, self.gates, self.holds = set(), set(), False, None, None

    def hold(self, command, path):
        held = self.holds(command, path) if self.holds else None
        if held is None:
            return
        if not held[0].wait(300):
            raise RuntimeError(f"nobody let {command} {path} go on")
        if held[1]:
            raise Refusal(503, "SlowDown", "Please reduce your request rate.")

    def done(self, command, path):
        gate = self.gates(command, path) if self.gates else None
        if gate is not None and not gate.wait(300):
            raise RuntimeError(f"nobody opened the gate of {command} {path}")

    def files(self, prefix):
        """{key below the prefix: content}."""
        with self.writing:
            return {key[len(prefix):]: entry[0] for key, entry in self.buckets[BUCKET].items() if key.startswith(prefix)}

    def plant(self, key, content, age=0):
        with self.writing:
            self.buckets[BUCKET][key] = (content, int(time.time()) - age, {"x-amz-meta-ostro-write": "another"})
