"""A member with kafka-python."""

import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from events import Leave, member_arguments, numbers_text, offsets_text, say, say_read

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Member(ConsumerRebalanceListener):
    def __init__(self, arguments):
        self.topic = arguments.topic
        self.pause = arguments.pause_ms / 1000
        self.uncommitted = {}
        self.leave = Leave()
        self.consumer = KafkaConsumer(
            bootstrap_servers=arguments.bootstrap,
            group_id=arguments.group,
            client_id=arguments.name,
            partition_assignment_strategy=[ASSIGNORS[arguments.assignor]],
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            metadata_max_age_ms=2000,
            max_poll_records=250,
        )
        self.consumer.subscribe([self.topic], listener=self)

    def run(self):
        while not self.leave.asked():
            batches = self.consumer.poll(timeout_ms=100)
            for partition, records in batches.items():
                say_read(partition.partition, [(record.offset, record.value) for record in records])
                self.uncommitted[partition.partition] = records[-1].offset + 1
            self.commit()
            if batches:
                time.sleep(self.pause)
        self.consumer.close()
        say("left")

    def commit(self):
        if not self.uncommitted:
            return
        text = offsets_text(self.uncommitted)
        try:
            self.consumer.commit({TopicPartition(self.topic, partition): OffsetAndMetadata(offset, "", -1) for partition, offset in self.uncommitted.items()})
        except (CommitFailedError, RebalanceInProgressError) as error:
            say("refused", f"{text} {type(error).__name__}")
            return
        except KafkaError:
            return  # the broker is out of reach: tried again after the next poll
        say("committed", text)
        self.uncommitted = {}

    def on_partitions_assigned(self, assigned):
        say("assigned", f"-1 {numbers_text(partition.partition for partition in self.consumer.assignment() | set(assigned))}")

    def on_partitions_revoked(self, revoked):
        self.commit()
        self.give_up("revoked", revoked)

    def on_partitions_lost(self, lost):
        self.give_up("lost", lost)

    def give_up(self, how, partitions):
        for partition in partitions:
            self.uncommitted.pop(partition.partition, None)
        say(how, numbers_text(partition.partition for partition in partitions))


Member(member_arguments()).run()
