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
        Cluster cluster = connect(arguments, arguments[1], arguments[2]);
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
            ResponseException found = failure(one, "g.V().fail()");
            same(597, found.getResponseStatusCode().getValue());
            same(400, ((Number) found.getStatusAttributes().get().get("x-ms-status-code")).intValue());
        });
        check("bindings of every type", client, one -> {
            one.submit("g.V(['java','all']).drop()").all().get();
            one.submit("g.addV('t').property('id','all').property('pk', k).property('s', s)"
                + ".property('n', n).property('l', l).property('d', d).property('b', b)",
                Map.of("k", "java", "s", "\u00e5 \"quoted\"", "n", 7, "l", 4294967296L, "d", 1.5, "b", true))
                .all().get();
            same(List.of("\u00e5 \"quoted\""), values(one.submit("g.V(p).values('s')", Map.of("p", List.of("java", "all")))));
            same(4294967296L, one.submit("g.V(['java','all']).values('l')").one().getLong());
            same(1.5, one.submit("g.V(['java','all']).values('d')").one().getDouble());
            same(true, one.submit("g.V(['java','all']).values('b')").one().getBoolean());
        });
        check("traversals", client, one -> {
            same(List.of("ada"), values(one.submit("g.V(['java','bob']).in('knows').id()")));
            same(2, ((Map<?, ?>) one.submit(
                "g.V(['java','ada']).repeat(out()).times(1).path().by('id').fold().group().by(count(local)).by(count())"
                + ".project('a','b').by().by()").one().getObject()).size());
            same(1L, one.submit("g.V().has('pk','java').hasLabel('t').count()").one().getLong());
        });
        check("the same id again is a conflict", client, one -> {
            ResponseException found = failure(one, "g.addV('t').property('id','all').property('pk','java')");
            same(500, found.getResponseStatusCode().getValue());
            same(409, ((Number) found.getStatusAttributes().get().get("x-ms-status-code")).intValue());
        });
        check("throttling says when to come back", client, one -> {
            ResponseException found = failure(connect(arguments, arguments[3], arguments[2]).connect(),
                "g.inject(" + numbers(400) + ").map(addV('t').property('pk','x'))");
            same(500, found.getResponseStatusCode().getValue());
            Map<String, Object> facts = found.getStatusAttributes().get();
            same(429, ((Number) facts.get("x-ms-status-code")).intValue());
            same(3200, ((Number) facts.get("x-ms-substatus-code")).intValue());
            same(true, ((String) facts.get("x-ms-retry-after-ms")).matches("00:\\d\\d:\\d\\d\\.\\d{7}"));
        });
        check("a wrong key is refused", client, one -> {
            ResponseException found = failure(connect(arguments, arguments[1], "d3Jvbmc=").connect(), "g.V()");
            same(401, found.getResponseStatusCode().getValue());
        });
        check("many requests at once on few connections", client, one -> {
            List<java.util.concurrent.CompletableFuture<ResultSet>> asked = new ArrayList<>();
            for (int at = 0; at < 50; at++) asked.add(one.submitAsync("g.inject(x)", Map.of("x", at)));
            for (int at = 0; at < 50; at++) same(at, asked.get(at).get().one().getInt());
        });
        check("a new cluster after the first was closed", client, one -> {
            Cluster other = connect(arguments, arguments[1], arguments[2]);
            same(1, other.connect().submit("g.V(['java','ada'])").all().get().size());
            other.close();
            other = connect(arguments, arguments[1], arguments[2]);
            same(1, other.connect().submit("g.V(['java','ada'])").all().get().size());
            other.close();
        });
        cluster.close();
        System.exit(0);
    }

    static Cluster connect(String[] arguments, String user, String key) {
        return Cluster.build("127.0.0.1").port(Integer.parseInt(arguments[0]))
            .credentials(user, key)
            .serializer(new GraphSONMessageSerializerV2d0())
            .enableSsl(true).sslSkipCertValidation(true)
            .minConnectionPoolSize(1).maxConnectionPoolSize(2).create();
    }

    static String numbers(int count) {
        StringBuilder text = new StringBuilder("0");
        for (int at = 1; at < count; at++) text.append(',').append(at);
        return text.toString();
    }

    static ResponseException failure(Client client, String script) throws Exception {
        try {
            client.submit(script).all().get();
        } catch (ExecutionException | CompletionException error) {
            Throwable cause = error.getCause();
            while (!(cause instanceof ResponseException)) cause = cause.getCause();
            return (ResponseException) cause;
        }
        throw new AssertionError("no error");
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
