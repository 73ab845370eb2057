import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler;

/** HDFS and YARN in one process, each with two nodes, below a directory; what clients need is in its conf; ends with its input. */
class MiniHadoop {
    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        Configuration wanted = new YarnConfiguration();
        wanted.set(YarnConfiguration.RM_SCHEDULER, FifoScheduler.class.getName());
        wanted.set(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, "256");
        wanted.set(YarnConfiguration.NM_DISK_HEALTH_CHECK_ENABLE, "false"); // a disk nine tenths full would do
        wanted.set(YarnConfiguration.NM_VMEM_CHECK_ENABLED, "false");
        MiniDFSCluster dfs = new MiniDFSCluster.Builder(wanted, directory.resolve("dfs").toFile()).numDataNodes(2).build();
        dfs.waitActive();
        MiniYARNCluster yarn = new MiniYARNCluster("seawall", 2, 1, 1);
        yarn.init(wanted);
        yarn.start();
        yarn.waitForNodeManagersToConnect(60_000);

        Configuration made = new Configuration(yarn.getConfig());
        made.set("fs.defaultFS", dfs.getURI().toString());
        made.unset("net.topology.node.switch.mapping.impl"); // a class that clients do not have
        Path conf = Files.createDirectories(directory.resolve("conf"));
        for (String name : new String[] {"yarn-site.xml", "core-site.xml"}) {
            Path partial = directory.resolve("partial.xml");
            try (OutputStream out = Files.newOutputStream(partial)) {
                made.writeXml(out);
            }
            Files.move(partial, conf.resolve(name));
        }
        System.in.read();
        System.exit(0);
    }
}
