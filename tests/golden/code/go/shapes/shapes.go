package shapes

import "math"

// A Shape has an area. Those that can be summed are numbers.
type (
	Shape interface {
		Area() float64
	}

	// Solid is a shape with a volume.
	Solid interface {
		Shape
		// Volume is how much fits into it.
		Volume() (cubic float64)
	}

	Number interface {
		~int | ~int64 | ~float64
	}
)

type Circle struct{ Radius float64 }

func (c Circle) Area() float64 { return math.Pi * square(c.Radius) }

type Rectangle struct {
	Width, Height float64
}

func (r *Rectangle) Area() float64 { return r.Width * r.Height }

func Area(shape Shape) float64 {
	switch known := shape.(type) {
	case nil:
		return 0
	case *Rectangle:
		return known.Area()
	}
	return shape.Area()
}

func square[N Number](side N) N { return side * side }

// Sum adds what a function finds in each.
func Sum[T any, N Number](all []T, of func(T) N) (total N) {
	for _, each := range all {
		total += of(each)
	}
	return total
}
