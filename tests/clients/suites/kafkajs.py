"""The main job, smaller, with kafkajs, whose members all use its round robin."""

from harness import toolchain
from harness.main_job import Client, MainJob, create_topic, offsets_by_librdkafka

RECORDS = 6_000


def run(report, broker, directory, options):
    modules = toolchain.node()
    with report.case("a topic is created"):
        create_topic(toolchain.python(), broker.bootstrap, "kafkajs")
    MainJob(report, broker, client(modules), directory, "kafkajs", "roundrobin", RECORDS, seconds=8).run()


def client(modules):
    node = ["env", f"NODE_PATH={modules}/node_modules", "node", toolchain.source("node", "kafkajs.js")]

    def member(bootstrap, group, topic, _assignor, name, pause_ms):
        return [*node, "member", "--bootstrap", bootstrap, "--group", group, "--topic", topic, "--name", name, "--pause-ms", str(pause_ms)]

    def feeder(bootstrap, topic, first, count, rate, name):
        return [
            *node, "feeder", "--bootstrap", bootstrap, "--topic", topic,
            "--first", str(first), "--count", str(count), "--rate", str(rate), "--name", name,
        ]  # fmt: skip

    return Client(member, feeder, offsets_by_librdkafka(toolchain.python()))
