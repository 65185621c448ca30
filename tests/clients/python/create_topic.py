"""Creates a topic with librdkafka's admin client: BOOTSTRAP TOPIC PARTITIONS."""

import sys

from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, topic, partitions = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": bootstrap})
created = admin.create_topics([NewTopic(topic, int(partitions), 1)], request_timeout=20)
created[topic].result(30)
