class Rigging
