// The Java driver against a server: one line for each check, "ok name" or "no name: why".

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.ResultSet;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.ser.GraphSONMessageSerializerV2d0;

public class DriverCheck {
    interface Check { void run(Client client) throws Exception; }

    public static void main(String[] arguments) throws Exception {
        Cluster cluster = Cluster.build("127.0.0.1").port(Integer.parseInt(arguments[0]))
            .credentials(arguments[1], arguments[2])
            .serializer(new GraphSONMessageSerializerV2d0())
            .enableSsl(true).sslSkipCertValidation(true)
            .minConnectionPoolSize(1).maxConnectionPoolSize(2).create();
        Client client = cluster.connect();
        check("creates and reads", client, one -> {
            one.submit("g.V().has('pk','java').drop()").all().get();
            one.submit("g.addV('person').property('id', i).property('pk','java').property('age', n)",
                Map.of("i", "ada", "n", 36)).all().get();
            one.submit("g.addV('person').property('id','bob').property('pk','java')").all().get();
            one.submit("g.V(['java','ada']).addE('knows').to(g.V(['java','bob']))").all().get();
            same(List.of("bob"), values(one.submit("g.V(['java','ada']).out('knows').id()")));
            same(36, one.submit("g.V(['java','ada']).values('age')").one().getInt());
        });
        check("a vertex is a map", client, one -> {
            Object found = one.submit("g.V(['java','ada'])").one().getObject();
            same("vertex", ((Map<?, ?>) found).get("type"));
        });
        check("more results than one part", client, one -> {
            List<Integer> many = new ArrayList<>();
            for (int at = 0; at < 200; at++) many.add(at);
            same(200, one.submit("g.inject(x).unfold()", Map.of("x", many)).all().get().size());
        });
        check("status attributes", client, one -> {
            ResultSet results = one.submit("g.V(['java','ada'])");
            Map<String, Object> found = results.statusAttributes().get();
            same(1.0, ((Number) found.get("x-ms-total-request-charge")).doubleValue());
        });
        check("errors carry their code", client, one -> {
            try {
                one.submit("g.V().fail()").all().get();
                throw new AssertionError("no error");
            } catch (ExecutionException | CompletionException error) {
                Throwable cause = error.getCause();
                while (!(cause instanceof ResponseException)) cause = cause.getCause();
                ResponseException found = (ResponseException) cause;
                same(597, found.getResponseStatusCode().getValue());
                same(400, ((Number) found.getStatusAttributes().get().get("x-ms-status-code")).intValue());
            }
        });
        cluster.close();
    }

    static void check(String name, Client client, Check check) {
        try {
            check.run(client);
            System.out.println("ok " + name);
        } catch (Throwable error) {
            StringBuilder why = new StringBuilder(error.toString());
            for (Throwable one = error.getCause(); one != null; one = one.getCause()) why.append(" < ").append(one);
            System.out.println("no " + name + ": " + why);
        }
    }

    static List<Object> values(ResultSet results) throws Exception {
        List<Object> found = new ArrayList<>();
        for (Result one : results.all().get()) found.add(one.getObject());
        return found;
    }

    static void same(Object expected, Object found) {
        if (!expected.equals(found)) throw new AssertionError(found + ", expected " + expected);
    }
}
