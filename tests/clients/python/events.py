"""The lines and arguments that every member and producer here shares; harness/history.py says what they mean."""

import argparse
import os
import sys
import threading
import time

PADDING = " " + "x" * 90


def member_arguments():
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "group", "topic", "assignor", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--pause-ms", type=int, default=0)
    return parser.parse_args()


def feeder_arguments():
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "topic", "name"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("first", "count", "rate"):
        parser.add_argument(f"--{name}", type=int, default=0)
    return parser.parse_args()


def say(event, rest=""):
    sys.stdout.write(f"{event} {time.time_ns() // 1000} {rest}".rstrip() + "\n")
    sys.stdout.flush()


def say_read(partition, records):
    """`records` are (offset, value) in the order in which they came."""
    run = []
    for offset, value in records:
        if run and offset != first + len(run):
            say("read", f"{partition} {first} {' '.join(run)}")
            run = []
        if not run:
            first = offset
        run.append(value.decode().split(" ", 1)[0])
    if run:
        say("read", f"{partition} {first} {' '.join(run)}")


def offsets_text(offsets):
    return " ".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def numbers_text(partitions):
    return ",".join(map(str, sorted(partitions))) or "-"


class Leave(threading.Thread):
    """Set by the line `leave`; the end of input ends the process, because whoever started it is gone."""

    def __init__(self):
        super().__init__(daemon=True, name="commands")
        self._asked = threading.Event()
        self.start()

    def run(self):
        for line in sys.stdin:
            if line.strip() == "leave":
                self._asked.set()
        if not self._asked.is_set():
            os._exit(3)

    def asked(self):
        return self._asked.is_set()


class Pace:
    """Holds a loop to `rate` turns a second, if any."""

    def __init__(self, rate):
        self._rate = rate
        self._start = time.monotonic()
        self._turns = 0

    def early(self):
        """Seconds to wait before the next turn."""
        self._turns += 1
        if not self._rate:
            return 0.0
        return max(0.0, self._start + self._turns / self._rate - time.monotonic())
