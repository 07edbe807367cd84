"""A node daemon's side of a connection of the tree, or less than that: the handshake and sealed frames
(docs/formats/wire.md), for who knows the job's key and for who does not."""
import hashlib
import hmac
import os
import pathlib
import re
import socket
import struct

SOURCE = (pathlib.Path(__file__).resolve().parents[3] / "src/wire/message.h").read_text()
VERSION = int(re.search(r"kWireVersion = (\d+)", SOURCE)[1])
HELLO = b"FMTA" + struct.pack("<H", VERSION)
ATTACH, NODE_HELLO, HERE, KILL, ORDER = 124, 96, 125, 26, 48


def text(what):
    return struct.pack("<I", len(what)) + what


def frame(kind, payload=b""):
    return struct.pack("<IHH", len(payload), kind, VERSION) + payload


def attach(node, heard=0, answered=0):
    return frame(ATTACH, struct.pack("<iQI", node, heard, answered))


class Peer:
    """`key`: 32 bytes; a wrong one, or a `proof` of an earlier handshake, is not let in."""

    def __init__(self, port, key, nonce=None, proof=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.nonce = nonce or os.urandom(32)
        self.socket.sendall(HELLO + self.nonce)
        theirs = self.read(32)
        self.knows_key = self.read(32) == self.prove(key, b"root", theirs)
        self.proof = proof or self.prove(key, b"node", theirs)
        self.up = self.prove(key, b"up", theirs)
        self.count = 0
        self.socket.sendall(self.proof)

    def prove(self, key, label, theirs):
        return hmac.new(key, label + self.nonce + theirs, hashlib.sha512).digest()[:32]

    def read(self, size):
        got = b""
        while len(got) < size:
            part = self.socket.recv(size - len(got))
            if not part:
                return b""
            got += part
        return got

    def sealed(self, what):
        tag = hashlib.blake2b(struct.pack("<Q", self.count) + what, key=self.up, digest_size=16).digest()
        self.count += 1
        return what + tag

    def say(self, what):
        self.socket.sendall(what)

    def hangs_up(self):
        """The other side ends the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True

    def stays(self, seconds=0.5):
        """It does not."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65536):
                pass
            return False
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        finally:
            self.socket.settimeout(20)
