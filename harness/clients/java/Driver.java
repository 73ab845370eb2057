import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
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
        PrintStream answers = System.out;
        System.setOut(System.err); // what Kafka's client logs is no answer
        Thread writer = new Thread(() -> write(answers), "answers");
        writer.setDaemon(true);
        writer.start();
        try {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                take(JSON.readTree(line));
            }
        } finally {
            Runtime.getRuntime().halt(0); // also when seawall was killed within a line
        }
    }

    private static void take(JsonNode request) {
        int number = request.get("client").asInt();
        switch (request.get("do").asText()) {
            case "producer", "transactions", "consumer", "share_consumer", "group_configs" -> make(number, request);
            default -> {
                Client client = CLIENTS.get(number);
                if (client == null) {
                    fail(request, new IllegalStateException("the client is closed"));
                } else {
                    client.take(request);
                }
            }
        }
    }

    private static void make(int number, JsonNode request) {
        try {
            CLIENTS.put(number, switch (request.get("do").asText()) {
                case "producer" -> new Producers.Plain(settings(request));
                case "transactions" -> new Producers.Transactional(settings(request));
                case "share_consumer" -> shared("ShareConsumers", request);
                case "group_configs" -> shared("ShareConsumers$Groups", request);
                default -> new Consumers(settings(request));
            });
            end(answer(request));
        } catch (Throwable refused) {
            fail(request, refused.getCause() == null ? refused : refused.getCause());
        }
    }

    /** A client of a class that is not compiled against a release without share groups. */
    private static Client shared(String name, JsonNode request) throws ReflectiveOperationException {
        return (Client) Class.forName(name).getDeclaredConstructor(Properties.class).newInstance(settings(request));
    }

    /** A thread for the requests about one client. */
    static ExecutorService thread() {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
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
        Errors error = Errors.forException(why);
        return error == Errors.UNKNOWN_SERVER_ERROR ? why.getClass().getSimpleName() : error.name();
    }

    private static Properties settings(JsonNode request) {
        Properties settings = new Properties();
        JsonNode written = request.get("settings");
        written.fieldNames().forEachRemaining(name -> settings.put(name, written.get(name).asText()));
        return settings;
    }

    private static void write(PrintStream answers) {
        try (BufferedWriter out = new BufferedWriter(new OutputStreamWriter(answers, StandardCharsets.UTF_8))) {
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
