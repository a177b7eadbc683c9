// The Go driver against `armillary serve`: it handshakes with OP_MSG and speculative login, compresses with
// zlib, and sends every write with a session.
package conformance

import (
	"context"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var ctx = context.Background()

func connect(t *testing.T) *mongo.Client {
	t.Helper()
	asked := options.Client().ApplyURI(os.Getenv("MONGO_URI")).SetCompressors([]string{"zlib"})
	client, err := mongo.Connect(asked)
	must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(ctx) })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func numbers(t *testing.T, cursor *mongo.Cursor, err error) []int32 {
	t.Helper()
	must(t, err)
	var rows []struct {
		ID int32 `bson:"_id"`
	}
	must(t, cursor.All(ctx, &rows))
	found := []int32{}
	for _, one := range rows {
		found = append(found, one.ID)
	}
	return found
}

func same(t *testing.T, found, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(found, wanted) {
		t.Fatalf("found %v, wanted %v", found, wanted)
	}
}

func TestDocuments(t *testing.T) {
	items := connect(t).Database("golang").Collection("people")
	documents := []any{}
	for n := range 300 {
		documents = append(documents, bson.D{{"_id", int32(n)}, {"age", n}})
	}
	_, err := items.InsertMany(ctx, documents)
	must(t, err)
	cursor, err := items.Find(ctx, bson.D{{"age", bson.D{{"$gte", 290}}}},
		options.Find().SetSort(bson.D{{"age", -1}}).SetLimit(3))
	same(t, numbers(t, cursor, err), []int32{299, 298, 297})
	cursor, err = items.Find(ctx, bson.D{}, options.Find().SetBatchSize(7))
	same(t, len(numbers(t, cursor, err)), 300)
	changed, err := items.UpdateMany(ctx, bson.D{{"age", bson.D{{"$lt", 10}}}}, bson.D{{"$inc", bson.D{{"age", 1000}}}})
	must(t, err)
	same(t, changed.ModifiedCount, int64(10))
	removed, err := items.DeleteMany(ctx, bson.D{{"age", bson.D{{"$gte", 1000}}}})
	must(t, err)
	same(t, removed.DeletedCount, int64(10))
	_, err = items.InsertOne(ctx, bson.D{{"_id", int32(50)}})
	if !mongo.IsDuplicateKeyError(err) {
		t.Fatal(err)
	}
}

func TestTypes(t *testing.T) {
	items := connect(t).Database("golang").Collection("types")
	decimal, _ := bson.ParseDecimal128("1.50")
	document := bson.D{
		{"_id", bson.NewObjectID()}, {"long", int64(5)}, {"int", int32(5)}, {"double", 5.0},
		{"decimal", decimal}, {"bytes", bson.Binary{Subtype: 0, Data: []byte("ab")}},
		{"at", bson.DateTime(1700000000000)}, {"stamp", bson.Timestamp{T: 1, I: 2}},
		{"pattern", bson.Regex{Pattern: "a.*", Options: "i"}}, {"nothing", nil},
		{"low", bson.MinKey{}}, {"symbol", bson.Symbol("s")}, {"undefined", bson.Undefined{}},
	}
	sent, err := bson.Marshal(document)
	must(t, err)
	_, err = items.InsertOne(ctx, document)
	must(t, err)
	found, err := items.FindOne(ctx, bson.D{{"_id", document[0].Value}}).Raw()
	must(t, err)
	same(t, []byte(found), sent)
}

func TestShardCollection(t *testing.T) {
	client := connect(t)
	var answer bson.M
	must(t, client.Database("admin").RunCommand(ctx,
		bson.D{{"shardCollection", "golang.orders"}, {"key", bson.D{{"region", "hashed"}}}}).Decode(&answer))
	same(t, answer["_t"], "ShardCollectionResponse")
	same(t, answer["collectionsharded"], "golang.orders")
	_, err := client.Database("golang").Collection("orders").InsertOne(ctx, bson.D{{"_id", 9}})
	var refused mongo.WriteException
	if !errors.As(err, &refused) || refused.WriteErrors[0].Code != 61 {
		t.Fatal(err)
	}
}

