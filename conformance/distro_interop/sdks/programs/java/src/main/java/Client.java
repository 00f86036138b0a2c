import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.NamingEvent;
import com.alibaba.nacos.api.naming.pojo.Instance;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;

/** The official Java SDK behind the commands of ../README.md. */
public final class Client {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true);

    private final NamingService naming;

    private Client(NamingService naming) {
        this.naming = naming;
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // whatever the SDK prints: stdout carries the contract
        NamingService naming = NacosFactory.createNamingService(properties(args));
        emit(Map.of("ready", jar()));
        new Client(naming).obeyAll();
        naming.shutDown();
        emit(Map.of("done", "close"));
        System.exit(0); // threads of the 1.x SDK outlive its shutdown
    }

    /** Its name says the version: nacos-client-2.5.1, for instance. */
    private static String jar() {
        String path = NacosFactory.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return path.replaceAll(".*/|[.]jar$", "");
    }

    private static Properties properties(String[] args) {
        Map<String, String> keys = Map.of("--server", "serverAddr", "--username", "username", "--password", "password");
        Properties properties = new Properties();
        for (int i = 0; i + 1 < args.length; i += 2) {
            properties.setProperty(keys.get(args[i]), args[i + 1]);
        }
        return properties;
    }

    private void obeyAll() throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("close"); line = commands.readLine()) {
            List<String> words = Arrays.asList(line.split(" "));
            try {
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("done", words.get(0));
                answer.putAll(executeCommand(words.get(0), words.subList(1, words.size())));
                emit(answer);
            } catch (Exception error) { // report every error of the SDK
                emit(Map.of("error", error.toString()));
            }
        }
    }

    private Map<String, Object> executeCommand(String verb, List<String> words) throws Exception {
        String service = words.get(0);
        switch (verb) {
            case "register":
                naming.registerInstance(service, instance(words.get(1), words.get(2), words.subList(3, words.size())));
                return Map.of();
            case "batch":
                Batch.register(naming, service, Arrays.stream(words.get(1).split(","))
                        .map(address -> address.split(":"))
                        .map(pair -> instance(pair[0], pair[1], List.of()))
                        .collect(Collectors.toList()));
                return Map.of();
            case "deregister":
                naming.deregisterInstance(service, words.get(1), Integer.parseInt(words.get(2)));
                return Map.of();
            case "subscribe":
                naming.subscribe(service, event -> emit(Map.of(
                        "pushed", service, "instances", described(((NamingEvent) event).getInstances()))));
                return Map.of();
            case "query":
                return Map.of("instances", described(naming.getAllInstances(service)));
            default:
                throw new IllegalArgumentException("no command " + verb);
        }
    }

    private static Instance instance(String ip, String port, List<String> pairs) {
        Map<String, String> options = new HashMap<>();
        pairs.stream().map(pair -> pair.split("=", 2)).forEach(pair -> options.put(pair[0], pair[1]));
        Instance instance = new Instance();
        instance.setIp(ip);
        instance.setPort(Integer.parseInt(port));
        instance.setWeight(Double.parseDouble(options.getOrDefault("weight", "1.0")));
        instance.setClusterName(options.getOrDefault("cluster", "DEFAULT"));
        options.keySet().removeAll(List.of("weight", "cluster"));
        instance.setMetadata(options);
        return instance;
    }

    private static List<Map<String, Object>> described(List<Instance> instances) {
        return instances.stream().map(instance -> Map.<String, Object>of(
                "ip", instance.getIp(),
                "port", instance.getPort(),
                "weight", instance.getWeight(),
                "healthy", instance.isHealthy(),
                "cluster", instance.getClusterName(),
                "metadata", instance.getMetadata())).collect(Collectors.toList());
    }

    private static synchronized void emit(Map<String, ?> line) {
        try {
            OUT.println(JSON.writeValueAsString(line));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
