"""A producer with confluent-kafka, idempotent."""

import sys

from confluent_kafka import Producer

from events import PADDING, Pace, feeder_arguments

arguments = feeder_arguments()
producer = Producer(
    {"bootstrap.servers": arguments.bootstrap, "client.id": arguments.name, "enable.idempotence": True, "linger.ms": 5, "compression.type": "lz4"},
)
failures = 0


def delivered(number):
    def report(error, message):
        global failures
        if error is None:
            sys.stdout.write(f"acked {message.partition()} {message.offset()} {number}\n")
        else:
            failures += 1
            sys.stdout.write(f"error {number} {error}\n")

    return report


pace = Pace(arguments.rate)
for number in range(arguments.first, arguments.first + arguments.count):
    while True:
        try:
            producer.produce(arguments.topic, key=f"key-{number}", value=f"{number}{PADDING}", on_delivery=delivered(number))
            break
        except BufferError:
            producer.poll(0.1)
    producer.poll(pace.early())
    sys.stdout.flush()
producer.flush(60)
sys.stdout.write(f"done {failures}\n")
sys.stdout.flush()
