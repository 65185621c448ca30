"""Child processes that cannot outlive the run, and waits that cannot outlive their patience."""

import atexit
import collections
import os
import signal
import subprocess
import threading
import time

from harness.report import Failure

_running = set()


def _stop_all():
    for process in list(_running):
        process.kill()


atexit.register(_stop_all)


def stop_all_on_signals():
    def leave(number, _frame):
        _stop_all()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


def wait_until(what, condition, patience, alive=()):
    """Polls until `condition()` is true and returns its value. A process of `alive` that ends meanwhile is a failure
    at once; `what` is the text of the failure, or a function that makes it."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        for process in alive:
            if process.ended():
                raise Failure(f"{process.name} ended with {process.code()} before: {_text(what)}\n{process.tail()}")
        if time.monotonic() > deadline:
            raise Failure(f"not within {patience} s: {_text(what)}")
        time.sleep(0.02)


def _text(what):
    return what() if callable(what) else what


class Process:
    """A child: its stdout line by line to `on_line` (called on one thread), its stderr in a file under `directory`."""

    def __init__(self, name, command, directory, on_line=None, env=None, cwd=None):
        self.name = name
        self.stderr_path = os.path.join(directory, f"{name}.stderr")
        self._lines = collections.deque(maxlen=200)
        self._on_line = on_line
        with open(self.stderr_path, "ab") as stderr:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **(env or {})},
                cwd=cwd or directory,
            )
        _running.add(self)
        self._reader = threading.Thread(target=self._read, daemon=True, name=f"read {name}")
        self._reader.start()

    def _read(self):
        for raw in self._child.stdout:
            if not raw.endswith(b"\n"):
                break  # cut off by SIGKILL: half a line says nothing
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self._lines.append(line)
            if self._on_line is not None:
                self._on_line(line)

    @property
    def id(self):
        return self._child.pid

    def say(self, line):
        """One line to the child's stdin; a child that is gone does not hear it, which its exit code tells."""
        try:
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass

    def close_input(self):
        try:
            self._child.stdin.close()
        except BrokenPipeError:
            pass

    def ended(self):
        return self._child.poll() is not None

    def code(self):
        return self._child.poll()

    def wait(self, patience):
        """The exit code; the last lines are read when this returns."""
        try:
            code = self._child.wait(patience)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {patience} s\n{self.tail()}") from None
        self._reader.join(5)
        _running.discard(self)
        return code

    def terminate(self):
        self._child.terminate()

    def kill(self):
        """SIGKILL, by id."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait(10)
        self._reader.join(5)
        _running.discard(self)

    def lines(self):
        return list(self._lines)

    def tail(self, count=15):
        with open(self.stderr_path, "rb") as stderr:
            errors = stderr.read()[-8000:].decode("utf-8", "replace").splitlines()[-count:]
        said = [line[:120] for line in self.lines()[-5:]]
        return "\n".join([f"  {self.name} stdout: {line}" for line in said] + [f"  {self.name} stderr: {line}" for line in errors])


def run(command, patience, directory=None, env=None, stdin=""):
    """A command that ends by itself: (code, stdout, stderr)."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=directory,
        text=True,
        errors="replace",
    )
    try:
        out, err = child.communicate(stdin, timeout=patience)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise Failure(f"{command[0]} did not end within {patience} s\n{out[-2000:]}\n{err[-2000:]}") from None
    return child.returncode, out, err
