// Package clock tells the time.
package clock

import "time"

// Clock is asked for the time.
type Clock interface {
	Now() time.Time
}

// System is the clock of the machine.
type System struct{}

/*
Now is the present.

It never goes back.
*/
func (System) Now() time.Time { return time.Now() }

type fixed time.Time

//go:noinline
func (f fixed) Now() time.Time { return time.Time(f) }

// Fixed is a clock that stands still.
//
//nolint:ireturn
func Fixed(at time.Time) Clock { return fixed(at) }
