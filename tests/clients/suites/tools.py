"""Kafka's own command line tools: what they print is compared, not only whether they succeed."""

import json
import os
import re
import time

from harness import toolchain
from harness.broker import JVM
from harness.process import Process, run as run_command, wait_until
from harness.report import require, same
from harness.tools import CLASSES, Tools

RECORDS = 100

# What a broker of this kind serves (Kafka 4.4's ranges); a tool that finds less misses something.
SERVED = {
    "Produce": "0 to 13", "Fetch": "4 to 18", "ListOffsets": "1 to 11", "Metadata": "0 to 13", "OffsetCommit": "2 to 10",
    "OffsetFetch": "1 to 10", "FindCoordinator": "0 to 6", "JoinGroup": "0 to 9", "Heartbeat": "0 to 4", "LeaveGroup": "0 to 5",
    "SyncGroup": "0 to 5", "DescribeGroups": "0 to 6", "ListGroups": "0 to 5", "ApiVersions": "0 to 5", "CreateTopics": "2 to 7",
    "DeleteTopics": "1 to 6", "DeleteRecords": "0 to 2", "InitProducerId": "0 to 5", "OffsetForLeaderEpoch": "2 to 4",
    "DescribeConfigs": "1 to 4", "AlterConfigs": "0 to 2", "DescribeLogDirs": "1 to 5", "CreatePartitions": "0 to 3",
    "DeleteGroups": "0 to 3", "IncrementalAlterConfigs": "0 to 1", "OffsetDelete": "0", "DescribeCluster": "0 to 2",
    "DescribeTopicPartitions": "0", "ListConfigResources": "0 to 1",
}  # fmt: skip


def run(report, broker, directory, options):
    classpath = toolchain.java()
    scene = Scene(report, broker, directory, classpath)
    try:
        scene.topics()
        scene.console()
        scene.groups()
        scene.reset_and_delete()
        scene.configs()
        scene.offsets()
        scene.verifiable()
        scene.the_rest()
    finally:
        scene.close()


