module example.org/bell

require example.org/sea/light v0.1.0
