// Command depot counts what lies in a warehouse.
package main

import (
	"fmt"
	"os"

	"example.com/depot/internal/clock"
	. "example.com/depot/shapes"
	depot "example.com/depot/store"
	_ "example.com/depot/store/metrics"
)

// Set when the program is built.
var version = "dev"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(version)
		return
	}
	shelf, err := depot.Open("shelf", depot.WithClock(clock.System{}))
	if err != nil {
		fail(err)
	}
	defer shelf.Close()
	for _, crate := range shelf.Crates() {
		fmt.Println(crate.Label(), Area(crate.Lid))
	}
	shelf.Each(func(crate *depot.Crate) bool {
		return crate.Weight > depot.Limit
	})
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
