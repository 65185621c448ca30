"""Counts what was really checked. A case passes by reaching its end, fails by an exception, is skipped by Skip."""

import contextlib
import time
import traceback


class Skip(Exception):
    """The case or suite cannot be run here; the text says what is missing."""


class Failure(AssertionError):
    """A fact that should hold does not; the text says what was seen instead."""


def require(condition, text):
    if not condition:
        raise Failure(text)


def same(otherwise, seen, expected):
    """`otherwise` is what it means when they differ."""
    require(seen == expected, f"{otherwise}: seen {seen}, expected {expected}")


class Report:
    def __init__(self, suite):
        self.suite = suite
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.started = time.monotonic()

    @contextlib.contextmanager
    def case(self, name):
        """One counted fact. A failure does not stop the suite: what cannot go on without it raises again itself."""
        began = time.monotonic()
        try:
            yield
        except Skip as skip:
            self.skip(name, skip)
        except Exception as error:
            self.fail(name, error)
        else:
            self.passed += 1
            print(f"ok      {self.suite}: {name} ({time.monotonic() - began:.1f} s)", flush=True)

    def skip(self, name, why):
        self.skipped += 1
        print(f"skipped: {self.suite}: {name}: {why}", flush=True)

    def fail(self, name, error):
        self.failed += 1
        text = str(error) if isinstance(error, Failure) else "".join(traceback.format_exception(error))
        print(f"FAILED  {self.suite}: {name}", flush=True)
        for line in text.rstrip().splitlines():
            print(f"        {line}", flush=True)

    def close(self):
        print(f"        {self.suite} took {time.monotonic() - self.started:.0f} s")
        print(f"{self.suite}: {self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
