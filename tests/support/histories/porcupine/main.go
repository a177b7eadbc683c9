// Porcupine's opinion of a history as tests/support/histories/record.py keeps it: one operation per
// line of JSON on the standard input. Prints one line of JSON: operations, keys, and the keys that
// are not linearizable ("illegal") or were not decided in time ("unknown").
//
// A key is a register that holds a value or nothing, as linear.py has it. An operation without an
// answer lasts for ever; it has effect if its condition holds, and at the very end that says
// nothing to anyone, so it need not be left out.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"log"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Key      string  `json:"key"`
	Kind     string  `json:"kind"`
	Invoked  int64   `json:"invoked"`
	Returned *int64  `json:"returned"`
	Value    *string `json:"value"`
	Expected *string `json:"expected"`
	Done     bool    `json:"done"`
}

type register struct {
	present bool
	value   string
}

func holding(value *string) register {
	if value == nil {
		return register{}
	}
	return register{true, *value}
}

func step(state, input, output interface{}) (bool, interface{}) {
	held, asked, answered := state.(register), input.(operation), output.(bool)
	if asked.Kind == "read" {
		return held == holding(asked.Value), held
	}
	holds := true
	switch asked.Kind {
	case "create":
		holds = !held.present
	case "delete":
		holds = held.present
	case "swap":
		holds = held.present && held == holding(asked.Expected)
	}
	after := held
	if holds {
		after = register{}
		if asked.Kind != "delete" {
			after = holding(asked.Value)
		}
	}
	if !answered {
		return true, after
	}
	return holds == asked.Done, after
}

func main() {
	timeout := flag.Duration("timeout", time.Minute, "for one key")
	flag.Parse()
	model := porcupine.Model{
		Init: func() interface{} { return register{} },
		Step: step,
	}
	keys := map[string][]porcupine.Operation{}
	count := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			log.Fatal(err)
		}
		answered, end := one.Returned != nil, int64(math.MaxInt64)
		if answered {
			end = *one.Returned
		}
		keys[one.Key] = append(keys[one.Key], porcupine.Operation{
			Input: one, Call: one.Invoked, Output: answered, Return: end,
		})
		count++
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
	illegal, unknown := []string{}, []string{}
	for key, history := range keys {
		switch porcupine.CheckOperationsTimeout(model, history, *timeout) {
		case porcupine.Illegal:
			illegal = append(illegal, key)
		case porcupine.Unknown:
			unknown = append(unknown, key)
		}
	}
	sort.Strings(illegal)
	sort.Strings(unknown)
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"operations": count, "keys": len(keys), "illegal": illegal, "unknown": unknown,
	})
}
