"""The broker under test: kaas, Apache Kafka itself (to prove the suites right), or one that somebody else runs."""

import glob
import os
import shlex
import socket
import time

from harness.process import Process, run, wait_until
from harness.report import Failure, Skip

# What both brokers are told, so that the suites spend their time on work rather than on waiting.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "1000",
}


class Port:
    """A port of 127.0.0.1 that the kernel picked and that stays ours while the broker is down: bound but not
    listening, so that no outgoing connection is given it, and the broker can bind it again."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = self._socket.getsockname()[1]


class Broker:
    """A broker on a port of its own, with a data directory of its own under `directory`."""

    kind = ""
    patience = 60

    def __init__(self, directory, settings):
        self.directory = directory
        self.settings = {**SETTINGS, **settings}
        self.port = Port()
        self.bootstrap = f"127.0.0.1:{self.port.number}"
        self.process = None
        self._starts = 0

    def start(self):
        """Returns the seconds until it serves."""
        began = time.monotonic()
        self._starts += 1
        self.process = Process(f"{self.kind}-{self._starts}", self.command(), self.directory, env=self.environment())
        wait_until("the broker serves", self.serves, self.patience, alive=[self.process])
        return time.monotonic() - began

    def kill(self):
        """SIGKILL."""
        self.process.kill()

    def stop(self):
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self.process.wait(self.patience)

    def close(self):
        if self.process is not None:
            self.process.kill()

    def tail(self):
        return self.process.tail(30) if self.process is not None else ""

    def environment(self):
        return {}


class Kaas(Broker):
    kind = "kaas"
    node_id = "0"
    patience = 20

    def __init__(self, directory, settings, binary):
        super().__init__(directory, settings)
        self.binary = binary
        self.data = os.path.join(directory, "data")
        self.admin_port = Port()
        self.admin = f"127.0.0.1:{self.admin_port.number}"

    def command(self):
        command = [self.binary, "--data-dir", self.data, "--listen", self.bootstrap, "--admin", self.admin]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def serves(self):
        return any(line == f"kaas 0 ready on {self.bootstrap}" for line in self.process.lines())

    def segments(self, topic_id, _topic, partition):
        """The partition's segment files, oldest first."""
        return sorted(glob.glob(os.path.join(self.data, "topics", topic_id, str(partition), "*.log")))


class Kafka(Broker):
    kind = "kafka"
    node_id = "1"

    def __init__(self, directory, settings, classpath):
        super().__init__(directory, settings)
        self.classpath = classpath
        self.data = os.path.join(directory, "kafka")
        controller = Port()
        self._controller = controller
        properties = {
            "process.roles": "broker,controller",
            "node.id": self.node_id,
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{controller.number}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller.number}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "offsets.topic.num.partitions": "5",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings,
        }
        self._config = os.path.join(directory, "kafka.properties")
        with open(self._config, "w") as file:
            file.writelines(f"{key}={value}\n" for key, value in properties.items())
        code, out, err = run(
            ["java", *JVM, "-cp", classpath, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", self._config],
            60,
            directory,
        )
        if code != 0:
            raise Failure(f"kafka's storage could not be formatted\n{out}{err}")

    def command(self):
        return ["java", "-Xmx1G", "-cp", self.classpath, "kafka.Kafka", self._config]

    def serves(self):
        """The port is open when the metadata is; the group coordinator follows, which clients wait for themselves."""
        return _connects(self.port.number)

    def segments(self, _topic_id, topic, partition):
        return sorted(glob.glob(os.path.join(self.data, f"{topic}-{partition}", "*.log")))


class External(Broker):
    """Somebody else's broker, which `start` starts if it does not run, and `kill` kills."""

    kind = "external"
    node_id = "0"

    def __init__(self, bootstrap, start, kill):
        self.bootstrap = bootstrap
        self._start = start
        self._kill = kill

    def start(self):
        began = time.monotonic()
        if not _connects_to(self.bootstrap):
            self._run(self._start)
        wait_until("the broker serves", lambda: _connects_to(self.bootstrap), self.patience)
        return time.monotonic() - began

    def kill(self):
        self._run(self._kill)

    def _run(self, command):
        code, out, err = run(shlex.split(command), self.patience)
        if code != 0:
            raise Failure(f"{command} ended with {code}\n{out}{err}")

    def close(self):
        pass

    def tail(self):
        return ""

    def segments(self, _topic_id, _topic, _partition):
        raise Skip("the data directory of an external broker is not known")


# Without the shared performance data, over whose file two JVMs of one machine may quarrel in their output.
JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"]


def _connects(port):
    return _connects_to(f"127.0.0.1:{port}")


def _connects_to(address):
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False
