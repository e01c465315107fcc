package light
