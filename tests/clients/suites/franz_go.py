"""The main job, smaller, with franz-go."""

from harness import toolchain
from harness.main_job import Client, MainJob, create_topic, offsets_by_librdkafka

RECORDS = 12_000
ASSIGNORS = ("cooperative-sticky", "range")


def run(report, broker, directory, options):
    binary = toolchain.go("franz")
    for assignor in ASSIGNORS:
        topic = f"franz-go-{assignor}"
        with report.case(f"{topic}: a topic is created"):
            create_topic(toolchain.python(), broker.bootstrap, topic)
        MainJob(report, broker, client(binary), directory, topic, assignor, RECORDS, seconds=8).run()


def client(binary):
    def member(bootstrap, group, topic, assignor, name, pause_ms):
        return [
            binary, "member", "-bootstrap", bootstrap, "-group", group, "-topic", topic,
            "-assignor", assignor, "-name", name, "-pause-ms", str(pause_ms),
        ]  # fmt: skip

    def feeder(bootstrap, topic, first, count, rate, name):
        return [
            binary, "feeder", "-bootstrap", bootstrap, "-topic", topic,
            "-first", str(first), "-count", str(count), "-rate", str(rate), "-name", name,
        ]  # fmt: skip

    return Client(member, feeder, offsets_by_librdkafka(toolchain.python()), keeps_while_away=False)
