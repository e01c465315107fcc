package depot.store;

public interface Clock {
    long now();
}
