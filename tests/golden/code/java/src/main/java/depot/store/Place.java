package depot.store;

abstract class Place<T> implements Named, Comparable<Place<T>> {
    private final String where;

    Place(String where) {
        this.where = where;
    }

    public String label() {
        return where;
    }

    @Override
    public int compareTo(Place<T> other) {
        return label().compareTo(other.label());
    }
}
