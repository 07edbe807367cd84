#!/usr/bin/env python3
"""Strangers at a TCP port: connections that say nothing, a byte now and then, half a handshake, or end in a reset.

    strangers.py KIND PORT CONNECTIONS [SECONDS]     KIND: silent, dripping, halfway, resetting, mixed

Who is sent away comes again. Says `ready` once all have been there once, and `made N` at the end; ends with its
standard input.
"""
import os
import resource
import select
import socket
import struct
import sys
import time

from peer import HELLO

KINDS = ("silent", "dripping", "halfway", "resetting")
RESET = struct.pack("ii", 1, 0)


class Strangers:
    def __init__(self, kind, port, connections):
        self.kind, self.port, self.wanted = kind, port, connections
        self.epoll = select.epoll()
        self.open = {}  # descriptor -> socket, kind
        self.made = self.turn = 0
        self.missing = connections

    def connect(self):
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.turn += 1
        kind = KINDS[self.turn % len(KINDS)] if self.kind == "mixed" else self.kind
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # also: no port is kept busy afterwards
        try:
            one.connect(("127.0.0.1", self.port))
        except BlockingIOError:
            pass
        except OSError:
            one.close()
            return False
        self.open[one.fileno()] = one, kind
        self.epoll.register(one.fileno(), select.EPOLLIN | select.EPOLLOUT)
        self.missing -= 1
        return True

    def close(self, number):
        one, _ = self.open.pop(number)
        self.epoll.unregister(number)
        one.close()
        self.missing += 1

    def serve(self, number, events):
        one, kind = self.open[number]
        if events & (select.EPOLLERR | select.EPOLLHUP):
            return self.close(number)
        if events & select.EPOLLIN:
            try:
                if not one.recv(4096):
                    return self.close(number)
            except BlockingIOError:
                pass
            except OSError:
                return self.close(number)
        if events & select.EPOLLOUT:
            self.made += 1
            if kind == "resetting":
                self.drip(one, b"FM")
                return self.close(number)
            if kind == "halfway":
                self.drip(one, HELLO + os.urandom(32))
            self.epoll.modify(number, select.EPOLLIN)

    @staticmethod
    def drip(one, what):
        try:
            one.send(what)
        except OSError:
            pass  # not yet connected, or sent away

    def run(self, seconds):
        end, drip, said = time.monotonic() + seconds, time.monotonic(), False
        while time.monotonic() < end:
            for _ in range(min(self.missing, 500)):
                if not self.connect():
                    break
            for number, events in self.epoll.poll(0.01, 2000):
                if number in self.open:
                    self.serve(number, events)
            if time.monotonic() > drip:
                for one, kind in self.open.values():
                    if kind == "dripping":
                        self.drip(one, b"F")
                drip = time.monotonic() + 1
            # Those that nobody lets in wait in the kernel: all that can be there are.
            if not said and self.turn >= self.wanted:
                print("ready", flush=True)
                said = True
            if select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.read(1):
                break
        print(f"made {self.made}", flush=True)


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.nice(10)
    Strangers(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run(float(sys.argv[4]) if len(sys.argv) > 4 else 3600)
