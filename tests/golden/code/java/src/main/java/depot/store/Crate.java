package depot.store;

import depot.shapes.Rectangle;

/** Holds things. */
public record Crate(String name, double weight, Rectangle lid) implements Named {
    public Crate {
        Limits.check(weight);
    }

    @Override
    public String label() {
        return name + lid.area();
    }
}
