// Change feed and throughput, also while every range splits.

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class PartitionsTest extends Account {
    /** What there is to read from here on; `position` goes on where this ends. */
    static String drain(
        CosmosContainer container, CosmosChangeFeedRequestOptions options, List<Integer> found) {
        String position = null;
        Iterable<FeedResponse<JsonNode>> pages = container
            .queryChangeFeed(options.setMaxItemCount(5), JsonNode.class).iterableByPage();
        for (FeedResponse<JsonNode> page : pages) {
            page.getResults().forEach(one -> found.add(one.get("n").asInt()));
            position = page.getContinuationToken();
        }
        return position;
    }

    static List<Integer> sorted(List<Integer> numbers) {
        return numbers.stream().sorted().toList();
    }

    @Test
    void theChangeFeedIsReadFromTheBeginningAndOn() {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 40);
        List<Integer> found = new ArrayList<>();
        String position = drain(
            container,
            CosmosChangeFeedRequestOptions
                .createForProcessingFromBeginning(FeedRange.forFullRange()),
            found);
        assertEquals(upTo(40), sorted(found));
        container.upsertItem(item(3).put("n", 33));
        found.clear();
        drain(
            container,
            CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(position),
            found);
        assertEquals(List.of(33), found);
    }

    @Test
    void theChangeFeedOfAKeyAndOfEachRange() {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 40);
        List<Integer> ofKey = new ArrayList<>();
        drain(
            container,
            CosmosChangeFeedRequestOptions
                .createForProcessingFromBeginning(FeedRange.forLogicalPartition(key(7))),
            ofKey);
        assertEquals(List.of(7), ofKey);
        List<Integer> all = new ArrayList<>();
        for (FeedRange range : container.getFeedRanges())
            drain(
                container,
                CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range), all);
        assertEquals(upTo(40), sorted(all));
        List<Integer> news = new ArrayList<>();
        drain(
            container,
            CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()),
            news);
        assertEquals(List.of(), news);
    }

    @Test
    void throughputIsReadReplacedAndScaled() {
        CosmosContainer container = fresh(400);
        assertEquals(400, manual(container));
        container.replaceThroughput(ThroughputProperties.createManualThroughput(800));
        assertEquals(800, manual(container));
        database.createContainer(
            new CosmosContainerProperties("scaled", "/pk"),
            ThroughputProperties.createAutoscaledThroughput(1000));
        ThroughputProperties scaled =
            database.getContainer("scaled").readThroughput().getProperties();
        assertEquals(1000, scaled.getAutoscaleMaxThroughput());
    }

    static int manual(CosmosContainer container) {
        return container.readThroughput().getProperties().getManualThroughput();
    }

    @Test
    void tooMuchIsRefusedAndAPatientClientWaits() {
        CosmosContainer container = fresh(400);
        ThrottlingRetryOptions never = new ThrottlingRetryOptions();
        never.setMaxRetryAttemptsOnThrottledRequests(0);
        try (var hasty = builder().throttlingRetryOptions(never).buildClient()) {
            CosmosContainer same = hasty.getDatabase(database.getId()).getContainer("items");
            var error = refused(429, () -> {
                for (int n = 0; n < 200; n++) same.upsertItem(costly(n));
            });
            assertEquals(3200, error.getSubStatusCode());
            assertFalse(error.getRetryAfterDuration().isZero());
        }
        for (int n = 0; n < 12; n++) container.upsertItem(costly(n));
    }

    /** Over 100 indexed properties: about 45 RU. */
    static com.fasterxml.jackson.databind.node.ObjectNode costly(int n) {
        var made = item(n);
        for (int p = 0; p < 100; p++) made.put("p" + p, p);
        return made;
    }

    @Test
    void everythingGoesOnWhileEveryRangeSplits() throws Exception {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 60);
        int before = container.getFeedRanges().size();
        List<Integer> seen = new ArrayList<>();
        String position = drain(
            container,
            CosmosChangeFeedRequestOptions
                .createForProcessingFromBeginning(FeedRange.forFullRange()),
            seen);
        assertEquals(upTo(60), sorted(seen));
        String plain = "SELECT VALUE c.n FROM c WHERE c.n < 60";
        Iterator<FeedResponse<JsonNode>> pages = pagesOf(container, plain, null);
        Iterator<FeedResponse<JsonNode>> ordered = pagesOf(container, plain + " ORDER BY c.n", null);
        FeedResponse<JsonNode> firstListed = pages.next();
        FeedResponse<JsonNode> firstOrdered = ordered.next();
        List<Integer> listed = new ArrayList<>(numbers(firstListed.getResults()));
        List<Integer> inOrder = new ArrayList<>(numbers(firstOrdered.getResults()));

        AtomicBoolean splitting = new AtomicBoolean(true);
        CompletableFuture<List<Integer>> writer = CompletableFuture.supplyAsync(() -> {
            List<Integer> written = new ArrayList<>();
            for (int n = 1000; splitting.get() || written.isEmpty(); n++) {
                container.createItem(item(n));
                assertEquals(
                    n,
                    container.readItem(String.valueOf(n), key(n), JsonNode.class)
                        .getItem().get("n").asInt());
                written.add(n);
            }
            return written;
        });
        container.replaceThroughput(
            ThroughputProperties.createManualThroughput(2 * before * 1000));
        try {
            waitUntil("two for each", nothing -> container.getFeedRanges().size() == 2 * before);
        } finally {
            splitting.set(false);
        }
        List<Integer> written = writer.get();

        pages.forEachRemaining(page -> listed.addAll(numbers(page.getResults())));
        assertEquals(upTo(60), sorted(listed), "pages that began before the split");
        ordered.forEachRemaining(page -> inOrder.addAll(numbers(page.getResults())));
        assertEquals(upTo(60), inOrder, "an order that began before the split");
        List<Integer> resumed = new ArrayList<>(numbers(firstOrdered.getResults()));
        pagesOf(container, plain + " ORDER BY c.n", firstOrdered.getContinuationToken())
            .forEachRemaining(page -> resumed.addAll(numbers(page.getResults())));
        assertEquals(upTo(60), resumed, "an order that goes on from a token of before the split");
        List<Integer> news = new ArrayList<>();
        drain(
            container,
            CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(position), news);
        assertEquals(written, sorted(news), "a feed that began before the split");

        assertEquals(
            List.of(60 + written.size()), numbers(ask(container, "SELECT VALUE COUNT(1) FROM c")));
        List<CosmosItemOperation> upserts = new ArrayList<>();
        for (int n = 0; n < 60; n++)
            upserts.add(CosmosBulkOperations.getUpsertItemOperation(item(n).put("n", -n), key(n)));
        container.executeBulkOperations(upserts)
            .forEach(one -> assertEquals(200, one.getResponse().getStatusCode()));
    }

    static Iterator<FeedResponse<JsonNode>> pagesOf(
        CosmosContainer container, String query, String token) {
        return container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
            .iterableByPage(token, 7).iterator();
    }
}
