// Queries that this SDK merges by itself, over several ranges.

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class QueriesTest extends Account {
    static final int COUNT = 60;

    CosmosContainer container;

    @BeforeEach
    void fillSeveralRanges() {
        container = fresh(WIDE_RU);
        fill(container, COUNT);
        assertTrue(container.getFeedRanges().size() >= 3);
    }

    @Test
    void rowsAreOrderedOverTheRanges() {
        assertEquals(upTo(COUNT), numbers(ask(container, "SELECT VALUE c.n FROM c ORDER BY c.n")));
        List<Integer> down = new ArrayList<>(upTo(COUNT));
        Collections.reverse(down);
        assertEquals(down, numbers(ask(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC")));
        assertEquals(
            upTo(10), numbers(ask(container, "SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n")));
        assertEquals(
            List.of(5, 6, 7),
            numbers(ask(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3")));
    }

    @Test
    void anOrderedQueryGoesOnFromItsToken() {
        List<Integer> found = new ArrayList<>();
        String token = null;
        do {
            FeedResponse<JsonNode> page = container
                .queryItems(
                    "SELECT VALUE c.n FROM c ORDER BY c.n",
                    new CosmosQueryRequestOptions(), JsonNode.class)
                .iterableByPage(token, 7).iterator().next();
            found.addAll(numbers(page.getResults()));
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(upTo(COUNT), found);
    }

    @Test
    void aggregatesAreMerged() {
        assertEquals(List.of(COUNT), numbers(ask(container, "SELECT VALUE COUNT(1) FROM c")));
        assertEquals(
            List.of(COUNT * (COUNT - 1) / 2), numbers(ask(container, "SELECT VALUE SUM(c.n) FROM c")));
        assertEquals(29.5, ask(container, "SELECT VALUE AVG(c.n) FROM c").get(0).asDouble());
        assertEquals(List.of(0), numbers(ask(container, "SELECT VALUE MIN(c.n) FROM c")));
        assertEquals(List.of(COUNT - 1), numbers(ask(container, "SELECT VALUE MAX(c.n) FROM c")));
        JsonNode both = ask(container, "SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c").get(0);
        assertEquals(COUNT, both.get("n").asInt());
        assertEquals(COUNT - 1, both.get("m").asInt());
    }

    @Test
    void groupsAreMerged() {
        List<JsonNode> groups =
            ask(container, "SELECT c.tag, COUNT(1) AS count, SUM(c.n) AS sum FROM c GROUP BY c.tag");
        assertEquals(3, groups.size());
        for (JsonNode group : groups) {
            int first = Integer.parseInt(group.get("tag").asText().substring(1));
            assertEquals(20, group.get("count").asInt());
            assertEquals(20 * first + 3 * 190, group.get("sum").asInt());
        }
    }

    @Test
    void distinctValuesComeOnce() {
        List<String> tags = ask(container, "SELECT DISTINCT VALUE c.tag FROM c").stream()
            .map(JsonNode::asText).sorted().toList();
        assertEquals(List.of("t0", "t1", "t2"), tags);
        List<String> ordered = ask(container, "SELECT DISTINCT VALUE c.tag FROM c ORDER BY c.tag")
            .stream().map(JsonNode::asText).toList();
        assertEquals(List.of("t0", "t1", "t2"), ordered);
        assertEquals(
            List.of(3),
            numbers(ask(
                container,
                "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.tag FROM c) AS t")));
    }

    @Test
    void oneKeyIsAskedAlone() {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions()
            .setPartitionKey(key(7)).setQueryMetricsEnabled(true);
        List<JsonNode> rows = ask(container, "SELECT c.n FROM c WHERE c.n >= 0 ORDER BY c.n", options);
        assertEquals(1, rows.size());
        assertEquals(7, rows.get(0).get("n").asInt());
    }

    @Test
    void parametersAndBadTexts() {
        SqlQuerySpec spec = new SqlQuerySpec(
            "SELECT VALUE c.n FROM c WHERE c.pk = @pk", List.of(new SqlParameter("@pk", "key9")));
        List<JsonNode> rows = container
            .queryItems(spec, new CosmosQueryRequestOptions(), JsonNode.class).stream().toList();
        assertEquals(List.of(9), numbers(rows));
        assertTrue(refused(400, () -> ask(container, "SELECT FROM")).getMessage().contains("SC1001"));
    }
}
