import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends the records numbered from --first, --count of them, with acks=all and the idempotence that Java turns on by
 * default. A record's value is its number, a space and padding. Each acknowledgement is a line
 * `acked PARTITION OFFSET ID`; `done FAILURES` ends it.
 */
public final class Feeder {
    public static void main(String[] args) throws Exception {
        Flags flags = new Flags(args);
        String topic = flags.text("topic");
        int first = flags.number("first", 0);
        int count = flags.number("count", 1);
        int rate = flags.number("rate", 0);
        String padding = " " + "x".repeat(flags.number("padding", 90));
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, flags.text("bootstrap"));
        properties.put(ProducerConfig.CLIENT_ID_CONFIG, flags.text("name", "feeder"));
        properties.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        properties.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        properties.put(ProducerConfig.ACKS_CONFIG, "all");
        flags.applySettings(properties);
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false);
        AtomicLong failures = new AtomicLong();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            long start = System.nanoTime();
            for (int id = first; id < first + count; id++) {
                int number = id;
                producer.send(new ProducerRecord<>(topic, "key-" + id, id + padding), (metadata, error) -> {
                    synchronized (out) {
                        if (error == null) {
                            out.println("acked " + metadata.partition() + " " + metadata.offset() + " " + number);
                        } else {
                            failures.incrementAndGet();
                            out.println("error " + number + " " + error);
                        }
                    }
                });
                if (rate > 0) {
                    long due = start + (long) (id - first + 1) * 1_000_000_000L / rate;
                    long early = due - System.nanoTime();
                    if (early > 2_000_000) {
                        synchronized (out) {
                            out.flush();
                        }
                        Thread.sleep(early / 1_000_000);
                    }
                }
            }
            producer.flush();
        }
        out.println("done " + failures.get());
        out.flush();
    }
}
