"""The main job, smaller, with the clients of Python: librdkafka (confluent-kafka), kafka-python and aiokafka."""

from harness import toolchain
from harness.main_job import Client, MainJob, create_topic, offsets_by_librdkafka

RECORDS = 12_000
JOBS = (
    ("librdkafka", "range"),
    ("librdkafka", "cooperative-sticky"),
    ("kafka_python", "cooperative-sticky"),
    ("aiokafka", "roundrobin"),
)


def run(report, broker, directory, options):
    python = toolchain.python()
    for library, assignor in JOBS:
        topic = f"{library}-{assignor}"
        with report.case(f"{topic}: a topic is created"):
            create_topic(python, broker.bootstrap, topic)
        MainJob(report, broker, client(python, library), directory, topic, assignor, RECORDS, seconds=8).run()


def client(python, library):
    def member(bootstrap, group, topic, assignor, name, pause_ms):
        return [
            python, toolchain.source("python", f"{library}_member.py"), "--bootstrap", bootstrap, "--group", group,
            "--topic", topic, "--assignor", assignor, "--name", name, "--pause-ms", str(pause_ms),
        ]  # fmt: skip

    def feeder(bootstrap, topic, first, count, rate, name):
        return [
            python, toolchain.source("python", f"{library}_feeder.py"), "--bootstrap", bootstrap, "--topic", topic,
            "--first", str(first), "--count", str(count), "--rate", str(rate), "--name", name,
        ]  # fmt: skip

    return Client(member, feeder, offsets_by_librdkafka(python))
