"""A member with confluent-kafka, which is librdkafka."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from events import Leave, member_arguments, numbers_text, offsets_text, say, say_read

BATCH = 250

# A commit that came to nothing because of a rebalance; anything else is a broker out of reach.
REFUSED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError._STATE,
    KafkaError._NO_OFFSET,
}


class Member:
    def __init__(self, arguments):
        self.topic = arguments.topic
        self.pause = arguments.pause_ms / 1000
        self.cooperative = arguments.assignor.startswith("cooperative")
        self.owned = set()
        self.batch = []
        self.uncommitted = {}
        self.leave = Leave()
        self.consumer = Consumer(
            {
                "bootstrap.servers": arguments.bootstrap,
                "group.id": arguments.group,
                "client.id": arguments.name,
                "partition.assignment.strategy": arguments.assignor,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 2000,
            },
        )
        self.consumer.subscribe([self.topic], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.lost)

    def run(self):
        while not self.leave.asked():
            message = self.consumer.poll(0.1)
            while message is not None:
                if message.error() is None:
                    self.batch.append(message)
                message = self.consumer.poll(0) if len(self.batch) < BATCH else None
            worked = bool(self.batch)
            self.work()
            if worked:
                time.sleep(self.pause)
        self.consumer.close()
        say("left")

    def work(self):
        by_partition = {}
        for message in self.batch:
            by_partition.setdefault(message.partition(), []).append((message.offset(), message.value()))
        self.batch = []
        for partition, records in by_partition.items():
            say_read(partition, records)
            self.uncommitted[partition] = records[-1][0] + 1
        self.commit()

    def commit(self):
        if not self.uncommitted:
            return
        text = offsets_text(self.uncommitted)
        try:
            answers = self.consumer.commit(
                offsets=[TopicPartition(self.topic, partition, offset) for partition, offset in self.uncommitted.items()], asynchronous=False
            )
            failed = [answer.error for answer in answers if answer.error is not None]
            if failed:
                raise KafkaException(failed[0])
        except KafkaException as error:
            if error.args[0].code() in REFUSED:
                say("refused", f"{text} {error.args[0].name()}")
            return
        say("committed", text)
        self.uncommitted = {}

    def assigned(self, _consumer, partitions):
        gained = {partition.partition for partition in partitions}
        self.owned = self.owned | gained if self.cooperative else gained
        say("assigned", f"-1 {numbers_text(self.owned)}")

    def revoked(self, _consumer, partitions):
        self.work()
        self.give_up("revoked", partitions)

    def lost(self, _consumer, partitions):
        self.batch = []
        self.give_up("lost", partitions)

    def give_up(self, how, partitions):
        gone = {partition.partition for partition in partitions}
        self.owned -= gone
        for partition in gone:
            self.uncommitted.pop(partition, None)
        say(how, numbers_text(gone))


Member(member_arguments()).run()
