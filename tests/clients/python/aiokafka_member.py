"""A member with aiokafka, whose rebalances run beside the reading: a lock keeps what was read and its commit together."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, RebalanceInProgressError

from events import Leave, member_arguments, numbers_text, offsets_text, say, say_read

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Member(ConsumerRebalanceListener):
    def __init__(self, arguments):
        self.topic = arguments.topic
        self.pause = arguments.pause_ms / 1000
        self.uncommitted = {}
        self.lock = asyncio.Lock()
        self.leave = Leave()
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=arguments.bootstrap,
            group_id=arguments.group,
            client_id=arguments.name,
            partition_assignment_strategy=[ASSIGNORS[arguments.assignor]],
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            metadata_max_age_ms=2000,
        )
        self.consumer.subscribe([self.topic], listener=self)

    async def run(self):
        await self.consumer.start()
        while not self.leave.asked():
            batches = await self.consumer.getmany(timeout_ms=100, max_records=250)
            async with self.lock:
                for partition, records in batches.items():
                    say_read(partition.partition, [(record.offset, record.value) for record in records])
                    self.uncommitted[partition.partition] = records[-1].offset + 1
                await self.commit()
            await asyncio.sleep(self.pause if batches else 0.001)
        await self.consumer.stop()
        say("left")

    async def commit(self):
        if not self.uncommitted:
            return
        text = offsets_text(self.uncommitted)
        try:
            await self.consumer.commit({TopicPartition(self.topic, partition): offset for partition, offset in self.uncommitted.items()})
        except (CommitFailedError, IllegalStateError, RebalanceInProgressError) as error:
            say("refused", f"{text} {type(error).__name__}")
            return
        except KafkaError:
            return  # the broker is out of reach: tried again after the next poll
        say("committed", text)
        self.uncommitted = {}

    async def on_partitions_assigned(self, assigned):
        say("assigned", f"-1 {numbers_text(partition.partition for partition in assigned)}")

    async def on_partitions_revoked(self, revoked):
        async with self.lock:
            await self.commit()
            for partition in revoked:
                self.uncommitted.pop(partition.partition, None)
            say("revoked", numbers_text(partition.partition for partition in revoked))


async def main():
    await Member(member_arguments()).run()


asyncio.run(main())
