package store

import "testing"

func TestWeigh(t *testing.T) {
	crate := newCrate()
	if weigh(crate) != crate.Weight {
		t.Fail()
	}
}

func newCrate() *Crate { return &Crate{Weight: 1} }
