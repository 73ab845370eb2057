import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer of a share group that acknowledges explicitly; for the groups' configurations, too. Compiled only against
 * a release that has share groups (4.2).
 */
final class ShareConsumers implements Driver.Client {
    private final ExecutorService thread = Driver.thread();
    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, Map<Long, ConsumerRecord<byte[], byte[]>>> held = new HashMap<>();

    ShareConsumers(Properties settings) {
        consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public void take(JsonNode request) {
        thread.execute(() -> {
            try {
                serve(request);
            } catch (Throwable failed) {
                Driver.fail(request, failed);
            }
        });
    }

    private void serve(JsonNode request) {
        ObjectNode answer = Driver.answer(request);
        switch (request.get("do").asText()) {
            case "subscribe" -> {
                List<String> topics = new ArrayList<>();
                request.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics);
            }
            case "poll" -> poll(request, answer);
            case "acknowledge" -> acknowledge(request, answer);
            case "close" -> {
                try {
                    consumer.close(timeout(request));
                } finally {
                    Driver.closed(request);
                    thread.shutdown();
                }
            }
            default -> throw new IllegalArgumentException(request.get("do").asText());
        }
        Driver.end(answer);
    }

    private void poll(JsonNode request, ObjectNode answer) {
        ArrayNode records = answer.putArray("records");
        held.clear();
        ConsumerRecords<byte[], byte[]> polled = consumer.poll(timeout(request));
        for (ConsumerRecord<byte[], byte[]> one : polled) {
            TopicPartition place = new TopicPartition(one.topic(), one.partition());
            held.computeIfAbsent(place, unused -> new HashMap<>()).put(one.offset(), one);
            records.addArray().add(Consumers.written(one)).add(one.deliveryCount().map(Short::intValue).orElse(null));
        }
    }

    /** Acknowledges records, and answers which it could not, and with what result the brokers took those of each partition. */
    private void acknowledge(JsonNode request, ObjectNode answer) {
        ArrayNode refused = answer.putArray("refused");
        for (JsonNode one : request.get("records")) {
            TopicPartition place = new TopicPartition(one.get(0).asText(), one.get(1).asInt());
            try {
                ConsumerRecord<byte[], byte[]> record = held.get(place).get(one.get(2).asLong());
                consumer.acknowledge(record, AcknowledgeType.valueOf(one.get(3).asText()));
                refused.addNull();
            } catch (RuntimeException unsent) {
                refused.add(Driver.name(unsent));
            }
        }
        ArrayNode results = answer.putArray("results");
        Map<TopicIdPartition, Optional<KafkaException>> done = consumer.commitSync(timeout(request));
        done.forEach((place, failed) -> results.addArray()
                .add(place.topic()).add(place.partition()).add(failed.map(Driver::name).orElse(null)));
    }

    /** Sets configurations of a group. */
    static final class Groups implements Driver.Client {
        private final ExecutorService thread = Driver.thread();
        private final Admin admin;

        Groups(Properties settings) {
            admin = Admin.create(settings);
        }

        @Override
        public void take(JsonNode request) {
            thread.execute(() -> {
                try {
                    serve(request);
                } catch (java.util.concurrent.ExecutionException failed) {
                    Driver.fail(request, failed.getCause());
                } catch (Throwable failed) {
                    Driver.fail(request, failed);
                }
            });
        }

        private void serve(JsonNode request) throws Exception {
            if (request.get("do").asText().equals("close")) {
                admin.close(Duration.ZERO);
                Driver.closed(request);
                thread.shutdown();
            } else {
                List<AlterConfigOp> changes = new ArrayList<>();
                request.get("configs").fields().forEachRemaining(one -> changes.add(new AlterConfigOp(
                        new ConfigEntry(one.getKey(), one.getValue().asText()), AlterConfigOp.OpType.SET)));
                ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, request.get("group").asText());
                admin.incrementalAlterConfigs(Map.of(group, changes)).all().get(
                        request.get("timeout_ms").asLong(), TimeUnit.MILLISECONDS);
            }
            Driver.end(Driver.answer(request));
        }
    }

    private static Duration timeout(JsonNode request) {
        return Duration.ofMillis(request.get("timeout_ms").asLong());
    }
}
