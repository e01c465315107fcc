package depot;

import static depot.shapes.Shapes.*;
import static depot.store.Limits.HEAVIEST;

import depot.store.*;
import java.util.List;
import java.util.Optional;

/** Counts what lies in a warehouse. */
public final class Main {
    private static final String VERSION = "1", NAME = "depot";
    static int started;

    static {
        started = 1;
    }

    private Main() {}

    /**
     * Starts it.
     *
     * @param arguments what the shell gave
     */
    public static void main(String[] arguments) throws Exception {
        var shelf = Shelf.open("shelf");
        Shelf other = new Shelf("other", new SystemClock()), third = null;
        try (Lock lock = shelf.lock()) {
            lock.check();
        } catch (IllegalStateException | IllegalArgumentException problem) {
            problem.printStackTrace();
        }
        for (Crate crate : shelf.crates()) {
            System.out.println(crate.label().trim() + area(crate.lid()));
        }
        shelf.crates().stream().map(Crate::label).filter(label -> label.length() > 3).forEach(System.out::println);
        other.visit(new Visitor() {
            @Override
            public boolean visit(Crate crate) {
                return crate.weight() > HEAVIEST;
            }
        });
        Object thing = third;
        if (thing instanceof Shelf found && !found.isEmpty()) {
            found.close();
        }
        ((Shelf) thing).close();
        new Shelf("(", null).close();
        Optional<Shelf> maybe = Optional.of(other);
        maybe.map(Shelf::new).get().close();
        Main.Größe.klein().add(NAME);
    }

    /** Nested, and with a name of its own. */
    static class Größe<T extends Comparable<T>> {
        List<T> values;

        static Größe<?> klein() {
            return new Größe<>();
        }

        void add(String value) {
            Main.started++;
            this.values.size();
        }
    }
}
