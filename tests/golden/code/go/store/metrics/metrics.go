// Package metrics is here for what happens when it is loaded.
package metrics

func init() { register(counter{}) }

type counter struct{}

type metric interface{}

func register(metric) {}
