module example.org/sea/buoy // the first

go 1.22

require example.org/sea/light v0.1.0

require (
	example.org/bell v1.2.3
	"example.org/quoted" v0.0.1
	example.org/chain v2.0.0+incompatible // indirect
)

replace example.org/bell v1.2.3 => ../bell

replace (
	example.org/chain => example.org/rope v2.1.0
)

exclude example.org/rust v0.1.0
