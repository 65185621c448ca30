"""The committed and the end offset of each partition, a line each, by librdkafka: BOOTSTRAP GROUP TOPIC."""

import sys

from confluent_kafka import Consumer, TopicPartition

bootstrap, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
partitions = [TopicPartition(topic, partition) for partition in consumer.list_topics(topic, 20).topics[topic].partitions]
for answer in consumer.committed(partitions, 20):
    if answer.error is not None:
        sys.exit(f"partition {answer.partition}: {answer.error}")
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, answer.partition), 20)
    print(answer.partition, answer.offset, end)
consumer.close()
