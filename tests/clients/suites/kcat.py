"""kcat, which is librdkafka as Debian ships it: metadata, produce, consume in a group of two, offsets by time."""

import json
import re

from harness import toolchain
from harness.process import Process, run as run_command, wait_until
from harness.report import require, same

PARTITIONS = 4
RECORDS = 2_000


def run(report, broker, directory, options):
    kcat = [toolchain.kcat(), "-b", broker.bootstrap, "-X", "socket.timeout.ms=10000"]

    def ask(*args, stdin=""):
        code, out, err = run_command([*kcat, *args], 60, directory, stdin=stdin)
        require(code == 0, f"kcat {' '.join(args)} ended with {code}\n{out[-1000:]}\n{err[-2000:]}")
        return out

    with report.case("the metadata names the broker"):
        metadata = json.loads(ask("-L", "-J"))
        same("the brokers differ", [entry["name"] for entry in metadata["brokers"]], [broker.bootstrap])
    with report.case("a topic springs up when it is first asked for"):
        wait_until("the topic has a leader", lambda: re.search(r'topic "fresh" with 1 partitions:\n\s+partition 0, leader \d+', ask("-L", "-t", "fresh")), 30)
    with report.case("records are produced and read back, compressed or not"):
        for codec in ("none", "gzip", "snappy", "lz4"):
            ask("-P", "-t", "fresh", "-z", codec, "-X", "acks=all", stdin="".join(f"{codec} {i}\n" for i in range(RECORDS // 4)))
        out = ask("-C", "-t", "fresh", "-o", "beginning", "-e", "-q", "-f", "%o %s\n")
        expected = [f"{at} {codec} {i}" for at, (codec, i) in enumerate((codec, i) for codec in ("none", "gzip", "snappy", "lz4") for i in range(RECORDS // 4))]
        require(out.splitlines() == expected, f"{len(out.splitlines())} lines, not the {len(expected)} that were sent")
    with report.case("keys, headers and a null value survive"):
        ask("-P", "-t", "marked", "-K", ":", "-Z", "-H", "color=blue", "-H", "size=", stdin="key:\n")
        out = ask("-C", "-t", "marked", "-o", "beginning", "-e", "-q", "-J")
        record = json.loads(out.splitlines()[0])
        same("the record differs", (record["key"], record["payload"], record["headers"]), ("key", None, ["color", "blue", "size", ""]))
    with report.case("offsets are found by time"):
        out = ask("-Q", "-t", "fresh:0:-2", "-t", "marked:0:-1")
        require("fresh [0] offset 0" in out and "marked [0] offset 1" in out, out)
    with report.case("two members of a group share a topic, read it all, and commit"):
        topic = toolchain_topic(broker)
        sent = [f"group {i}" for i in range(RECORDS)]
        ask("-P", "-t", topic, "-X", "acks=all", stdin="".join(f"{text}\n" for text in sent))
        seen = []
        member = [*kcat, "-G", "kcat-group", "-q", "-f", "%p %o %s\n", "-u", "-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=200", topic]
        members = [Process(f"member-{number}", member, directory, on_line=seen.append) for number in (1, 2)]
        wait_until(lambda: f"{len(seen)} of {RECORDS} records are read", lambda: len(seen) >= RECORDS, 60, alive=members)
        for process in members:
            process.terminate()
        codes = [process.wait(20) for process in members]
        same("exit codes", codes, [0, 0])
        same("records were read twice or altered", sorted(line.split(" ", 2)[2] for line in seen), sorted(sent))
    with report.case("a third member finds nothing left to read"):
        late = []
        process = Process("member-3", [*kcat, "-G", "kcat-group", "-e", "-f", "%p %o %s\n", "-X", "auto.offset.reset=earliest", topic], directory, on_line=late.append)
        same("exit code", process.wait(60), 0)
        same("records", late, [])


def toolchain_topic(broker):
    code, out, err = run_command([toolchain.python(), toolchain.source("python", "create_topic.py"), broker.bootstrap, "shared", str(PARTITIONS)], 60)
    require(code == 0, f"the topic could not be created\n{out}{err}")
    return "shared"
