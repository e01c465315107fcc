package depot.store;

public final class Limits {
    public static final double HEAVIEST = 50;
    static final int CRATES = 10;

    static void check(double weight) {
        if (weight > HEAVIEST) throw new IllegalArgumentException(String.valueOf(weight));
    }
}
