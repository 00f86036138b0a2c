import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.List;

/** The SDK has no batches yet. */
final class Batch {

    private Batch() {}

    static void register(NamingService naming, String service, List<Instance> instances) {
        throw new UnsupportedOperationException("this release has no batch");
    }
}
