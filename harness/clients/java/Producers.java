import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers: those that send record after record, and those that send in transactions. */
final class Producers {
    private Producers() {}

    private static KafkaProducer<byte[], byte[]> made(Properties settings) {
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode request, JsonNode one) {
        try {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : one.get("headers")) {
                JsonNode content = header.get(1);
                headers.add(new RecordHeader(header.get(0).asText(), content.isNull() ? null : content.binaryValue()));
            }
            return new ProducerRecord<>(
                    request.get("topic").asText(), request.get("partition").asInt(), one.get("timestamp").asLong(),
                    one.get("key").binaryValue(), one.get("value").binaryValue(), headers);
        } catch (IOException damaged) {
            throw new UncheckedIOException(damaged);
        }
    }

    /** Sends record after record; each of their answers is an answer to the request. */
    static final class Plain implements Driver.Client {
        private final ExecutorService thread = Driver.thread();
        private final KafkaProducer<byte[], byte[]> producer;

        Plain(Properties settings) {
            producer = made(settings);
        }

        @Override
        public void take(JsonNode request) {
            thread.execute(() -> {
                if (request.get("do").asText().equals("close")) {
                    producer.close(Duration.ZERO);
                    Driver.closed(request);
                    thread.shutdown();
                } else {
                    send(request);
                }
            });
        }

        private void send(JsonNode request) {
            JsonNode records = request.get("records");
            AtomicInteger left = new AtomicInteger(records.size());
            for (int index = 0; index < records.size(); index++) {
                int number = index;
                try {
                    producer.send(
                            record(request, records.get(index)), (where, why) -> say(request, number, where, why, left));
                } catch (Throwable refused) { // so is one that the producer does not take at all
                    say(request, number, null, refused, left);
                }
            }
        }

        private static void say(JsonNode request, int index, RecordMetadata where, Throwable why, AtomicInteger left) {
            ObjectNode answer = Driver.answer(request).put("index", index);
            if (why == null) {
                answer.put("offset", where.hasOffset() ? where.offset() : -1);
            } else {
                answer.put("failed", Driver.name(why));
            }
            if (left.decrementAndGet() == 0) {
                Driver.end(answer);
            } else {
                Driver.say(answer);
            }
        }
    }

    /** Sends in transactions, one at a time. */
    static final class Transactional implements Driver.Client {
        private final ExecutorService thread = Driver.thread();
        private final KafkaProducer<byte[], byte[]> producer;

        Transactional(Properties settings) {
            producer = made(settings);
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

        private void serve(JsonNode request) throws Exception {
            switch (request.get("do").asText()) {
                case "init" -> producer.initTransactions();
                case "begin" -> producer.beginTransaction();
                case "send" -> {
                    send(request);
                    return;
                }
                case "offsets" -> {
                    Consumers member = (Consumers) Driver.client(request.get("member").asInt());
                    ConsumerGroupMetadata metadata = member.metadata();
                    producer.sendOffsetsToTransaction(Consumers.offsets(request.get("offsets")), metadata);
                }
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                case "close" -> {
                    producer.close(Duration.ZERO);
                    Driver.closed(request);
                    thread.shutdown();
                }
                default -> throw new IllegalArgumentException(request.get("do").asText());
            }
            Driver.end(Driver.answer(request));
        }

        /** Send records, and wait until each has been answered. */
        private void send(JsonNode request) throws Exception {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode one : request.get("records")) {
                sent.add(producer.send(record(request, one)));
            }
            producer.flush();
            ArrayNode offsets = Driver.JSON.createArrayNode();
            Throwable why = null;
            for (Future<RecordMetadata> one : sent) {
                try {
                    RecordMetadata where = one.get();
                    if (where.hasOffset()) {
                        offsets.add(where.offset());
                    } else { // the leader had it before
                        offsets.addNull();
                    }
                } catch (java.util.concurrent.ExecutionException failed) {
                    offsets.addNull();
                    why = why == null ? failed.getCause() : why;
                }
            }
            ObjectNode answer = Driver.answer(request);
            answer.set("offsets", offsets);
            if (why != null) {
                answer.put("error", Driver.name(why)).put("text", String.valueOf(why.getMessage()));
            }
            Driver.end(answer);
        }
    }
}
