"""Kafka's command line tools, run one after another in one JVM (java/ToolRunner.java)."""

import dataclasses
import select
import struct
import subprocess
import time

from harness.broker import JVM
from harness.report import Failure, require

CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}


@dataclasses.dataclass
class Output:
    command: str
    code: int
    out: str
    err: str

    def ok(self):
        require(self.code == 0, f"`{self.command}` ended with {self.code}\n{self}")
        return self

    def lines(self):
        return [line for line in self.out.splitlines() if line.strip()]

    def table(self):
        """The rows of a table as dictionaries by its header line. Cells have no blanks in what we ask for, but that
        between a coordinator's address and its `(id)`."""
        rows, header = [], None
        for line in self.lines():
            words = line.replace("COORDINATOR (ID)", "COORDINATOR").replace("  (", "(").split()
            if words[0] in ("GROUP", "TOPIC"):
                header = words
            elif header is not None and len(words) == len(header):
                rows.append(dict(zip(header, words)))
        return rows

    def has(self, *texts):
        for text in texts:
            require(text in self.out or text in self.err, f"`{self.command}` does not say {text!r}\n{self}")
        return self

    def lacks(self, *texts):
        for text in texts:
            require(text not in self.out, f"`{self.command}` says {text!r}\n{self}")
        return self

    def fails(self, *texts):
        require(self.code != 0, f"`{self.command}` succeeds\n{self}")
        return self.has(*texts)

    def __str__(self):
        errors = "\n".join(line for line in self.err.splitlines() if "ToolRunner$Exited" not in line and not line.startswith("exit "))
        return f"stdout: {self.out[-3000:]}\nstderr: {errors[:2000]}"


class Tools:
    def __init__(self, classpath, directory, bootstrap):
        self.classpath = classpath
        self.directory = directory
        self.bootstrap = bootstrap
        self._child = None

    def run(self, tool, *args, stdin="", patience=60):
        """Any tool with exactly these arguments."""
        if self._child is None or self._child.poll() is not None:
            self._start()
        strings = [CLASSES[tool], *args, stdin]
        message = struct.pack(">i", len(strings)) + b"".join(_packed(text) for text in strings)
        self._child.stdin.write(message)
        self._child.stdin.flush()
        deadline = time.monotonic() + patience
        command = f"{tool} {' '.join(args)}"
        try:
            code = struct.unpack(">i", self._read(4, deadline))[0]
            out, err = (self._read(struct.unpack(">i", self._read(4, deadline))[0], deadline) for _ in range(2))
        except TimeoutError:
            self.close()
            raise Failure(f"`{command}` did not end within {patience} s") from None
        return Output(command, code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def __call__(self, tool, *args, **rest):
        """A tool that talks to the broker."""
        return self.run(tool, "--bootstrap-server", self.bootstrap, *args, **rest)

    def _start(self):
        self._child = subprocess.Popen(
            ["java", *JVM, "-Xmx256m", "-cp", self.classpath, "ToolRunner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.directory,
            bufsize=0,
        )

    def _read(self, count, deadline):
        data = b""
        while len(data) < count:
            ready, _, _ = select.select([self._child.stdout], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            more = self._child.stdout.read(count - len(data))
            if not more:
                raise Failure(f"the JVM of the tools ended with {self._child.wait(10)}")
            data += more
        return data

    def close(self):
        if self._child is not None:
            self._child.kill()
            self._child.wait(10)
            self._child = None


def _packed(text):
    data = text.encode()
    return struct.pack(">i", len(data)) + data
