import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer that is assigned partitions, or subscribes to topics. While it learns of a rebalance it asks seawall where
 * to begin, and serves what seawall asks meanwhile.
 */
final class Consumers implements Driver.Client, ConsumerRebalanceListener {
    private static final long BEGINNING = -2;
    private final ExecutorService thread = Driver.thread();
    private final BlockingQueue<JsonNode> nested = new LinkedBlockingQueue<>();
    private final KafkaConsumer<byte[], byte[]> consumer;
    private JsonNode current;

    Consumers(Properties settings) {
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public void take(JsonNode request) {
        if (request.has("nested")) {
            nested.add(request);
        } else {
            thread.execute(() -> served(request));
        }
    }

    /** What a transactional producer says of the member. */
    ConsumerGroupMetadata metadata() throws Exception {
        return thread.submit(consumer::groupMetadata).get();
    }

    private void served(JsonNode request) {
        try {
            serve(request);
        } catch (Throwable failed) {
            Driver.fail(request, failed);
        }
    }

    private void serve(JsonNode request) throws ReflectiveOperationException {
        ObjectNode answer = Driver.answer(request);
        switch (request.get("do").asText()) {
            case "assign" -> assign(request.get("positions"));
            case "subscribe" -> subscribe(request);
            case "poll" -> {
                current = request;
                poll(request, answer);
            }
            case "bounds" -> bounds(request, answer);
            case "offset_for_time" -> offsetForTime(request, answer);
            case "commit" -> consumer.commitSync(offsets(request.get("offsets")), timeout(request));
            case "commit_async" -> {
                consumer.commitAsync(offsets(request.get("offsets")), (stored, failed) -> {
                    if (failed == null) {
                        Driver.end(answer);
                    } else {
                        Driver.fail(request, failed);
                    }
                });
                return; // the answer comes with a later poll
            }
            case "committed" -> committed(request, answer);
            case "generation" -> answer.put("generation", consumer.groupMetadata().generationId());
            case "close" -> {
                current = request;
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

    private void subscribe(JsonNode request) throws ReflectiveOperationException {
        if (request.get("pattern").isNull()) {
            List<String> topics = new ArrayList<>();
            request.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        } else if (request.get("by_broker").asBoolean()) {
            // by its name, for releases before 4.0 do not have it
            Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object pattern = kind.getConstructor(String.class).newInstance(request.get("pattern").asText());
            try {
                KafkaConsumer.class.getMethod("subscribe", kind, ConsumerRebalanceListener.class)
                        .invoke(consumer, pattern, this);
            } catch (InvocationTargetException refused) {
                throw new IllegalStateException(refused.getCause());
            }
        } else {
            consumer.subscribe(Pattern.compile(request.get("pattern").asText()), this);
        }
    }

    private void assign(JsonNode positions) {
        Map<TopicPartition, OffsetAndMetadata> begins = offsets(positions);
        consumer.assign(begins.keySet());
        seek(begins);
    }

    private void seek(Map<TopicPartition, OffsetAndMetadata> begins) {
        begins.forEach((place, begin) -> {
            if (begin.offset() == 0 && begin.metadata().equals("beginning")) {
                consumer.seekToBeginning(List.of(place));
            } else {
                consumer.seek(place, begin);
            }
        });
    }

    private void poll(JsonNode request, ObjectNode answer) {
        ArrayNode records = answer.putArray("records");
        try {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(timeout(request));
            polled.forEach(one -> records.add(written(one)));
        } catch (KafkaException failed) {
            answer.put("error", Driver.name(failed)).put("text", String.valueOf(failed.getMessage()));
            if (failed instanceof OffsetOutOfRangeException moved) {
                ArrayNode places = answer.putArray("out_of_range");
                moved.offsetOutOfRangePartitions().forEach((place, position) ->
                        places.addArray().add(place.topic()).add(place.partition()).add(position));
            }
        }
        ArrayNode positions = answer.putArray("positions");
        for (TopicPartition place : consumer.assignment()) {
            try {
                long position = consumer.position(place, Duration.ZERO);
                positions.addArray().add(place.topic()).add(place.partition()).add(position);
            } catch (KafkaException | IllegalStateException unknown) {
                continue; // it has none yet
            }
        }
    }

    static ArrayNode written(ConsumerRecord<byte[], byte[]> record) {
        ArrayNode written = Driver.JSON.createArrayNode();
        written.add(record.topic()).add(record.partition()).add(record.offset()).add(record.leaderEpoch().orElse(-1));
        written.add(record.timestamp()).add(record.timestampType() == TimestampType.CREATE_TIME);
        written.add(record.key()).add(record.value());
        ArrayNode headers = written.addArray();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return written;
    }

    private void bounds(JsonNode request, ObjectNode answer) {
        TopicPartition place = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        Set<TopicPartition> asked = Set.of(place);
        answer.put("start", consumer.beginningOffsets(asked, timeout(request)).get(place));
        answer.put("stop", consumer.endOffsets(asked, timeout(request)).get(place));
    }

    private void offsetForTime(JsonNode request, ObjectNode answer) {
        TopicPartition place = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        Map<TopicPartition, Long> asked = Map.of(place, request.get("timestamp_ms").asLong());
        OffsetAndTimestamp found = consumer.offsetsForTimes(asked, timeout(request)).get(place);
        if (found != null) {
            answer.put("offset", found.offset());
        }
    }

    private void committed(JsonNode request, ObjectNode answer) {
        Set<TopicPartition> asked = new HashSet<>();
        request.get("partitions").forEach(one -> asked.add(place(one)));
        ArrayNode offsets = answer.putArray("offsets");
        consumer.committed(asked, timeout(request)).forEach((place, one) -> {
            if (one != null) {
                int epoch = one.leaderEpoch().orElse(-1);
                offsets.addArray().add(place.topic()).add(place.partition()).add(one.offset()).add(epoch);
            }
        });
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalanced("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        rebalanced("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        rebalanced("lost", partitions);
    }

    /** Tell seawall, and serve what it asks, until it says where to begin. */
    private void rebalanced(String change, Collection<TopicPartition> partitions) {
        ObjectNode news = Driver.answer(current).put("change", change);
        ArrayNode names = news.putArray("partitions");
        partitions.forEach(place -> names.addArray().add(place.topic()).add(place.partition()));
        Driver.say(news);
        try {
            JsonNode request = nested.take();
            while (!request.get("do").asText().equals("begin")) {
                served(request);
                request = nested.take();
            }
            if (request.get("begins").isNull()) {
                consumer.pause(partitions);
            } else {
                seek(offsets(request.get("begins")));
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static Duration timeout(JsonNode request) {
        return Duration.ofMillis(request.get("timeout_ms").asLong());
    }

    private static TopicPartition place(JsonNode one) {
        return new TopicPartition(one.get(0).asText(), one.get(1).asInt());
    }

    /** Offsets as seawall writes them: {@code [topic, partition, offset, leader epoch]}, -1 for an unknown epoch. */
    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode written) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode one : written) {
            long offset = one.get(2).asLong();
            int epoch = one.get(3).asInt();
            boolean isBeginning = offset == BEGINNING;
            offsets.put(place(one), new OffsetAndMetadata(
                    isBeginning ? 0 : offset, epoch < 0 ? Optional.empty() : Optional.of(epoch),
                    isBeginning ? "beginning" : ""));
        }
        return offsets;
    }
}
