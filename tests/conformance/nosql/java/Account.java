// What the tests share: a client in gateway mode, and containers that are gone after their test.
// The address is https with a certificate that nobody vouches for: the runner sets
// COSMOS_EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED. PlainHttpTest has the other way.

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

abstract class Account {
    /** The runner gives a physical partition 1,000 RU/s, so this makes several ranges. */
    static final int WIDE_RU = 4000;

    static final ObjectMapper JSON = new ObjectMapper();

    CosmosClient client;
    CosmosDatabase database;

    static CosmosClientBuilder builder() {
        return new CosmosClientBuilder()
            .endpoint(System.getenv("COSMOS_ENDPOINT"))
            .key(System.getenv("COSMOS_KEY"))
            .gatewayMode()
            .contentResponseOnWriteEnabled(true);
    }

    @BeforeEach
    void connect() {
        client = builder().buildClient();
        String name = "java-" + UUID.randomUUID();
        client.createDatabase(name);
        database = client.getDatabase(name);
    }

    @AfterEach
    void disconnect() {
        database.delete();
        client.close();
    }

    CosmosContainer fresh(int ru) {
        database.createContainer(
            new CosmosContainerProperties("items", "/pk"),
            ThroughputProperties.createManualThroughput(ru));
        return database.getContainer("items");
    }

    static ObjectNode item(int n) {
        return JSON.createObjectNode()
            .put("id", String.valueOf(n))
            .put("pk", "key" + n)
            .put("n", n)
            .put("tag", "t" + n % 3);
    }

    static PartitionKey key(int n) {
        return new PartitionKey("key" + n);
    }

    /** Items 0 … count-1, each with a key of its own, in one bulk. */
    static void fill(CosmosContainer container, int count) {
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < count; n++)
            operations.add(CosmosBulkOperations.getCreateItemOperation(item(n), key(n)));
        container.executeBulkOperations(operations)
            .forEach(one -> Assertions.assertEquals(201, one.getResponse().getStatusCode()));
    }

    static List<JsonNode> ask(CosmosContainer container, String query) {
        return ask(container, query, new CosmosQueryRequestOptions());
    }

    static List<JsonNode> ask(
        CosmosContainer container, String query, CosmosQueryRequestOptions options) {
        List<JsonNode> found = new ArrayList<>();
        // Pages of 7, so that every merge has to fetch more than once.
        container.queryItems(query, options, JsonNode.class)
            .iterableByPage(7)
            .forEach(page -> found.addAll(page.getResults()));
        return found;
    }

    static List<Integer> numbers(List<JsonNode> rows) {
        return rows.stream().map(JsonNode::asInt).toList();
    }

    static List<Integer> upTo(int count) {
        return IntStream.range(0, count).boxed().toList();
    }

    static CosmosException refused(int status, Executable work) {
        CosmosException error = Assertions.assertThrows(CosmosException.class, work);
        Assertions.assertEquals(status, error.getStatusCode(), error.getMessage());
        return error;
    }

    static void waitUntil(String what, Predicate<Void> isTrue) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!isTrue.test(null)) {
            Assertions.assertTrue(System.nanoTime() < end, "not within a minute: " + what);
            Thread.sleep(50);
        }
    }
}
