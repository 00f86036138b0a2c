import com.alibaba.nacos.api.exception.NacosException;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.List;

/** Several instances of one service in one request: since 2.1.1. */
final class Batch {

    private Batch() {}

    static void register(NamingService naming, String service, List<Instance> instances) throws NacosException {
        naming.batchRegisterInstance(service, "DEFAULT_GROUP", instances);
    }
}
