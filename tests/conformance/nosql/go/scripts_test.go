package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// This SDK has no calls for scripts, so a function is put there by hand; then it queries.
func createFunction(t *testing.T, container string, id string, text string) {
	t.Helper()
	date := time.Now().UTC().Format(http.TimeFormat)
	secret := must[[]byte](t)(base64.StdEncoding.DecodeString(os.Getenv("COSMOS_KEY")))
	digest := hmac.New(sha256.New, secret)
	digest.Write([]byte(strings.ToLower("post\nudfs\n") + container + "\n" + strings.ToLower(date) + "\n\n"))
	signature := base64.StdEncoding.EncodeToString(digest.Sum(nil))
	address := os.Getenv("COSMOS_ENDPOINT") + "/" + container + "/udfs"
	request := must[*http.Request](t)(http.NewRequest(
		"POST", address, bytes.NewReader(body(t, map[string]string{"id": id, "body": text}))))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2018-12-31")
	request.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
	response := must[*http.Response](t)(http.DefaultClient.Do(request))
	defer response.Body.Close()
	if response.StatusCode != 201 {
		t.Fatalf("the function was not created: %d", response.StatusCode)
	}
}

func TestFunctionsInAQuery(t *testing.T) {
	c, key := fresh(t, 400), azcosmos.NewPartitionKeyString("a")
	for n := range 10 {
		must[azcosmos.ItemResponse](t)(c.CreateItem(ctx, key, body(t, item{fmt.Sprint(n), "a", n}), nil))
	}
	createFunction(t, "dbs/go-"+t.Name()+"/colls/items", "even", "function (n) { return n % 2 === 0; }")
	found := ask(t, c, "SELECT VALUE c.n FROM c WHERE udf.even(c.n) AND c.n > 3", key)
	if !slices.Equal(found, []int{4, 6, 8}) {
		t.Fatal(found)
	}
}
