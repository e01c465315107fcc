module example.org/sea/light