func TestBulk(t *testing.T) {
	items := connect(t).Database("golang").Collection("many")
	models := []mongo.WriteModel{}
	for _, id := range []int{1, 2, 1, 3} {
		models = append(models, mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", id}}))
	}
	_, err := items.BulkWrite(ctx, models)
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) || failed.WriteErrors[0].Index != 2 {
		t.Fatal(err)
	}
	_, err = items.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if !errors.As(err, &failed) || len(failed.WriteErrors) != 3 {
		t.Fatal(err)
	}
	count, err := items.CountDocuments(ctx, bson.D{})
	must(t, err)
	same(t, count, int64(3))
}

func TestIndexesAndAggregation(t *testing.T) {
	items := connect(t).Database("golang").Collection("sales")
	name, err := items.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{"k", 1}, {"v", -1}}})
	must(t, err)
	same(t, name, "k_1_v_-1")
	documents := []any{}
	for n := range 30 {
		documents = append(documents, bson.D{{"k", n % 3}, {"v", n}})
	}
	_, err = items.InsertMany(ctx, documents)
	must(t, err)
	cursor, err := items.Aggregate(ctx, bson.A{
		bson.D{{"$match", bson.D{{"v", bson.D{{"$gte", 3}}}}}},
		bson.D{{"$group", bson.D{{"_id", "$k"}, {"total", bson.D{{"$sum", "$v"}}}}}},
		bson.D{{"$sort", bson.D{{"_id", 1}}}},
	})
	must(t, err)
	var rows []struct{ Total int32 }
	must(t, cursor.All(ctx, &rows))
	same(t, []int32{rows[0].Total, rows[1].Total, rows[2].Total}, []int32{135, 144, 153})
}

func TestTransactions(t *testing.T) {
	client := connect(t)
	items := client.Database("golang").Collection("bank")
	_, err := items.InsertMany(ctx, []any{bson.D{{"_id", int32(1)}, {"n", 10}}, bson.D{{"_id", int32(2)}, {"n", 0}}})
	must(t, err)
	session, err := client.StartSession()
	must(t, err)
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		if _, err := items.UpdateByID(inside, int32(1), bson.D{{"$inc", bson.D{{"n", -5}}}}); err != nil {
			return nil, err
		}
		return items.UpdateByID(inside, int32(2), bson.D{{"$inc", bson.D{{"n", 5}}}})
	})
	must(t, err)
	count, err := items.CountDocuments(ctx, bson.D{{"n", 5}})
	must(t, err)
	same(t, count, int64(2))
	stop := errors.New("no")
	_, err = session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		if _, err := items.DeleteOne(inside, bson.D{{"_id", int32(1)}}); err != nil {
			return nil, err
		}
		return nil, stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	count, err = items.CountDocuments(ctx, bson.D{})
	must(t, err)
	same(t, count, int64(2))
}

func TestChangeStreams(t *testing.T) {
	items := connect(t).Database("golang").Collection("feed")
	_, err := items.InsertOne(ctx, bson.D{{"_id", int32(0)}})
	must(t, err)
	asked := options.ChangeStream().SetFullDocument(options.UpdateLookup).SetMaxAwaitTime(200 * time.Millisecond)
	stream, err := items.Watch(ctx, mongo.Pipeline{}, asked)
	must(t, err)
	_, err = items.InsertOne(ctx, bson.D{{"_id", int32(1)}})
	must(t, err)
	if !stream.Next(ctx) {
		t.Fatal(stream.Err())
	}
	token := stream.ResumeToken()
	must(t, stream.Close(ctx))
	_, err = items.InsertOne(ctx, bson.D{{"_id", int32(2)}})
	must(t, err)
	stream, err = items.Watch(ctx, mongo.Pipeline{}, asked.SetResumeAfter(token))
	must(t, err)
	if !stream.Next(ctx) {
		t.Fatal(stream.Err())
	}
	var event struct {
		DocumentKey struct {
			ID int32 `bson:"_id"`
		} `bson:"documentKey"`
	}
	must(t, stream.Decode(&event))
	same(t, event.DocumentKey.ID, int32(2))
	must(t, stream.Close(ctx))
}
