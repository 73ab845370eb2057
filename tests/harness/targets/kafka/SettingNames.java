import java.lang.reflect.Method;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

/** Prints the names of all settings that the brokers of a release know, those that no document names included. */
public class SettingNames {
    public static void main(String[] none) throws Exception {
        Object brokers = Class.forName("kafka.server.KafkaConfig$").getField("MODULE$").get(null);
        for (Method method : brokers.getClass().getDeclaredMethods())
            if (method.getReturnType() == ConfigDef.class && method.getParameterCount() == 0) {
                method.setAccessible(true);
                new TreeSet<>(((ConfigDef) method.invoke(brokers)).names()).forEach(System.out::println);
                return;
            }
        throw new IllegalStateException("kafka.server.KafkaConfig has no method that returns a ConfigDef");
    }
}
