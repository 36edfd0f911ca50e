"""Texts that pass through Ray so that what Ray keeps, logs or shows of them can be read by nobody: the job's secret and the keys of an
object store. The actor makes a key of its own, which never leaves it, and tells its public half; the launcher seals with that, once.

Diffie-Hellman (RFC 3526, group 15, and a number of 512 bits on each side), and HMAC-SHA256 for the key, the stream and the tag. It hides the
text from who reads, not from who may run programs on the nodes as this user, and so sees the variables of the worker itself.

Ray carries this module to the nodes by value (worker.py, step.py): it must not import the package."""

import hashlib
import hmac
import json
import secrets

_P = int("".join((
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437"
    "4FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05"
    "98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA051015728E5A8AAAC42DAD33170D04507A33"
    "A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864"
    "D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
)), 16)
_P_BYTES, _TAG_BYTES = 384, 32


class SealError(Exception):
    """What came is not what was sealed."""


class Key:
    """One side's key, for one text."""

    def __init__(self):
        self._own = secrets.randbits(512)
        self.public = pow(2, self._own, _P)

    def _keys(self, other):
        """Those of the stream and of the tag."""
        if not 1 < other < _P - 1:
            raise SealError("the other side's key is no key")
        shared = pow(other, self._own, _P).to_bytes(_P_BYTES, "big")
        both = "".join(f"{public:x}," for public in sorted((self.public, other))).encode()
        whole = hmac.new(b"ostro_ray 1", shared + both, hashlib.sha256).digest()
        return [hmac.new(whole, use, hashlib.sha256).digest() for use in (b"stream", b"tag")]

    def open(self, sealed):
        """The dictionary that seal() was given."""
        other, content, tag = sealed
        stream, mark = self._keys(other)
        if not hmac.compare_digest(tag, hmac.new(mark, content, hashlib.sha256).digest()):
            raise SealError("the variables of the worker do not come from its launcher")
        return json.loads(_crossed(stream, content))


def seal(public, variables):
    """What open() of the key with this public half takes."""
    key = Key()
    stream, mark = key._keys(public)
    content = _crossed(stream, json.dumps(variables).encode())
    return key.public, content, hmac.new(mark, content, hashlib.sha256).digest()


def _crossed(stream, content):
    blocks = (hmac.new(stream, number.to_bytes(8, "big"), hashlib.sha256).digest() for number in range(len(content) // _TAG_BYTES + 1))
    return bytes(a ^ b for a, b in zip(content, b"".join(blocks)))
