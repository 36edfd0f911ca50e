"""A small S3-compatible server for tests: signatures, listings in pages, ranges, and faults on demand.

It checks AWS Signature Version 4 by its definition, with a key of its own, and answers HEAD, GET with Range and
If-Match, and ListObjectsV2 with prefix, delimiter and continuation tokens, path-style, on loopback.
"""
import datetime
import email.utils
import hashlib
import hmac
import http.server
import re
import socket
import struct
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET_KEY, TOKEN, REGION = "AKTEST0123456789", "sEcret/with+signs=and:colon", "token/+==", "eu-test-7"


class Refusal(Exception):
    def __init__(self, status, code, message):
        self.status, self.code, self.message = status, code, message


def encoded(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def check_signature(handler, path, query):
    """Raises a Refusal unless the request carries a valid signature."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?"
        r"Signature=([0-9a-f]{64})", handler.headers.get("Authorization", ""))
    if not match:
        raise Refusal(403, "AccessDenied", "The request is not signed.")
    access_key, date, region, names, signature = match.groups()
    if access_key != ACCESS_KEY:
        raise Refusal(403, "InvalidAccessKeyId", "There is no such key.")
    if region != REGION:
        raise Refusal(400, "AuthorizationHeaderMalformed", f"The region is {REGION}.")
    stamp = handler.headers.get("x-amz-date", "")
    when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if not stamp.startswith(date) or abs(time.time() - when.timestamp()) > 900:
        raise Refusal(403, "RequestTimeTooSkewed", "The clocks differ.")
    names = names.split(";")
    present = {name.lower() for name in handler.headers}
    missing = [name for name in present if (name == "host" or name.startswith("x-amz-")) and name not in names]
    if missing or names != sorted(names):
        raise Refusal(403, "AccessDenied", f"Not signed: {missing}")
    if handler.server.token and handler.headers.get("x-amz-security-token") != TOKEN:
        raise Refusal(403, "InvalidToken", "The token is not the session's.")
    canonical = "\n".join([
        handler.command, encoded(path, "/"),
        "&".join(sorted(f"{encoded(k)}={encoded(v)}" for k, v in query)),
        "".join(f"{name}:{' '.join(handler.headers[name].split())}\n" for name in names),
        ";".join(names), handler.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{date}/{region}/s3/aws4_request",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET_KEY).encode()
    for part in (date, region, "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    if key.hex() != signature:
        raise Refusal(403, "SignatureDoesNotMatch", "The signature is not that of the request.")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        raw_path, _, raw_query = self.path.partition("?")
        path, query = urllib.parse.unquote(raw_path), urllib.parse.parse_qsl(raw_query, keep_blank_values=True)
        what = f"{self.command} {path}" + (f" {self.headers['Range']}" if "Range" in self.headers else "") + \
            (f" ?{raw_query}" if raw_query else "")
        fault = self.server.note(what)
        try:
            if fault in ("503", "403", "404"):
                raise Refusal(int(fault), {"503": "SlowDown", "403": "AccessDenied", "404": "NoSuchKey"}[fault],
                              "As the test wants it.")
            if fault == "reset":
                return self.reset()
            bucket, _, key = path.lstrip("/").partition("/")
            if bucket not in self.server.public:
                check_signature(self, path, query)
            if bucket not in self.server.buckets:
                raise Refusal(404, "NoSuchBucket", "The bucket does not exist.")
            objects = self.server.buckets[bucket]
            if key == "":
                self.send(200, self.listing(objects, dict(query)), {"Content-Type": "application/xml"}, fault)
            else:
                self.object(objects, key, fault)
        except Refusal as refusal:
            body = f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message></Error>"
            self.send(refusal.status, body.encode(), {"x-amz-bucket-region": REGION}, None)

    def object(self, objects, key, fault):
        if key not in objects:
            raise Refusal(404, "NoSuchKey", "The key does not exist.")
        content, modified, *more = objects[key]
        tag = '"' + hashlib.md5(content).hexdigest() + '"'
        if self.headers.get("If-Match", tag) != tag:
            raise Refusal(412, "PreconditionFailed", "It changed.")
        headers = {"ETag": tag, "Last-Modified": email.utils.formatdate(modified, usegmt=True), "Accept-Ranges": "bytes"}
        for metadata in more:
            headers |= metadata
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not match or fault == "no_range":
            return self.send(200, content, headers, fault)
        begin, end = int(match[1]), min(int(match[2]) + 1, len(content))
        if begin >= len(content):
            raise Refusal(416, "InvalidRange", "It is shorter.")
        shown = begin + 1 if fault == "wrong_range" else begin
        headers["Content-Range"] = f"bytes {shown}-{end - 1}/{len(content)}"
        body = content[begin:end]
        self.send(206, body[:-1] if fault == "short" else body, headers, fault)

    def listing(self, objects, query):
        prefix, delimiter = query["prefix"], query["delimiter"]
        entries = {}
        for key in sorted(objects, key=str.encode):
            if not key.startswith(prefix):
                continue
            cut = key.find(delimiter, len(prefix))
            if cut >= 0:
                folder = escape(key[:cut + 1])
                entries[key[:cut + 1]] = f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"
            else:
                content, modified, *_ = objects[key]
                when = datetime.datetime.fromtimestamp(modified, datetime.timezone.utc)
                entries[key] = (f"<Contents><Key>{escape(key)}</Key><LastModified>{when:%Y-%m-%dT%H:%M:%S}.000Z"
                                f"</LastModified><ETag>&quot;{hashlib.md5(content).hexdigest()}&quot;</ETag>"
                                f"<Size>{len(content)}</Size></Contents>")
        names = [name for name in entries if name > query.get("continuation-token", "")]
        shown = names[:self.server.page]
        more = len(names) > len(shown)
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        return ('<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}"
                + "".join(entries[name] for name in shown) + "</ListBucketResult>").encode()

    def send(self, status, body, headers, fault):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "cut":  # the connection ends before the body does
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
        elif fault == "trickle":
            self.server.stop.wait(20)  # nothing comes; the client gives up long before
            self.close_connection = True
        else:
            self.wfile.write(body)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
        self.wfile, self.rfile = open("/dev/null", "wb"), open("/dev/null", "rb")


class Server(http.server.ThreadingHTTPServer):
    """`buckets`: name to {key: (bytes, time of change)}; `fault`: a function of ("GET /bucket/key ...", how often it
    was asked before) to the name of a fault or None; `requests`: all that was asked."""

    daemon_threads = True
    request_queue_size = 128  # connections that wait: one too many is sent again after a second

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.buckets, self.public, self.page, self.token = {}, set(), 1000, False
        self.fault, self.requests, self.seen = None, [], {}
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def note(self, what):
        with self.lock:
            count = self.seen.get(what, 0)
            self.seen[what] = count + 1
            self.requests.append(what)
            return self.fault(what, count) if self.fault else None

    def begin(self, fault=None):
        """Forgets what was asked, and injects other faults."""
        with self.lock:
            self.fault, self.requests, self.seen = fault, [], {}

    def put(self, bucket, key, content):
        self.buckets.setdefault(bucket, {})[key] = (content, 1_700_000_000)

    def environment(self):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_address[1]}", "AWS_ACCESS_KEY_ID": ACCESS_KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": REGION, "NO_PROXY": "127.0.0.1",
                "AWS_EC2_METADATA_DISABLED": "true"}

    def handle_error(self, *_):  # a client that went away
        pass

    def close(self):
        self.stop.set()
        self.shutdown()
        self.server_close()
