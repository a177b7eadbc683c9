// Stored procedures, triggers and functions.

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.CosmosStoredProcedure;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.junit.jupiter.api.Test;

class ScriptsTest extends Account {
    private static CosmosStoredProcedure procedure(CosmosContainer container, String id, String body) {
        container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties(id, body));
        return container.getScripts().getStoredProcedure(id);
    }

    private static CosmosStoredProcedureRequestOptions options() {
        return new CosmosStoredProcedureRequestOptions().setPartitionKey(new PartitionKey("key1"));
    }

    @Test
    void aProcedureIsCreatedReadReplacedAndDeleted() {
        CosmosContainer container = fresh(400);
        CosmosStoredProcedure made = procedure(container, "p", "function () {}");
        refused(409, () -> procedure(container, "p", "function () {}"));
        assertEquals("function () {}", made.read().getProperties().getBody());
        made.replace(new CosmosStoredProcedureProperties("p", "function () { return 1; }"));
        assertEquals("function () { return 1; }", made.read().getProperties().getBody());
        made.delete();
        refused(404, made::read);
    }

    @Test
    void aProcedureTakesArguments() {
        CosmosStoredProcedure made = procedure(fresh(400), "p",
            "function (value, num) { getContext().getResponse().setBody('2*' + value + ' is ' + num * 2); }");
        CosmosStoredProcedureResponse answer = made.execute(List.of("a", 123), options());
        assertEquals("\"2*a is 246\"", answer.getResponseAsString());
        assertTrue(answer.getRequestCharge() > 0);
    }

    @Test
    void aProcedureLogsWhenAsked() {
        CosmosStoredProcedure made = procedure(fresh(400), "p",
            "function () { console.log('The value of %s is %s.', 'x', 1); }");
        assertEquals("", made.execute(null, options()).getScriptLog());
        CosmosStoredProcedureResponse answer = made.execute(null, options().setScriptLoggingEnabled(true));
        assertEquals("The value of x is 1.", answer.getScriptLog());
    }

    @Test
    void aProcedureIsATransaction() {
        CosmosContainer container = fresh(400);
        CosmosStoredProcedure made = procedure(container, "p",
            "function (id, fail) { __.createDocument(__.getSelfLink(), {id: id, pk: 'key1'}, function (e) {"
                + " if (e) throw e; if (fail) throw new Error(1234, 'no'); }); }");
        made.execute(List.of("a", false), options());
        CosmosException error = refused(400, () -> made.execute(List.of("b", true), options()));
        assertEquals(1234, error.getSubStatusCode());
        assertEquals(1, ask(container, "SELECT * FROM c").size());
    }

    @Test
    void triggersRunAroundAWrite() {
        CosmosContainer container = fresh(400);
        CosmosTriggerProperties pre = new CosmosTriggerProperties("pre",
            "function () { var r = getContext().getRequest(), b = r.getBody(); b.n = 7; r.setBody(b); }");
        pre.setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.CREATE);
        container.getScripts().createTrigger(pre);
        CosmosItemRequestOptions named = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("pre"));
        assertEquals(7, container.createItem(item(1), key(1), named).getItem().get("n").asInt());
        refused(400, () -> container.upsertItem(item(1), key(1), named));
    }

    @Test
    void functionsStandInQueries() {
        CosmosContainer container = fresh(WIDE_RU);
        fill(container, 40);
        container.getScripts().createUserDefinedFunction(
            new CosmosUserDefinedFunctionProperties("even", "function (n) { return n % 2 === 0; }"));
        assertEquals(20, ask(container, "SELECT * FROM c WHERE udf.even(c.n)").size());
        List<JsonNode> rows = ask(container, "SELECT VALUE udf.even(c.n) FROM c WHERE c.n = 3");
        assertEquals(List.of(false), rows.stream().map(JsonNode::asBoolean).toList());
    }
}
