package depot

import (
	"fmt"
	"os

// Half is what is left of it.
func Half(a int, b {
	fmt.Println(a
}

type Left struct {
	a int
	b

func (l *Left) After() *Left {
	return l.Before(
}

func Whole() { Half(1) }
