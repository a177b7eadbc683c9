// TinkerGraph as a second opinion: commands on standard input, one line each, answers likewise.
//
//   N                              a new, empty graph
//   V <tab> id <tab> label <tab> key <tab> type <tab> value …      a vertex; types: s i d b
//   E <tab> id <tab> label <tab> out <tab> in <tab> key <tab> type <tab> value …
//   R <tab> base64 of a script     its results, each as a canonical text, separated by tabs
//
// Fields are base64. An answer begins with + or, for an error, with -.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import javax.script.Bindings;
import javax.script.SimpleBindings;
import org.apache.tinkerpop.gremlin.groovy.jsr223.GremlinGroovyScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.Path;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Property;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;

public class Opinion {
    static TinkerGraph graph = TinkerGraph.open();
    static final GremlinGroovyScriptEngine ENGINE = new GremlinGroovyScriptEngine();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            String answer;
            try {
                answer = "+" + answer(parts);
            } catch (Throwable error) {
                answer = "-" + encode(String.valueOf(error));
            }
            out.println(answer);
        }
    }

    static String answer(String[] parts) throws Exception {
        switch (parts[0]) {
            case "N":
                graph = TinkerGraph.open();
                return "";
            case "V":
                Vertex vertex = graph.addVertex(T.id, decode(parts[1]), T.label, decode(parts[2]));
                for (int at = 3; at + 2 < parts.length; at += 3)
                    vertex.property(decode(parts[at]), value(parts[at + 1], decode(parts[at + 2])));
                return "";
            case "E":
                Vertex from = graph.vertices(decode(parts[3])).next();
                Vertex to = graph.vertices(decode(parts[4])).next();
                Edge edge = from.addEdge(decode(parts[2]), to, T.id, decode(parts[1]));
                for (int at = 5; at + 2 < parts.length; at += 3)
                    edge.property(decode(parts[at]), value(parts[at + 1], decode(parts[at + 2])));
                return "";
            default:
                return run(decode(parts[1]));
        }
    }

    static String run(String script) throws Exception {
        Bindings bindings = new SimpleBindings();
        bindings.put("g", graph.traversal());
        Object found = ENGINE.eval(script, bindings);
        List<String> results = new ArrayList<>();
        if (found instanceof Traversal) {
            Iterator<?> each = (Iterator<?>) found;
            while (each.hasNext()) results.add(encode(text(each.next())));
        } else {
            results.add(encode(text(found)));
        }
        return String.join("\t", results);
    }

    static Object value(String type, String text) {
        switch (type) {
            case "i":
                return Integer.valueOf(text);
            case "d":
                return Double.valueOf(text);
            case "b":
                return Boolean.valueOf(text);
            default:
                return text;
        }
    }

    static String text(Object value) {
        if (value == null) return "null";
        if (value instanceof Vertex) return "v[" + ((Vertex) value).id() + "]";
        if (value instanceof Edge) return "e[" + ((Edge) value).id() + "]";
        if (value instanceof VertexProperty || value instanceof Property) {
            Property<?> one = (Property<?>) value;
            return "p[" + one.key() + "=" + text(one.value()) + "]";
        }
        if (value instanceof Path)
            return "path" + ((Path) value).objects().stream().map(Opinion::text)
                .collect(Collectors.joining(",", "(", ")"));
        if (value instanceof Map.Entry) {
            Map.Entry<?, ?> one = (Map.Entry<?, ?>) value;
            return "entry(" + text(one.getKey()) + "=" + text(one.getValue()) + ")";
        }
        if (value instanceof Map)
            return ((Map<?, ?>) value).entrySet().stream()
                .map(one -> text(one.getKey()) + "=" + text(one.getValue()))
                .sorted().collect(Collectors.joining(",", "{", "}"));
        if (value instanceof Collection)
            return ((Collection<?>) value).stream().map(Opinion::text)
                .sorted().collect(Collectors.joining(",", "[", "]"));
        if (value instanceof T) return "'" + value + "'";
        if (value instanceof Number) {
            double number = ((Number) value).doubleValue();
            return number == Math.rint(number) && Math.abs(number) < 1e15
                ? String.valueOf((long) number)
                : new java.math.BigDecimal(number).round(new java.math.MathContext(6))
                    .stripTrailingZeros().toPlainString();
        }
        if (value instanceof Boolean) return value.toString();
        return "'" + value + "'";
    }

    static String decode(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
