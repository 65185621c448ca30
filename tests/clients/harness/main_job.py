"""The main job, for any client: three consumers of one group read a topic of 12 partitions; a fourth joins, one is
killed, one leaves; the broker is killed under load with the members alive, then together with all of them."""

import contextlib
import dataclasses
import time
from collections.abc import Callable

from harness.history import History
from harness.process import Process, run, wait_until
from harness.report import Report, Skip, require, same
from harness.toolchain import source

PARTITIONS = 12

# Seconds that the members of every client ask for; Kafka's default for group.min.session.timeout.ms.
SESSION_TIMEOUT = 6


@dataclasses.dataclass
class Client:
    """How to start a member and a producer of one client library."""

    # (bootstrap, group, topic, assignor, name, pause_ms) -> command
    member: Callable[..., list[str]]
    # (bootstrap, topic, first, count, rate, name) -> command
    feeder: Callable[..., list[str]]
    # (bootstrap, group, topic) -> {partition: (committed, end)}, by somebody who is no member.
    offsets: Callable[..., dict[int, tuple[int, int]]]
    # A member that was killed is missed after SESSION_TIMEOUT; everything else is quick. Slow machines get time.
    patience: int = 60
    # Whether a member keeps its partitions while a heartbeat finds no broker. Where it gives them up by itself, that it
    # has lost them says nothing about the broker.
    keeps_while_away: bool = True


def create_topic(python, bootstrap, topic):
    """By librdkafka, for clients whose own admin calls are not the subject; `python` is toolchain.python()."""
    code, out, err = run([python, source("python", "create_topic.py"), bootstrap, topic, str(PARTITIONS)], 60)
    require(code == 0, f"the topic could not be created\n{out}{err}")


def offsets_by_librdkafka(python):
    """Client.offsets for those who have none of their own."""

    def offsets(bootstrap, group, topic):
        code, out, err = run([python, source("python", "offsets.py"), bootstrap, group, topic], 60)
        require(code == 0, f"the offsets could not be read\n{out}{err}")
        rows = (map(int, line.split()) for line in out.splitlines())
        return {partition: (committed, end) for partition, committed, end in rows}

    return offsets


class Stopped(Exception):
    """The scenario cannot go on; why was reported where it was seen."""


