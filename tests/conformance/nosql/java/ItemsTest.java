// One item at a time, and several in one request.

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ItemsTest extends Account {
    @Test
    void anItemIsCreatedReadReplacedUpsertedAndDeleted() {
        CosmosContainer container = fresh(400);
        CosmosItemResponse<ObjectNode> made = container.createItem(item(1));
        assertEquals(201, made.getStatusCode());
        assertTrue(made.getRequestCharge() > 0);
        refused(409, () -> container.createItem(item(1)));
        assertEquals(1, container.readItem("1", key(1), JsonNode.class).getItem().get("n").asInt());
        refused(404, () -> container.readItem("1", key(2), JsonNode.class));
        container.replaceItem(item(1).put("n", 2), "1", key(1), null);
        assertEquals(200, container.upsertItem(item(1).put("n", 3)).getStatusCode());
        assertEquals(201, container.upsertItem(item(4)).getStatusCode());
        assertEquals(204, container.deleteItem("1", key(1), null).getStatusCode());
        refused(404, () -> container.readItem("1", key(1), JsonNode.class));
    }

    @Test
    void aStaleEtagIsRefused() {
        CosmosContainer container = fresh(400);
        String old = container.createItem(item(1)).getETag();
        String current = container.upsertItem(item(1).put("n", 2)).getETag();
        CosmosItemRequestOptions stale = new CosmosItemRequestOptions().setIfMatchETag(old);
        refused(412, () -> container.replaceItem(item(1), "1", key(1), stale));
        CosmosItemRequestOptions cached = new CosmosItemRequestOptions().setIfNoneMatchETag(current);
        assertEquals(304, container.readItem("1", key(1), cached, JsonNode.class).getStatusCode());
    }

    @Test
    void anItemIsPatchedUnderACondition() {
        CosmosContainer container = fresh(400);
        container.createItem(item(1));
        CosmosPatchOperations changes =
            CosmosPatchOperations.create().increment("/n", 4).add("/tags", List.of("a")).remove("/tag");
        JsonNode patched = container.patchItem("1", key(1), changes, JsonNode.class).getItem();
        assertEquals(5, patched.get("n").asInt());
        assertEquals("a", patched.get("tags").get(0).asText());
        assertFalse(patched.has("tag"));
        CosmosPatchItemRequestOptions only =
            new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n = 1");
        refused(412, () -> container.patchItem("1", key(1), changes, only, JsonNode.class));
    }

    @Test
    void aBatchIsAllOrNothing() {
        CosmosContainer container = fresh(400);
        CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
        batch.createItemOperation(item(1).put("pk", "a"));
        batch.upsertItemOperation(item(2).put("pk", "a"));
        batch.patchItemOperation("1", CosmosPatchOperations.create().increment("/n", 1));
        batch.readItemOperation("1");
        batch.deleteItemOperation("2");
        CosmosBatchResponse done = container.executeCosmosBatch(batch);
        assertTrue(done.isSuccessStatusCode(), done.getErrorMessage());
        assertEquals(2, done.getResults().get(3).getItem(JsonNode.class).get("n").asInt());

        CosmosBatch failing = CosmosBatch.createCosmosBatch(new PartitionKey("a"));
        failing.createItemOperation(item(3).put("pk", "a"));
        failing.createItemOperation(item(1).put("pk", "a"));
        CosmosBatchResponse refused = container.executeCosmosBatch(failing);
        assertEquals(409, refused.getStatusCode());
        assertEquals(
            List.of(424, 409),
            refused.getResults().stream().map(one -> one.getStatusCode()).toList());
        refused(404, () -> container.readItem("3", new PartitionKey("a"), JsonNode.class));
    }

    @Test
    void aBulkReachesEveryRange() {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 100);
        List<CosmosItemOperation> operations = List.of(
            CosmosBulkOperations.getReadItemOperation("1", key(1)),
            CosmosBulkOperations.getDeleteItemOperation("2", key(2)),
            CosmosBulkOperations.getCreateItemOperation(item(3), key(3)),
            CosmosBulkOperations.getReplaceItemOperation("4", item(4).put("n", -4), key(4)),
            CosmosBulkOperations.getPatchItemOperation(
                "5", key(5), CosmosPatchOperations.create().increment("/n", 1)),
            CosmosBulkOperations.getReadItemOperation("nothing", key(6)));
        Map<CosmosItemOperation, Integer> codes = new HashMap<>();
        container.executeBulkOperations(operations)
            .forEach(one -> codes.put(one.getOperation(), one.getResponse().getStatusCode()));
        assertEquals(
            List.of(200, 204, 409, 200, 200, 404), operations.stream().map(codes::get).toList());
        assertEquals(-4, container.readItem("4", key(4), JsonNode.class).getItem().get("n").asInt());
    }

    @Test
    void manyItemsAreReadAtOnce() {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 40);
        List<CosmosItemIdentity> wanted = IntStream.range(0, 50)
            .mapToObj(n -> new CosmosItemIdentity(key(n), String.valueOf(n)))
            .toList();
        List<Integer> found = container.readMany(wanted, JsonNode.class).getResults().stream()
            .map(one -> one.get("n").asInt()).sorted().toList();
        assertEquals(upTo(40), found);
    }

    @Test
    void everyItemOfAKeyIsRead() {
        CosmosContainer container = fresh(400);
        for (int n = 0; n < 12; n++) container.createItem(item(n).put("pk", n < 9 ? "a" : "b"));
        long found = container.readAllItems(new PartitionKey("a"), JsonNode.class).stream().count();
        assertEquals(9, found);
    }
}