class Scene:
    def __init__(self, report, broker, directory, classpath):
        self.report = report
        self.broker = broker
        self.directory = directory
        self.classpath = classpath
        self.tools = Tools(classpath, directory, broker.bootstrap)
        self.members = []
        # The console producer's records by partition, as the console consumer saw them.
        self.counts = {}

    def close(self):
        self.tools.close()
        for member in self.members:
            member.kill()

    def java(self, tool, *args):
        """A tool in a JVM of its own: those that keep static state or run until they are stopped."""
        return ["java", *JVM, "-Xmx256m", "-cp", self.classpath, CLASSES.get(tool, tool), *args]

    def topics(self):
        tools = self.tools
        with self.report.case("kafka-topics creates a topic with partitions and configs"):
            tools("kafka-topics", "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=3600000").ok().has("Created topic orders.")
        with self.report.case("kafka-topics refuses to create a topic twice, unless told not to mind"):
            tools("kafka-topics", "--create", "--topic", "orders").fails("Topic 'orders' already exists.")
            tools("kafka-topics", "--create", "--topic", "orders", "--if-not-exists").ok()
        with self.report.case("kafka-topics refuses an illegal name and a wrong config"):
            tools("kafka-topics", "--create", "--topic", "bad topic").fails("Topic name is invalid: 'bad topic'")
            tools("kafka-topics", "--create", "--topic", "x", "--config", "retention.ms=never").fails("retention.ms")
            tools("kafka-topics", "--create", "--topic", "x", "--config", "nonsense=1").fails("nonsense")
        with self.report.case("kafka-topics lists"):
            tools("kafka-topics", "--create", "--topic", "short.lived").ok()
            listed = tools("kafka-topics", "--list", "--exclude-internal").ok().lines()
            require(listed == ["orders", "short.lived"], f"listed {listed}")
        with self.report.case("kafka-topics describes partitions, leaders and configs"):
            self._described(3)
        with self.report.case("kafka-topics adds partitions and refuses to take any away"):
            tools("kafka-topics", "--alter", "--topic", "orders", "--partitions", "5").ok()
            self._described(5)
            tools("kafka-topics", "--alter", "--topic", "orders", "--partitions", "2").fails("The topic orders currently has 5 partition(s); 2 would not be an increase.")
        with self.report.case("kafka-topics finds no partition in a bad state"):
            for state in ("--under-replicated-partitions", "--unavailable-partitions", "--at-min-isr-partitions"):
                output = tools("kafka-topics", "--describe", state, "--topic", "orders").ok()
                if state != "--at-min-isr-partitions":
                    require(not output.lines(), f"{state}\n{output}")
        with self.report.case("kafka-topics deletes, and what is gone is gone"):
            tools("kafka-topics", "--delete", "--topic", "short.lived").ok()
            tools("kafka-topics", "--delete", "--topic", "short.lived").fails("Topic 'short.lived' does not exist as expected")
            tools("kafka-topics", "--describe", "--topic", "short.lived").fails("does not exist as expected")
            listed = tools("kafka-topics", "--list", "--exclude-internal").ok().lines()
            require(listed == ["orders"], f"listed {listed}")

    def _described(self, partitions):
        output = self.tools("kafka-topics", "--describe", "--topic", "orders").ok()
        head = re.search(r"Topic: orders\tTopicId: (\S+)\tPartitionCount: (\d+)\tReplicationFactor: 1\tConfigs: (\S*)", output.out)
        require(head is not None, f"no head line\n{output}")
        require(len(head[1]) == 22, f"the topic id is {head[1]!r}")
        self.topic_id = head[1]
        require(head[2] == str(partitions), f"{head[2]} partitions")
        require("retention.ms=3600000" in head[3].split(","), f"configs {head[3]}")
        node = self.broker.node_id
        for partition in range(partitions):
            output.has(f"\tTopic: orders\tPartition: {partition}\tLeader: {node}\tReplicas: {node}\tIsr: {node}")

    def console(self):
        with self.report.case("kafka-console-producer sends keyed records"):
            lines = "".join(f"k{i}:v{i}\n" for i in range(RECORDS))
            code, out, err = run_command(
                self.java("kafka-console-producer", "--bootstrap-server", self.broker.bootstrap, "--topic", "orders", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
                60, self.directory, stdin=lines,
            )  # fmt: skip
            require(code == 0 and "ERROR" not in err, f"code {code}\n{out}\n{err[-2000:]}")
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            with self.report.case(f"kafka-console-producer sends a record compressed with {codec}"):
                code, out, err = run_command(
                    self.java("kafka-console-producer", "--bootstrap-server", self.broker.bootstrap, "--topic", "orders", "--compression-codec", codec),
                    60, self.directory, stdin=f"compressed with {codec} {'x' * 200}\n",
                )  # fmt: skip
                require(code == 0 and "ERROR" not in err, f"code {code}\n{out}\n{err[-2000:]}")
        with self.report.case("kafka-console-consumer reads them all in a group, with keys, partitions, offsets and times"):
            code, out, err = self._consume("console", "--from-beginning", "--max-messages", str(RECORDS + 4))
            require(code == 0 and f"Processed a total of {RECORDS + 4} messages" in err, f"code {code}\n{out[-1500:]}\n{err[-1500:]}")
            seen, values = {}, {}
            for line in out.splitlines():
                created, partition, offset, key, value = line.split("\t")
                require(re.fullmatch(r"CreateTime:\d{13}", created), f"time {created}")
                number = int(partition.removeprefix("Partition:"))
                require(int(offset.removeprefix("Offset:")) == seen.get(number, 0), f"{line} follows offset {seen.get(number, 0) - 1}")
                seen[number] = seen.get(number, 0) + 1
                values[key if key != "null" else value.split()[2]] = value
            require(all(values.get(f"k{i}") == f"v{i}" for i in range(RECORDS)), "a keyed record is missing or wrong")
            require({"gzip", "snappy", "lz4", "zstd"} <= set(values), "a compressed record is missing")
            self.counts = seen
        with self.report.case("kafka-console-consumer of the same group finds nothing more"):
            code, out, err = self._consume("console", "--timeout-ms", "3000")
            require(out.strip() == "" and "Processed a total of 0 messages" in err, f"code {code}\n{out}\n{err[-1500:]}")

    def _consume(self, group, *args):
        shown = [word for name in ("key", "offset", "partition", "timestamp") for word in ("--formatter-property", f"print.{name}=true")]
        return run_command(
            self.java("kafka-console-consumer", "--bootstrap-server", self.broker.bootstrap, "--topic", "orders", "--group", group, *shown, *args), 60, self.directory
        )

    def groups(self):
        tools = self.tools
        with self.report.case("kafka-consumer-groups shows the offsets and lag of a group without members"):
            rows = tools("kafka-consumer-groups", "--describe", "--group", "console").ok().has("Consumer group 'console' has no active members.").table()
            require({int(row["PARTITION"]): (int(row["CURRENT-OFFSET"]), int(row["LOG-END-OFFSET"]), int(row["LAG"])) for row in rows} == {p: (n, n, 0) for p, n in self.counts.items()}, f"rows {rows}")
            require(all(row["CONSUMER-ID"] == "-" for row in rows), f"rows {rows}")
        members = [self._member(name) for name in ("left", "right")]
        with self.report.case("two members join"):
            wait_until("both own partitions", lambda: all(member.owns() for member in members), 60, alive=members)
        with self.report.case("kafka-consumer-groups lists groups with states, filtered"):
            rows = {row["GROUP"]: row["STATE"] for row in tools("kafka-consumer-groups", "--list", "--state").ok().table()}
            require(rows == {"console": "Empty", "pair": "Stable"}, f"rows {rows}")
            require(sorted(tools("kafka-consumer-groups", "--list").ok().lines()) == ["console", "pair"], "the plain list differs")
            rows = [row["GROUP"] for row in tools("kafka-consumer-groups", "--list", "--state", "stable").ok().table()]
            require(rows == ["pair"], f"stable groups {rows}")
            rows = [row["GROUP"] for row in tools("kafka-consumer-groups", "--list", "--type", "classic").ok().table()]
            require(sorted(rows) == ["console", "pair"], f"classic groups {rows}")
        with self.report.case("kafka-consumer-groups --state names coordinator, assignor, state and members"):
            rows = tools("kafka-consumer-groups", "--describe", "--group", "pair", "--state").ok().table()
            expected = [{"GROUP": "pair", "COORDINATOR": f"{self.broker.bootstrap}({self.broker.node_id})", "ASSIGNMENT-STRATEGY": "range", "STATE": "Stable", "#MEMBERS": "2"}]
            require(rows == expected, f"rows {rows}")
        with self.report.case("kafka-consumer-groups --members --verbose shows who has what"):
            output = tools("kafka-consumer-groups", "--describe", "--group", "pair", "--members", "--verbose").ok()
            found = {}
            for line in output.lines():
                match = re.match(r"pair\s+(\S+)\s+/127\.0\.0\.1\s+(left|right)\s+(\d)\s+-\s+orders:([\d,]+)\s+-\s+-", line)
                if match is not None:
                    require(match[1].startswith(f"{match[2]}-"), f"member id {match[1]}")
                    found[match[2]] = {int(number) for number in match[4].split(",")}
            require(found == {member.name: member.owns() for member in members}, f"found {found}\n{output}")
        with self.report.case("kafka-consumer-groups --offsets shows the owner of each partition"):
            rows = tools("kafka-consumer-groups", "--describe", "--group", "pair", "--offsets").ok().table()
            found = {}
            for row in rows:
                found.setdefault(row["CLIENT-ID"], set()).add(int(row["PARTITION"]))
                require(row["HOST"] == "/127.0.0.1", f"row {row}")
            require(found == {member.name: member.owns() for member in members}, f"found {found}")
        with self.report.case("kafka-consumer-groups refuses to reset, delete or thin out a group that is in use"):
            tools("kafka-consumer-groups", "--reset-offsets", "--group", "pair", "--topic", "orders", "--to-earliest", "--dry-run").has("Assignments can only be reset if the group 'pair' is inactive, but the current state is Stable.")
            tools("kafka-consumer-groups", "--delete", "--group", "pair").has("Group 'pair' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException")
            tools("kafka-consumer-groups", "--delete-offsets", "--group", "pair", "--topic", "orders").has("GroupSubscribedToTopicException")
        with self.report.case("both members leave, and the group is empty and keeps its offsets"):
            for member in members:
                member.say("leave")
            codes = [member.wait(30) for member in members]
            require(codes == [0, 0], f"exit codes {codes}")
            rows = tools("kafka-consumer-groups", "--describe", "--group", "pair", "--state").ok().table()
            require(rows[0]["STATE"] == "Empty" and rows[0]["#MEMBERS"] == "0", f"rows {rows}")
            require(self._offsets("pair") == self.counts, f"offsets {self._offsets('pair')}")
        with self.report.case("kafka-consumer-groups knows no group of which nobody heard"):
            tools("kafka-consumer-groups", "--describe", "--group", "nobody").has("Group nobody not found.")
            tools("kafka-consumer-groups", "--delete", "--group", "nobody").has("GroupIdNotFoundException")

    def _member(self, name):
        member = GroupMember(
            name, self.java("Member", "--bootstrap", self.broker.bootstrap, "--group", "pair", "--topic", "orders", "--assignor", "range", "--name", name), self.directory
        )
        self.members.append(member)
        return member

    def _offsets(self, group):
        rows = self.tools("kafka-consumer-groups", "--describe", "--group", group, "--offsets").ok().table()
        return {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows if row["CURRENT-OFFSET"] != "-"}

    def _reset(self, *args):
        rows = self.tools("kafka-consumer-groups", "--reset-offsets", "--group", "pair", *args).ok().table()
        return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in rows}

    def reset_and_delete(self):
        partitions = range(5)
        with self.report.case("reset-offsets --dry-run shows and changes nothing"):
            same("not shown", self._reset("--topic", "orders", "--to-earliest", "--dry-run"), {p: 0 for p in partitions})
            same("changed", self._offsets("pair"), self.counts)
        with self.report.case("reset-offsets --to-earliest --execute"):
            same("not shown", self._reset("--topic", "orders", "--to-earliest", "--execute"), {p: 0 for p in partitions})
            same("not done", self._offsets("pair"), {p: 0 for p in partitions})
        with self.report.case("reset-offsets --to-offset --execute"):
            same("not shown", self._reset("--topic", "orders", "--to-offset", "3", "--execute"), {p: 3 for p in partitions})
            same("not done", self._offsets("pair"), {p: 3 for p in partitions})
        with self.report.case("reset-offsets --shift-by on two partitions leaves the others"):
            same("not shown", self._reset("--topic", "orders:0,1", "--shift-by", "2", "--execute"), {0: 5, 1: 5})
            same("not done", self._offsets("pair"), {0: 5, 1: 5, 2: 3, 3: 3, 4: 3})
        with self.report.case("reset-offsets --to-offset past the end goes to the end"):
            same("not the ends", self._reset("--topic", "orders", "--to-offset", "1000000", "--execute"), self.counts)
        with self.report.case("reset-offsets --by-duration asks for offsets by time"):
            same("an hour ago is not the beginning", self._reset("--topic", "orders", "--by-duration", "PT1H", "--execute"), {p: 0 for p in partitions})
            same("now is not the end", self._reset("--topic", "orders", "--by-duration", "PT0S", "--execute"), self.counts)
        with self.report.case("reset-offsets --to-datetime and --all-topics --to-latest"):
            same("2020 is not the beginning", self._reset("--all-topics", "--to-datetime", "2020-01-01T00:00:00.000", "--execute"), {p: 0 for p in partitions})
            same("the latest are not the ends", self._reset("--all-topics", "--to-latest", "--execute"), self.counts)
        with self.report.case("reset-offsets exports, and takes what it exported"):
            exported = self.tools("kafka-consumer-groups", "--reset-offsets", "--group", "pair", "--all-topics", "--to-current", "--export", "--dry-run").ok()
            rows = {tuple(line.split(",")) for line in exported.lines()}
            require(rows == {("orders", str(p), str(n)) for p, n in self.counts.items()}, f"{exported}")
            plan = os.path.join(self.directory, "plan.csv")
            with open(plan, "w") as file:
                file.writelines(f"orders,{p},1\n" for p in partitions)
            same("the file was not followed", self._reset("--from-file", plan, "--execute"), {p: 1 for p in partitions})
            same("not done", self._offsets("pair"), {p: 1 for p in partitions})
        with self.report.case("a consumer of the reset group starts there"):
            code, out, err = self._consume("pair", "--max-messages", str(sum(self.counts.values()) - 5))
            offsets = {line.split("\t")[1]: line.split("\t")[2] for line in reversed(out.splitlines())}
            require(code == 0 and set(offsets.values()) == {"Offset:1"}, f"first offsets {offsets}\n{err[-1500:]}")
        with self.report.case("delete-offsets forgets one partition and keeps the others"):
            output = self.tools("kafka-consumer-groups", "--delete-offsets", "--group", "pair", "--topic", "orders:0").ok()
            output.has("Request succeeded for deleting offsets from group pair.")
            require(output.table() == [{"TOPIC": "orders", "PARTITION": "0", "STATUS": "Successful"}], f"{output}")
            require(set(self._offsets("pair")) == {1, 2, 3, 4}, f"left {self._offsets('pair')}")
        with self.report.case("a deleted group is gone"):
            self.tools("kafka-consumer-groups", "--delete", "--group", "pair").ok().has("Deletion of requested consumer groups ('pair') was successful.")
            self.tools("kafka-consumer-groups", "--delete", "--group", "pair").has("GroupIdNotFoundException")
            require(self.tools("kafka-consumer-groups", "--list").ok().lines() == ["console"], "still listed")
        with self.report.case("after the broker was killed, the deleted group is gone and the other has its offsets"):
            self.broker.kill()
            self.broker.start()
            wait_until("the group is there again", lambda: "console" in self.tools("kafka-consumer-groups", "--list").lines(), 60)
            require(self.tools("kafka-consumer-groups", "--list").ok().lines() == ["console"], "other groups are listed")
            require(self._offsets("console") == self.counts, f"offsets {self._offsets('console')}")

    def _config(self, *args):
        return self.tools("kafka-configs", *args)

    def configs(self):
        topic = ("--entity-type", "topics", "--entity-name", "orders")
        broker = ("--entity-type", "brokers", "--entity-name", self.broker.node_id)
        with self.report.case("kafka-configs describes what a topic was given"):
            self._config("--describe", *topic).ok().has("Dynamic configs for topic orders are:", "retention.ms=3600000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=3600000")
        with self.report.case("kafka-configs sets and unsets topic configs"):
            self._config("--alter", *topic, "--add-config", "max.message.bytes=2000000,retention.bytes=12345678").ok().has("Completed updating config for topic orders.")
            self._config("--describe", *topic).ok().has("max.message.bytes=2000000 sensitive=false", "retention.bytes=12345678", "retention.ms=3600000", "DEFAULT_CONFIG:message.max.bytes=1048588")
            self._config("--alter", *topic, "--delete-config", "retention.bytes").ok()
            self._config("--describe", *topic).ok().lacks("retention.bytes=")
        with self.report.case("kafka-configs refuses unknown keys and wrong values"):
            self._config("--alter", *topic, "--add-config", "nonsense=1").fails("Unknown topic config name: nonsense")
            self._config("--alter", *topic, "--add-config", "retention.ms=abc").fails("Invalid value abc for configuration retention.ms")
            self._config("--alter", "--entity-type", "topics", "--entity-name", "nowhere", "--add-config", "retention.ms=1").fails()
        with self.report.case("kafka-configs describes all of a topic's configs with their sources"):
            output = self._config("--describe", *topic, "--all").ok().has("All configs for topic orders are:")
            for line in ("cleanup.policy=delete", "compression.type=producer", "message.timestamp.type=CreateTime", "max.message.bytes=2000000", "segment.bytes=1073741824", "retention.ms=3600000"):
                output.has(f"  {line} sensitive=false synonyms={{")
        with self.report.case("kafka-configs sets, shows and unsets broker configs at run time"):
            self._config("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "message.max.bytes=1234567").ok()
            self._config("--describe", "--entity-type", "brokers", "--entity-default").ok().has("message.max.bytes=1234567 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=1234567")
            self._config("--alter", *broker, "--add-config", "log.retention.ms=7654321").ok().has(f"Completed updating config for broker {self.broker.node_id}.")
            self._config("--describe", *broker).ok().has("log.retention.ms=7654321 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=7654321")
            self._config("--alter", *broker, "--delete-config", "log.retention.ms").ok()
            self._config("--describe", *broker).ok().lacks("log.retention.ms=7654321")
        with self.report.case("kafka-configs shows the broker's static settings and defaults"):
            output = self._config("--describe", *broker, "--all").ok()
            output.has("group.initial.rebalance.delay.ms=500 sensitive=false synonyms={STATIC_BROKER_CONFIG:group.initial.rebalance.delay.ms=500, DEFAULT_CONFIG:group.initial.rebalance.delay.ms=3000}")
            output.has("offsets.retention.minutes=10080 sensitive=false", "group.max.session.timeout.ms=1800000 sensitive=false")

    def offsets(self):
        def at(time):
            lines = self.tools("kafka-get-offsets", "--topic", "orders", "--time", time).ok().lines()
            return {int(line.split(":")[1]): int(line.split(":")[2]) for line in lines}

        with self.report.case("kafka-get-offsets: earliest and latest"):
            require(at("earliest") == {p: 0 for p in range(5)} == at("-2"), f"earliest {at('earliest')}")
            require(at("latest") == self.counts == at("-1"), f"latest {at('latest')}")
        with self.report.case("kafka-get-offsets: max-timestamp is a record's offset"):
            newest = at("max-timestamp")
            require(set(newest) == set(range(5)) and all(0 <= newest[p] < self.counts[p] for p in newest), f"{newest}")
        with self.report.case("kafka-get-offsets: by time, before all and after all"):
            require(at("1500000000000") == {p: 0 for p in range(5)}, "2017 is not the beginning")
            require(at(str(int(time.time() * 1000) + 86_400_000)) == {}, "tomorrow has records")
        with self.report.case("kafka-get-offsets: by partition, and of a topic that is not there"):
            lines = self.tools("kafka-get-offsets", "--topic-partitions", "orders:0,orders:2").ok().lines()
            require(lines == [f"orders:0:{self.counts[0]}", f"orders:2:{self.counts[2]}"], f"{lines}")
            self.tools("kafka-get-offsets", "--topic-partitions", "nowhere:0").fails("Could not match any topic-partitions")
        with self.report.case("kafka-delete-records moves the beginning, and says where it is"):
            plan = os.path.join(self.directory, "delete.json")
            wanted = [{"topic": "orders", "partition": 0, "offset": 5}, {"topic": "orders", "partition": 1, "offset": -1}]
            with open(plan, "w") as file:
                json.dump({"partitions": wanted, "version": 1}, file)
            output = self.tools("kafka-delete-records", "--offset-json-file", plan).ok()
            output.has("partition: orders-0\tlow_watermark: 5", f"partition: orders-1\tlow_watermark: {self.counts[1]}")
            require(at("earliest") == {0: 5, 1: self.counts[1], 2: 0, 3: 0, 4: 0}, f"earliest {at('earliest')}")
            code, out, err = self._consume("after-deletion", "--from-beginning", "--max-messages", str(sum(self.counts.values()) - 5 - self.counts[1]))
            first = {line.split("\t")[1]: line.split("\t")[2] for line in reversed(out.splitlines())}
            require(code == 0 and first.get("Partition:0") == "Offset:5" and "Partition:1" not in first, f"first offsets {first}\n{err[-1500:]}")
        with self.report.case("kafka-delete-records refuses what lies past the end"):
            with open(plan, "w") as file:
                json.dump({"partitions": [{"topic": "orders", "partition": 0, "offset": 1_000_000}], "version": 1}, file)
            self.tools("kafka-delete-records", "--offset-json-file", plan).has("OffsetOutOfRangeException")

    def verifiable(self):
        with self.report.case("kafka-verifiable-producer has every record acknowledged"):
            self.tools("kafka-topics", "--create", "--topic", "verifiable", "--partitions", "2").ok()
            code, out, err = run_command(
                self.java("kafka-verifiable-producer", "--bootstrap-server", self.broker.bootstrap, "--topic", "verifiable", "--max-messages", "500", "--acks", "-1"), 60, self.directory
            )
            events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            summary = next((event for event in events if event["name"] == "tool_data"), None)
            require(code == 0 and summary is not None and summary["sent"] == summary["acked"] == 500, f"code {code}, {summary}\n{err[-1500:]}")
            self.sent = {(event["partition"], event["offset"]): event["value"] for event in events if event["name"] == "producer_send_success"}
            require(len(self.sent) == 500, f"{len(self.sent)} places")
        with self.report.case("kafka-verifiable-consumer reads and commits each of them"):
            code, out, err = run_command(
                self.java("kafka-verifiable-consumer", "--bootstrap-server", self.broker.bootstrap, "--topic", "verifiable", "--group-id", "verifiable", "--max-messages", "500", "--verbose"),
                60, self.directory,
            )  # fmt: skip
            events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            seen = {(event["partition"], event["offset"]): event["value"] for event in events if event["name"] == "record_data"}
            require(code == 0 and seen == self.sent, f"code {code}, {len(seen)} of {len(self.sent)} seen\n{err[-1500:]}")
            require(all(event["success"] for event in events if event["name"] == "offsets_committed"), "a commit failed")
            ends = {p: sum(1 for place in seen if place[0] == p) for p in {place[0] for place in seen}}
            require(self._offsets("verifiable") == ends, f"committed {self._offsets('verifiable')}, read {ends}")

    def the_rest(self):
        with self.report.case("kafka-broker-api-versions finds Kafka 4.4's version ranges"):
            output = self.tools("kafka-broker-api-versions").ok()
            output.has(f"{self.broker.bootstrap} (id: {self.broker.node_id} rack: null")
            found = {match[1]: match[2] for match in re.finditer(r"\t(\w+)\(\d+\): ([\d to]+) \[usable", output.out)}
            wrong = {name: found.get(name) for name, versions in SERVED.items() if found.get(name) != versions}
            require(not wrong, f"differing ranges: {wrong}")
        with self.report.case("kafka-log-dirs shows the size of each partition"):
            output = self.tools("kafka-log-dirs", "--describe", "--topic-list", "orders").ok()
            found = json.loads(next(line for line in output.lines() if line.startswith("{")))
            sizes = {row["partition"]: row["size"] for entry in found["brokers"] for log in entry["logDirs"] for row in log["partitions"]}
            require(set(sizes) == {f"orders-{p}" for p in range(5)} and all(size > 0 for size in sizes.values()), f"{sizes}")
        with self.report.case("kafka-dump-log reads the segment files"):
            offsets = []
            segments = self.broker.segments(self.topic_id, "orders", 2)
            require(segments, "there is no segment file")
            for path in segments:
                output = self.tools.run("kafka-dump-log", "--files", path, "--print-data-log", "--deep-iteration").ok()
                require("isvalid: false" not in output.out and "Found" not in output.out, f"{output}")
                offsets += [int(number) for number in re.findall(r"^\| offset: (\d+) .*payload: \S", output.out, re.MULTILINE)]
            require(offsets == list(range(self.counts[2])), f"offsets {offsets}, {self.counts[2]} records")


class GroupMember(Process):
    def __init__(self, name, command, directory):
        self._owned = set()
        super().__init__(name, command, directory, on_line=self._line)

    def _line(self, line):
        words = line.split(" ")
        if words[0] == "assigned":
            self._owned = set() if words[3] == "-" else {int(number) for number in words[3].split(",")}

    def owns(self):
        return self._owned
