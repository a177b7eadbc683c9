// FerretDB 1.24 on SQLite, in one process: the peer of bench/mongo.py and a second opinion for
// tests/conformance/mongo/test_ferretdb.py.
//
//	ferretdb 127.0.0.1:27017 file:/tmp/data/
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Handler:   "sqlite",
		SQLiteURL: os.Args[2],
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err = server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