class MainJob:
    def __init__(self, report: Report, broker, client: Client, directory, topic, assignor, records, seconds=20):
        """`seconds`: for how long records are sent while members come and go."""
        self.report = report
        self.broker = broker
        self.client = client
        self.directory = directory
        self.topic = topic
        self.group = f"group-of-{topic}"
        self.assignor = assignor
        self.records = records
        self.seconds = seconds
        self.history = History()
        self.processes = {}
        self.logs = {}
        self.fed = 0

    def run(self):
        """Needs the topic to exist."""
        try:
            self._play()
            self._judge()
        except Stopped:
            print(self.broker.tail())
            for process in self.processes.values():
                if not process.ended():
                    print(process.tail(8))
        finally:
            for process in list(self.processes.values()):
                process.kill()

    def _play(self):
        share = {name: self.records * percent // 100 for name, percent in (("first", 30), ("moving", 40), ("killing", 15))}
        share["resuming"] = self.records - sum(share.values())

        self._feed("first", share["first"])
        for name in ("m1", "m2", "m3"):
            self._join(name)
        with self._step("three consumers share the twelve partitions"):
            self._settle("m1", "m2", "m3")
            self._read_up_to(share["first"] // 3)

        self._feed("moving", share["moving"], rate=max(1, share["moving"] // self.seconds))
        with self._step("a fourth joins and gets its share"):
            self._join("m4")
            self._settle("m1", "m2", "m3", "m4")
            self._goes_on("m4")
        with self._step("one is killed and the others take over what it had"):
            self.processes["m1"].kill()
            self.logs["m1"].died()
            self._goes_on("m2", "m3", "m4")
            self._settle("m2", "m3", "m4")
        with self._step("one leaves cleanly and the others take over at once"):
            self.processes["m2"].say("leave")
            code = self.processes["m2"].wait(30)
            require(code == 0 and self.logs["m2"].left, f"m2 left with exit code {code}\n{self.processes['m2'].tail()}")
            asked = time.monotonic()
            self._settle("m3", "m4")
            require(time.monotonic() - asked < 5, "the others waited as for a dead member")
        with self._step("all that was sent meanwhile is read"):
            self._finish_feed("moving")
            self._read_all("m3", "m4")

        with self._step("the broker is killed under load, comes back, and the members carry on"):
            feed = self._feed("killing", share["killing"], rate=max(1, share["killing"] // 4))
            wait_until("a quarter is acknowledged", lambda: len(feed.acked) >= share["killing"] // 4, 30)
            require(not feed.done, "the producer was done before the broker was killed")
            killed = time.monotonic()
            self.broker.kill()
            seconds = self.broker.start()
            print(f"        the broker serves again after {seconds:.2f} s")
            outage = time.monotonic() - killed
            self._finish_feed("killing")
            self._read_all("m3", "m4")
        if self.client.keeps_while_away:
            with self._case("no member lost its partitions by the broker's death"):
                if outage > SESSION_TIMEOUT:
                    raise Skip(f"the broker was away for {outage:.1f} s, longer than a session")
                self.history.nobody_was_thrown_out()

        with self._step("killed together with all members, the broker comes back and the group resumes"):
            before = self.history.read_count()
            self._feed("resuming", share["resuming"])
            wait_until("part of it is read", lambda: self.history.read_count() > before + share["resuming"] // 4, 30)
            for name in ("m3", "m4"):
                self.processes[name].kill()
                self.logs[name].died()
            self.broker.kill()
            self.broker.start()
            for name in ("m5", "m6"):
                self._join(name)
            self._settle("m5", "m6")
            self._finish_feed("resuming")
            self._read_all("m5", "m6")
        with self._case("asked by others, the broker has committed offsets at the end of each partition"):
            self._agrees(self.client.offsets(self.broker.bootstrap, self.group, self.topic))
        with self._step("the last members leave cleanly"):
            for name in ("m5", "m6"):
                self.processes[name].say("leave")
            codes = {name: self.processes[name].wait(30) for name in ("m5", "m6")}
            require(set(codes.values()) == {0}, f"exit codes {codes}")

    def _judge(self):
        history = self.history
        with self._case(f"all {self.records} sends were acknowledged"):
            history.every_send_was_acknowledged(self.records)
        with self._case("each record is in the log once and in order, also across the broker's death"):
            history.the_log_holds_each_record_once_and_in_order()
        with self._case(f"all {self.records} records were read, none altered or left out"):
            history.every_record_was_read(self.records)
        with self._case("each partition had one reader at a time"):
            history.each_partition_had_one_reader_at_a_time()
        generations = {generation for member in history.members for _, generation, _ in member.assignments} - {-1}
        if generations:  # some clients do not tell theirs
            with self._case(f"each of {len(generations)} generations shared the partitions out once"):
                history.each_generation_shared_the_partitions_out_once()
        with self._case("committed offsets only grew"):
            history.commits_only_grow()
        with self._case("no owner began below a committed offset or left records out"):
            again = history.reading_starts_at_the_committed_offset()
            print(f"        {history.read_count()} reads, {again} of them again, after a kill before the commit")
        with self._case("all that was read is committed"):
            history.everything_is_read_and_committed()
        refusals = sum(len(member.refusals) for member in history.members)
        print(f"        {refusals} commits were refused during a rebalance and tried again")

    def _case(self, name):
        return self.report.case(f"{self.topic}: {name}")

    @contextlib.contextmanager
    def _step(self, name):
        """A case without which the rest makes no sense."""
        failed = self.report.failed
        with self._case(name):
            yield
        if self.report.failed > failed:
            raise Stopped

    def _join(self, name):
        log = self.history.member(name)
        command = self.client.member(self.broker.bootstrap, self.group, self.topic, self.assignor, name, 20)
        self.logs[name] = log
        self.processes[name] = Process(f"{self.topic}-{name}", command, self.directory, on_line=log.line)

    def _feed(self, name, count, rate=0):
        log = self.history.feed(name)
        command = self.client.feeder(self.broker.bootstrap, self.topic, self.fed, count, rate, name)
        self.fed += count
        self.processes[name] = Process(f"{self.topic}-{name}", command, self.directory, on_line=log.line)
        return log

    def _finish_feed(self, name):
        process = self.processes[name]
        code = process.wait(self.client.patience + 60)
        log = next(feed for feed in self.history.feeds if feed.name == name)
        require(code == 0 and log.done, f"the producer {name} ended with {code}\n{process.tail()}")

    def _settle(self, *names):
        """Until just these own all partitions, each at least one."""

        def settled():
            parts = [self.logs[name].partitions() for name in names]
            return all(parts) and sum(map(len, parts)) == PARTITIONS and len(set().union(*parts)) == PARTITIONS

        def seen():
            return f"{', '.join(names)} share the partitions; they own " + str({name: sorted(self.logs[name].partitions()) for name in names})

        wait_until(seen, settled, self.client.patience, alive=[self.processes[name] for name in names])

    def _goes_on(self, *names):
        """Each of these reads something more."""
        before = {name: self.logs[name].read_count for name in names}
        for name in names:
            wait_until(f"{name} reads on", lambda: self.logs[name].read_count > before[name], self.client.patience, alive=[self.processes[name]])

    def _read_up_to(self, count):
        wait_until(f"{count} records are read", lambda: self.history.read_count() >= count, self.client.patience)

    def _read_all(self, *names):
        alive = [self.processes[name] for name in names]
        wait_until(lambda: f"all is read and committed: {self.history.behind()}", lambda: not self.history.behind(), self.client.patience, alive)

    def _agrees(self, offsets):
        expected = {partition: (end, end) for partition, end in self.history.ends().items()}
        same("committed offsets and ends of the partitions", offsets, expected)
