import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** One member of a group. Says on stdout what happens to it, in the lines that harness/history.py describes. */
public final class Member implements ConsumerRebalanceListener {
    private final KafkaConsumer<String, String> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> uncommitted = new HashMap<>();
    private final int pauseMs;
    private volatile boolean leaving = false;

    private Member(Flags flags) {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, flags.text("bootstrap"));
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, flags.text("group"));
        properties.put(ConsumerConfig.CLIENT_ID_CONFIG, flags.text("name"));
        properties.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, "classic");
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class.getName());
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class.getName());
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        properties.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "6000");
        properties.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "500");
        properties.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, "250");
        properties.put(ConsumerConfig.METADATA_MAX_AGE_CONFIG, "2000");
        properties.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, assignor(flags.text("assignor")));
        flags.applySettings(properties);
        consumer = new KafkaConsumer<>(properties);
        consumer.subscribe(List.of(flags.text("topic").split(",")), this);
        pauseMs = flags.number("pause-ms", 0);
    }

    private static String assignor(String name) {
        return switch (name) {
            case "range" -> "org.apache.kafka.clients.consumer.RangeAssignor";
            case "roundrobin" -> "org.apache.kafka.clients.consumer.RoundRobinAssignor";
            case "sticky" -> "org.apache.kafka.clients.consumer.StickyAssignor";
            case "cooperative-sticky" -> "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
            default -> name;
        };
    }

    public static void main(String[] args) throws Exception {
        Member member = new Member(new Flags(args));
        Thread commands = new Thread(member::obey, "commands");
        commands.setDaemon(true);
        commands.start();
        member.run();
    }

    /** `leave` closes the consumer; the end of input means that whoever started this process is gone. */
    private void obey() {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.equals("leave")) leaving = true;
            }
        } catch (java.io.IOException e) {
            say("error", e.toString());
        }
        if (!leaving) Runtime.getRuntime().halt(3);
    }

    private void run() throws InterruptedException {
        while (!leaving) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
            for (TopicPartition partition : records.partitions()) {
                List<ConsumerRecord<String, String>> list = records.records(partition);
                StringBuilder ids = new StringBuilder();
                long first = list.get(0).offset();
                long next = first;
                for (ConsumerRecord<String, String> record : list) {
                    if (record.offset() != next) {
                        say("read", partition.partition() + " " + first + ids);
                        ids.setLength(0);
                        first = record.offset();
                    }
                    next = record.offset() + 1;
                    ids.append(' ').append(record.value().split(" ", 2)[0]);
                }
                say("read", partition.partition() + " " + first + ids);
                uncommitted.put(partition, new OffsetAndMetadata(next));
            }
            commit();
            if (pauseMs > 0 && !records.isEmpty()) Thread.sleep(pauseMs);
        }
        consumer.close();
        say("left", "");
    }

    /** What the broker refuses, because a rebalance is under way, is tried again after the next poll. */
    private void commit() {
        if (uncommitted.isEmpty()) return;
        StringBuilder list = new StringBuilder();
        uncommitted.forEach((partition, offset) ->
            list.append(' ').append(partition.partition()).append(':').append(offset.offset()));
        try {
            consumer.commitSync(uncommitted);
            say("committed", list.toString().strip());
            uncommitted.clear();
        } catch (CommitFailedException | RebalanceInProgressException e) {
            say("refused", list.toString().strip() + " " + e.getClass().getSimpleName());
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> gained) {
        say("assigned", consumer.groupMetadata().generationId() + " " + numbers(consumer.assignment()));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        uncommitted.keySet().removeAll(partitions);
        say("revoked", numbers(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        uncommitted.keySet().removeAll(partitions);
        say("lost", numbers(partitions));
    }

    private static String numbers(Collection<TopicPartition> partitions) {
        TreeSet<Integer> numbers = new TreeSet<>();
        for (TopicPartition partition : partitions) numbers.add(partition.partition());
        StringBuilder list = new StringBuilder();
        for (int number : numbers) list.append(list.isEmpty() ? "" : ",").append(number);
        return list.isEmpty() ? "-" : list.toString();
    }

    private static void say(String event, String rest) {
        Instant now = Instant.now();
        long us = now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
        System.out.println(event + " " + us + (rest.isEmpty() ? "" : " " + rest));
        System.out.flush();
    }
}
