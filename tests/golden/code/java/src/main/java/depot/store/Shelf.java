package depot.store;

import depot.shapes.Rectangle;
import java.io.Closeable;
import java.util.ArrayList;
import java.util.List;

/** Has room for crates. */
@Audited(by = "store")
public class Shelf extends Place<Crate> implements Closeable, Named {
    public static final int ROOM = Limits.CRATES;
    protected final List<Crate> crates = new ArrayList<>();
    private final String name;
    Clock clock;

    // Not yet anywhere.
    public Shelf(String name, Clock clock) {
        super(name);
        this.name = name;
        this.clock = clock;
    }

    public Shelf(Shelf other) {
        this(other.name, other.clock);
    }

    public static Shelf open(String name) {
        return new Shelf(name, new SystemClock());
    }

    @Override
    public String label() {
        return super.label() + name;
    }

    public List<Crate> crates() {
        return crates;
    }

    protected void put(final Crate crate, Rectangle... lids) throws FullException {
        if (crates.size() >= ROOM) {
            throw new FullException(name);
        }
        clock.now();
        check();
        crates.add(crate);
    }

    private void check() {}

    public boolean isEmpty() {
        return crates.isEmpty();
    }

    public Lock lock() {
        return () -> check();
    }

    public <V extends Visitor> void visit(V visitor) {
        crates.forEach(crate -> visitor.visit(crate));
    }

    @Override
    public void close() {
        Runnable later = this::check;
        later.run();
    }

    /** What it is made of. */
    public enum Material implements Named {
        /** The usual one. */
        WOOD("wood"),
        STEEL("steel") {
            @Override
            public String label() {
                return "heavy";
            }
        };

        private final String text;

        Material(String text) {
            this.text = text;
        }

        @Override
        public String label() {
            return text;
        }
    }
}
