import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.changestream.FullDocument;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.stream.IntStream;
import org.bson.BsonDocument;
import org.bson.BsonTimestamp;
import org.bson.Document;
import org.bson.RawBsonDocument;
import org.bson.codecs.DocumentCodec;
import org.bson.types.Decimal128;
import org.bson.types.MinKey;
import org.bson.types.ObjectId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The Java driver against `armillary serve`. */
class DriverTest {
    static MongoClient client;
    static MongoDatabase db;

    @BeforeAll
    static void connect() {
        client = MongoClients.create(System.getenv("MONGO_URI"));
        db = client.getDatabase("java");
    }

    @AfterAll
    static void close() {
        client.close();
    }

    static List<Integer> ids(Iterable<Document> rows) {
        List<Integer> found = new ArrayList<>();
        rows.forEach(one -> found.add(one.getInteger("_id")));
        return found;
    }

    @Test
    void documents() {
        MongoCollection<Document> people = db.getCollection("people");
        people.insertMany(IntStream.range(0, 300).mapToObj(n -> new Document("_id", n).append("age", n)).toList());
        assertEquals(List.of(299, 298, 297),
            ids(people.find(Filters.gte("age", 290)).sort(Sorts.descending("age")).limit(3)));
        assertEquals(300, ids(people.find().batchSize(7)).size());
        assertEquals(10, people.updateMany(Filters.lt("age", 10), Updates.inc("age", 1000)).getModifiedCount());
        assertEquals(10, people.deleteMany(Filters.gte("age", 1000)).getDeletedCount());
        MongoWriteException refused =
            assertThrows(MongoWriteException.class, () -> people.insertOne(new Document("_id", 50)));
        assertEquals(11000, refused.getCode());
    }

    @Test
    void types() {
        MongoCollection<Document> types = db.getCollection("types");
        Document document = new Document("_id", new ObjectId()).append("long", 5L).append("int", 5).append("double", 5.0)
            .append("decimal", Decimal128.parse("1.50")).append("at", new Date(1700000000000L))
            .append("stamp", new BsonTimestamp(1, 2)).append("nothing", null).append("low", new MinKey());
        types.insertOne(document);
        RawBsonDocument sent = new RawBsonDocument(document, new DocumentCodec());
        RawBsonDocument found = db.getCollection("types", RawBsonDocument.class)
            .find(Filters.eq("_id", document.getObjectId("_id"))).first();
        assertArrayEquals(copy(sent), copy(found));
    }

    static byte[] copy(RawBsonDocument document) {
        byte[] bytes = new byte[document.getByteBuffer().remaining()];
        document.getByteBuffer().get(bytes);
        return bytes;
    }

    @Test
    void shardCollection() {
        Document answer = client.getDatabase("admin").runCommand(
            new Document("shardCollection", "java.orders").append("key", new Document("region", "hashed")));
        assertEquals("ShardCollectionResponse", answer.getString("_t"));
        assertEquals("java.orders", answer.getString("collectionsharded"));
        MongoCollection<Document> orders = db.getCollection("orders");
        MongoWriteException refused =
            assertThrows(MongoWriteException.class, () -> orders.insertOne(new Document("_id", 9)));
        assertEquals(61, refused.getCode());
    }

    @Test
    void bulk() {
        MongoCollection<Document> many = db.getCollection("many");
        List<InsertOneModel<Document>> models =
            List.of(1, 2, 1, 3).stream().map(id -> new InsertOneModel<>(new Document("_id", id))).toList();
        MongoBulkWriteException failed = assertThrows(MongoBulkWriteException.class, () -> many.bulkWrite(models));
        assertEquals(2, failed.getWriteErrors().get(0).getIndex());
    }

    @Test
    void indexesAndAggregation() {
        MongoCollection<Document> sales = db.getCollection("sales");
        assertEquals("k_1_v_-1", sales.createIndex(Indexes.compoundIndex(Indexes.ascending("k"), Indexes.descending("v"))));
        sales.insertMany(IntStream.range(0, 30).mapToObj(n -> new Document("k", n % 3).append("v", n)).toList());
        List<Integer> totals = new ArrayList<>();
        sales.aggregate(List.of(BsonDocument.parse("{$match: {v: {$gte: 3}}}"),
            BsonDocument.parse("{$group: {_id: '$k', total: {$sum: '$v'}}}"),
            BsonDocument.parse("{$sort: {_id: 1}}"))).forEach(one -> totals.add(one.getInteger("total")));
        assertEquals(List.of(135, 144, 153), totals);
    }

    @Test
    void transactions() {
        MongoCollection<Document> bank = db.getCollection("bank");
        bank.insertMany(List.of(new Document("_id", 1).append("n", 10), new Document("_id", 2).append("n", 0)));
        try (ClientSession session = client.startSession()) {
            session.withTransaction(() -> {
                bank.updateOne(session, Filters.eq("_id", 1), Updates.inc("n", -5));
                return bank.updateOne(session, Filters.eq("_id", 2), Updates.inc("n", 5));
            });
            assertEquals(2, bank.countDocuments(Filters.eq("n", 5)));
            assertThrows(IllegalStateException.class, () -> session.withTransaction(() -> {
                bank.deleteOne(session, Filters.eq("_id", 1));
                throw new IllegalStateException("no");
            }));
        }
        assertEquals(2, bank.countDocuments());
    }

    @Test
    void changeStreams() {
        MongoCollection<Document> feed = db.getCollection("feed");
        feed.insertOne(new Document("_id", 0));
        BsonDocument token;
        try (var stream = feed.watch().fullDocument(FullDocument.UPDATE_LOOKUP).cursor()) {
            feed.insertOne(new Document("_id", 1));
            assertEquals(1, stream.next().getFullDocument().getInteger("_id"));
            token = stream.getResumeToken();
        }
        feed.insertOne(new Document("_id", 2));
        try (var stream = feed.watch().fullDocument(FullDocument.UPDATE_LOOKUP).resumeAfter(token).cursor()) {
            assertEquals(2, stream.next().getFullDocument().getInteger("_id"));
        }
    }
}
