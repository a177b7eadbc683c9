// Porcupine's opinion of a history as tests/support/histories/record.py keeps it: one operation per
// line of JSON on the standard input. Prints one line of JSON: operations, keys, and the keys that
// are not linearizable ("illegal") or were not decided in time ("unknown").
//
// A key is a register that holds a value or nothing, as linear.py has it. An operation without an
// answer lasts for ever; it has effect if its condition holds, and at the very end that says
// nothing to anyone, so it need not be left out.
//
// For the same reason a history is linearizable if it is without some of its unanswered operations:
// whatever order shows it, they can be put behind. So a key is looked at first with those alone
// whose value somebody saw, which takes no time; then with the deletes as well; and where that
// decides nothing, with all of them.
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

// seen: what was answered, and of the rest what wrote a value that a read or the condition of a swap
// names, and deletes if they are wanted.
func seen(history []porcupine.Operation, deletes bool) []porcupine.Operation {
	named := map[string]bool{}
	for _, one := range history {
		asked := one.Input.(operation)
		if asked.Kind == "read" && asked.Value != nil {
			named[*asked.Value] = true
		}
		if asked.Kind == "swap" && asked.Expected != nil {
			named[*asked.Expected] = true
		}
	}
	kept := []porcupine.Operation{}
	for _, one := range history {
		asked := one.Input.(operation)
		wanted := deletes
		if asked.Kind != "delete" {
			wanted = asked.Value != nil && named[*asked.Value]
		}
		if one.Output.(bool) || wanted {
			kept = append(kept, one)
		}
	}
	return kept
}

func decide(
	model porcupine.Model, history []porcupine.Operation, timeout time.Duration,
) porcupine.CheckResult {
	for _, deletes := range []bool{false, true} {
		fewer := seen(history, deletes)
		found := porcupine.CheckOperationsTimeout(model, fewer, timeout)
		if found == porcupine.Ok || len(fewer) == len(history) {
			return found
		}
	}
	return porcupine.CheckOperationsTimeout(model, history, timeout)
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
		switch decide(model, history, *timeout) {
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
