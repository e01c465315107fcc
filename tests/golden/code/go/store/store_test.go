package store_test

import (
	"testing"

	"example.com/depot/internal/clock"
	"example.com/depot/store"
)

func TestOpen(t *testing.T) {
	shelf, err := store.Open("a", store.WithClock(clock.System{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("put", func(t *testing.T) {
		if err := shelf.Put(&store.Crate{}); err != nil {
			t.Fatal(err)
		}
	})
}
