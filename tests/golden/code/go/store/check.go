package store

import (
	"fmt"

	größe "example.com/depot/shapes"
)

var materials = [...]string{"wood", "steel"}

type checker interface{ check() error }

type überprüfung struct {
	shelf *Shelf
	done  bool
}

func (ü *überprüfung) run() error {
	type weight struct{ value float64 }
	heaviest := weight{}
	total := größe.Sum(ü.shelf.crates, func(crate *Crate) float64 { return crate.Weight })
	sum := größe.Sum[*Crate, float64](ü.shelf.crates, weigh)
	heaviest.value = max(total, sum)
	var shape größe.Shape = &größe.Circle{Radius: heaviest.value}
	if circle, ok := shape.(*größe.Circle); ok {
		circle.Area()
	}
	(&größe.Rectangle{Width: 1, Height: 2}).Area()
	new(größe.Rectangle).Area()
	größe.Circle{Radius: 1}.Area()
	shape.(*größe.Circle).Area()
	thing := Thing[int]{Key: int(total)}
	thing.next.next.hop().hop()
	ü.done = true
	return fmt.Errorf("%v", ü)
}

func (t *Thing[K]) hop() *Thing[K] { return t.next }

func (s *Shelf) check() error {
	var todo checker = s
	if todo == nil {
		return (checker)(standard).check()
	}
	return (&überprüfung{shelf: s}).run()
}

func weigh(crate *Crate) float64 {
	weighed := func() float64 { return crate.Weight }
	return weighed()
}
