"""A producer with kafka-python, idempotent."""

import sys
import threading
import time

from kafka import KafkaProducer

from events import PADDING, Pace, feeder_arguments

arguments = feeder_arguments()
producer = KafkaProducer(
    bootstrap_servers=arguments.bootstrap,
    client_id=arguments.name,
    acks="all",
    enable_idempotence=True,
    linger_ms=5,
    compression_type="gzip",
)
lock = threading.Lock()
failures = 0


def acked(number):
    def report(metadata):
        with lock:
            sys.stdout.write(f"acked {metadata.partition} {metadata.offset} {number}\n")

    return report


def failed(number):
    def report(error):
        global failures
        with lock:
            failures += 1
            sys.stdout.write(f"error {number} {error!r}\n")

    return report


pace = Pace(arguments.rate)
for number in range(arguments.first, arguments.first + arguments.count):
    future = producer.send(arguments.topic, key=f"key-{number}".encode(), value=f"{number}{PADDING}".encode())
    future.add_callback(acked(number))
    future.add_errback(failed(number))
    time.sleep(pace.early())
    with lock:
        sys.stdout.flush()
producer.flush(60)
producer.close()
sys.stdout.write(f"done {failures}\n")
sys.stdout.flush()
