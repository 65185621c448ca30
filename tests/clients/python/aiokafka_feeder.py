"""A producer with aiokafka, idempotent."""

import asyncio
import sys

from aiokafka import AIOKafkaProducer

from events import PADDING, Pace, feeder_arguments


async def main():
    arguments = feeder_arguments()
    producer = AIOKafkaProducer(
        bootstrap_servers=arguments.bootstrap, client_id=arguments.name, enable_idempotence=True, linger_ms=5, request_timeout_ms=60_000
    )
    await producer.start()
    failures = 0

    def report(number, future):
        nonlocal failures
        if future.exception() is None:
            sys.stdout.write(f"acked {future.result().partition} {future.result().offset} {number}\n")
        else:
            failures += 1
            sys.stdout.write(f"error {number} {future.exception()!r}\n")

    pace = Pace(arguments.rate)
    sent = []
    for number in range(arguments.first, arguments.first + arguments.count):
        future = await producer.send(arguments.topic, f"{number}{PADDING}".encode(), key=f"key-{number}".encode())
        future.add_done_callback(lambda done, number=number: report(number, done))
        sent.append(future)
        await asyncio.sleep(pace.early())
        sys.stdout.flush()
    await asyncio.gather(*sent, return_exceptions=True)
    await producer.stop()
    sys.stdout.write(f"done {failures}\n")
    sys.stdout.flush()


asyncio.run(main())
