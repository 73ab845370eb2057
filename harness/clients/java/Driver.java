import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Runs Apache Kafka's own clients for seawall: a request is a line of JSON on the standard input, and an answer one on
 * the standard output. Each client has a thread of its own; the process ends when its standard input does.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final BlockingQueue<ObjectNode> ANSWERS = new LinkedBlockingQueue<>();
    private static final Map<Integer, Client> CLIENTS = new ConcurrentHashMap<>();

    /** What serves the requests about one Kafka client. */
    interface Client {
        /** Begin to serve a request; does not wait. */
        void take(JsonNode request);
    }

    private Driver() {}

    public static void main(String[] words) throws IOException {
        Thread writer = new Thread(Driver::write, "answers");
        writer.setDaemon(true);
        writer.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            int number = request.get("client").asInt();
            switch (request.get("do").asText()) {
                case "producer", "transactions", "consumer" -> CLIENTS.put(number, made(request));
                default -> CLIENTS.get(number).take(request); // one that is closed is asked nothing any more
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** A new client; one that cannot be made answers every request with the reason. */
    private static Client made(JsonNode request) {
        try {
            return switch (request.get("do").asText()) {
                case "producer" -> new Producers.Plain(settings(request));
                case "transactions" -> new Producers.Transactional(settings(request));
                default -> new Consumers(settings(request));
            };
        } catch (RuntimeException refused) {
            Throwable why = refused.getCause() == null ? refused : refused.getCause();
            System.err.println(why);
            return later -> fail(later, why);
        }
    }

    static Client client(int number) {
        return CLIENTS.get(number);
    }

    /** The client of a request to close it is closed. */
    static void closed(JsonNode request) {
        CLIENTS.remove(request.get("client").asInt());
    }

    /** An answer to a request, which may have several; the last one says so. */
    static ObjectNode answer(JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", request.get("id"));
        return answer;
    }

    static void say(ObjectNode answer) {
        ANSWERS.add(answer);
    }

    static void end(ObjectNode answer) {
        say(answer.put("end", true));
    }

    /** The last answer to a request that has failed. */
    static void fail(JsonNode request, Throwable why) {
        end(answer(request).put("error", name(why)).put("text", String.valueOf(why.getMessage())));
    }

    /** The name of an error: that of the protocol's error code, or else one of librdkafka's, or of the class. */
    static String name(Throwable why) {
        if (why instanceof LogTruncationException) {
            return "_LOG_TRUNCATION";
        }
        if (why instanceof OffsetOutOfRangeException) {
            return "OFFSET_OUT_OF_RANGE";
        }
        if (why instanceof NoOffsetForPartitionException) {
            return "_AUTO_OFFSET_RESET";
        }
        if (why instanceof TimeoutException) {
            return "_TIMED_OUT";
        }
        if (why instanceof CommitFailedException) {
            return "ILLEGAL_GENERATION";
        }
        Errors error = Errors.forException(why);
        return error == Errors.UNKNOWN_SERVER_ERROR ? why.getClass().getSimpleName() : error.name();
    }

    private static Properties settings(JsonNode request) {
        Properties settings = new Properties();
        JsonNode written = request.get("settings");
        written.fieldNames().forEachRemaining(name -> settings.put(name, written.get(name).asText()));
        return settings;
    }

    private static void write() {
        try (BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8))) {
            while (true) {
                for (ObjectNode next = ANSWERS.take(); next != null; next = ANSWERS.poll()) {
                    out.write(JSON.writeValueAsString(next));
                    out.write('\n');
                }
                out.flush();
            }
        } catch (IOException | InterruptedException gone) {
            Runtime.getRuntime().halt(1);
        }
    }
}
