// Package store keeps crates on shelves.
package store

import (
	"errors"
	"sync"

	"example.com/depot/internal/clock"
	"example.com/depot/shapes"
)

// Limit is what a crate may weigh.
const Limit = 50

const (
	// Wood is the usual material.
	Wood Material = iota
	Steel
	first, last = Wood, Steel
)

// ErrFull says that nothing more fits.
var ErrFull = errors.New("the shelf is full")

var (
	mutex    sync.Mutex
	shelves               = map[string]*Shelf{}
	standard              = &Shelf{name: "standard", clock: clock.System{}}
	_        shapes.Shape = (*Crate)(nil)
)

// Material is what a crate is made of.
type Material int

func (m Material) String() string { return materials[m] }

// Label is another name for a text.
type Label = string

// Crates are many.
type Crates []*Crate

// Heaviest is the one to lift with care.
func (crates Crates) Heaviest() *Crate {
	var found *Crate
	for _, crate := range crates {
		if found == nil || found.Weight < crate.Weight {
			found = crate
		}
	}
	return found
}

// Named is taken into what has a name.
type Named struct {
	label Label
}

func (n *Named) Label() Label { return n.label }

// Crate holds things.
type Crate struct {
	*Named
	shapes.Rectangle `json:"base"`
	Lid              *shapes.Rectangle
	Weight, tare     float64
	inside           map[string][]Thing[int]
	opened           func(*Crate) error
}

// Thing is whatever fits.
type Thing[K comparable] struct {
	Key  K
	next *Thing[K]
}

// Shelf has room for crates.
type Shelf struct {
	sync.RWMutex
	name   string
	clock  clock.Clock
	crates Crates
	events chan Event
}

// Option changes a shelf before it is used.
type Option func(*Shelf)

// Event is something that happened.
type Event struct{ Crate *Crate }

// WithClock gives a shelf another clock.
func WithClock(c clock.Clock) Option {
	return func(shelf *Shelf) { shelf.clock = c }
}

// Open finds a shelf or makes it.
func Open(name string, options ...Option) (shelf *Shelf, err error) {
	mutex.Lock()
	defer mutex.Unlock()
	shelf, ok := shelves[name]
	if ok {
		return shelf, nil
	}
	shelf = &Shelf{name: name, events: make(chan Event, Limit)}
	for _, option := range options {
		option(shelf)
	}
	if problem := shelf.check(); problem != nil {
		return nil, problem
	}
	shelves[name] = shelf
	return shelf, nil
}

// Crates are those on the shelf.
func (s *Shelf) Crates() Crates {
	s.RLock()
	defer s.RUnlock()
	return s.crates
}

// Put adds a crate.
func (s *Shelf) Put(crate *Crate) error {
	if len(s.crates) >= Limit {
		return ErrFull
	}
	s.crates = append(s.crates, crate)
	s.events <- Event{Crate: crate}
	return nil
}

// Each goes on until it is told to stop.
func (s *Shelf) Each(visit func(*Crate) bool) {
	for _, crate := range s.crates {
		if !visit(crate) {
			return
		}
	}
}

func (s *Shelf) Close() error {
	close(s.events)
	last := s.crates.Heaviest()
	last.Label()
	s.crates[0].Lid.Area()
	event := <-s.events
	event.Crate.Label()
	return nil
}
