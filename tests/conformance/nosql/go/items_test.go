// Package conformance runs the official Go SDK against Armillary. This SDK asks for no plan and
// merges nothing; it sends `Prefer: return=minimal` by itself.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

type item struct {
	ID string `json:"id"`
	PK string `json:"pk"`
	N  int    `json:"n"`
}

var ctx = context.Background()

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func body(t *testing.T, value any) []byte {
	return must[[]byte](t)(json.Marshal(value))
}

func refusedWith(t *testing.T, err error, status int) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status {
		t.Fatalf("expected %d, got %v", status, err)
	}
}

func fresh(t *testing.T, ru int32) *azcosmos.ContainerClient {
	credential := must[azcosmos.KeyCredential](t)(azcosmos.NewKeyCredential(os.Getenv("COSMOS_KEY")))
	client := must[*azcosmos.Client](t)(
		azcosmos.NewClientWithKey(os.Getenv("COSMOS_ENDPOINT"), credential, nil))
	name := "go-" + t.Name()
	must[azcosmos.DatabaseResponse](t)(
		client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil))
	database := must[*azcosmos.DatabaseClient](t)(client.NewDatabase(name))
	t.Cleanup(func() { must[azcosmos.DatabaseResponse](t)(database.Delete(ctx, nil)) })
	properties := azcosmos.ContainerProperties{
		ID: "items",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Paths: []string{"/pk"}, Version: 2,
		},
	}
	throughput := azcosmos.NewManualThroughputProperties(ru)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
	must[azcosmos.ContainerResponse](t)(database.CreateContainer(ctx, properties, options))
	return must[*azcosmos.ContainerClient](t)(database.NewContainer("items"))
}

func ask(t *testing.T, c *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey) []int {
	t.Helper()
	var found []int
	pager := c.NewQueryItemsPager(query, key, &azcosmos.QueryOptions{PageSizeHint: 7})
	for pager.More() {
		page := must[azcosmos.QueryItemsResponse](t)(pager.NextPage(ctx))
		for _, raw := range page.Items {
			var n int
			if err := json.Unmarshal(raw, &n); err != nil {
				t.Fatal(err)
			}
			found = append(found, n)
		}
	}
	return found
}

func TestItems(t *testing.T) {
	c, key := fresh(t, 1000), azcosmos.NewPartitionKeyString("a")
	created := must[azcosmos.ItemResponse](t)(c.CreateItem(ctx, key, body(t, item{"1", "a", 1}), nil))
	if created.ETag == "" || created.RequestCharge <= 0 || len(created.Value) != 0 {
		t.Fatalf("a minimal answer has headers and no body: %+v", created)
	}
	_, err := c.CreateItem(ctx, key, body(t, item{"1", "a", 1}), nil)
	refusedWith(t, err, http.StatusConflict)
	must[azcosmos.ItemResponse](t)(c.ReplaceItem(ctx, key, "1", body(t, item{"1", "a", 2}), nil))
	stale := &azcosmos.ItemOptions{IfMatchEtag: &created.ETag}
	_, err = c.ReplaceItem(ctx, key, "1", body(t, item{"1", "a", 3}), stale)
	refusedWith(t, err, http.StatusPreconditionFailed)
	patch := azcosmos.PatchOperations{}
	patch.AppendIncrement("/n", 5)
	must[azcosmos.ItemResponse](t)(c.PatchItem(ctx, key, "1", patch, nil))
	var read item
	response := must[azcosmos.ItemResponse](t)(c.ReadItem(ctx, key, "1", nil))
	if err := json.Unmarshal(response.Value, &read); err != nil || read.N != 7 {
		t.Fatalf("%v %v", read, err)
	}
	must[azcosmos.ItemResponse](t)(c.DeleteItem(ctx, key, "1", nil))
	_, err = c.ReadItem(ctx, key, "1", nil)
	refusedWith(t, err, http.StatusNotFound)
}

func TestQueries(t *testing.T) {
	c := fresh(t, 4000)
	for n := range 40 {
		key := fmt.Sprintf("key%d", n%10)
		at := azcosmos.NewPartitionKeyString(key)
		must[azcosmos.ItemResponse](t)(c.CreateItem(ctx, at, body(t, item{fmt.Sprint(n), key, n}), nil))
	}
	ordered := "SELECT VALUE c.n FROM c ORDER BY c.n DESC"
	of := azcosmos.NewPartitionKeyString("key3")
	if found := ask(t, c, ordered, of); !slices.Equal(found, []int{33, 23, 13, 3}) {
		t.Fatal(found)
	}
	found := ask(t, c, "SELECT VALUE c.n FROM c WHERE c.n >= 10", azcosmos.NewPartitionKey())
	slices.Sort(found)
	if len(found) != 30 || found[0] != 10 || found[29] != 39 {
		t.Fatal(found)
	}
}

func TestBatch(t *testing.T) {
	c, key := fresh(t, 1000), azcosmos.NewPartitionKeyString("a")
	batch := c.NewTransactionalBatch(key)
	batch.CreateItem(body(t, item{"1", "a", 1}), nil)
	batch.CreateItem(body(t, item{"2", "a", 2}), nil)
	done := must[azcosmos.TransactionalBatchResponse](t)(c.ExecuteTransactionalBatch(ctx, batch, nil))
	if !done.Success || len(done.OperationResults) != 2 {
		t.Fatalf("%+v", done)
	}
	batch = c.NewTransactionalBatch(key)
	batch.CreateItem(body(t, item{"3", "a", 3}), nil)
	batch.CreateItem(body(t, item{"1", "a", 1}), nil)
	failed := must[azcosmos.TransactionalBatchResponse](t)(c.ExecuteTransactionalBatch(ctx, batch, nil))
	if failed.Success || failed.OperationResults[0].StatusCode != 424 ||
		failed.OperationResults[1].StatusCode != 409 {
		t.Fatalf("%+v", failed)
	}
}

func TestThroughput(t *testing.T) {
	c := fresh(t, 400)
	read := must[azcosmos.ThroughputResponse](t)(c.ReadThroughput(ctx, nil))
	if ru, ok := read.ThroughputProperties.ManualThroughput(); !ok || ru != 400 {
		t.Fatal(ru, ok)
	}
	more := azcosmos.NewManualThroughputProperties(800)
	must[azcosmos.ThroughputResponse](t)(c.ReplaceThroughput(ctx, more, nil))
}
