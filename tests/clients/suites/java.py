"""The main job with the Java client, once for each kind of assignor."""

from harness import toolchain
from harness.broker import JVM
from harness.main_job import PARTITIONS, Client, MainJob
from harness.tools import Tools

ASSIGNORS = ("range", "cooperative-sticky")


def run(report, broker, directory, options):
    classpath = toolchain.java()
    tools = Tools(classpath, directory, broker.bootstrap)
    try:
        for assignor in ASSIGNORS:
            topic = f"main-{assignor}"
            tools("kafka-topics", "--create", "--topic", topic, "--partitions", str(PARTITIONS), "--replication-factor", "1").ok()
            MainJob(report, broker, client(classpath, tools), directory, topic, assignor, options.records).run()
    finally:
        tools.close()


def client(classpath, tools):
    java = ["java", *JVM, "-Xmx256m", "-cp", classpath]

    def member(bootstrap, group, topic, assignor, name, pause_ms):
        return [
            *java, "Member", "--bootstrap", bootstrap, "--group", group, "--topic", topic,
            "--assignor", assignor, "--name", name, "--pause-ms", str(pause_ms),
        ]

    def feeder(bootstrap, topic, first, count, rate, name):
        return [
            *java, "Feeder", "--bootstrap", bootstrap, "--topic", topic,
            "--first", str(first), "--count", str(count), "--rate", str(rate), "--name", name,
        ]

    def offsets(_bootstrap, group, _topic):
        rows = tools("kafka-consumer-groups", "--describe", "--group", group, "--offsets").ok().table()
        return {int(row["PARTITION"]): (int(row["CURRENT-OFFSET"]), int(row["LOG-END-OFFSET"])) for row in rows}

    return Client(member, feeder, offsets)
