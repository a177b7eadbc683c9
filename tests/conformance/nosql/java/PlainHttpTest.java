// The same port without TLS. The SDK takes an http address only when
// COSMOS_HTTP_CONNECTION_WITHOUT_TLS_ALLOWED is set, which the runner does.

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.CosmosContainer;
import com.fasterxml.jackson.databind.JsonNode;
import org.junit.jupiter.api.Test;

class PlainHttpTest extends Account {
    @Test
    void anHttpAddressIsTaken() {
        CosmosContainer container = fresh(400);
        container.createItem(item(1));
        String address = System.getenv("COSMOS_ENDPOINT").replace("https:", "http:");
        try (var plain = builder().endpoint(address).buildClient()) {
            CosmosContainer same = plain.getDatabase(database.getId()).getContainer("items");
            assertEquals(1, same.readItem("1", key(1), JsonNode.class).getItem().get("n").asInt());
        }
    }
}
