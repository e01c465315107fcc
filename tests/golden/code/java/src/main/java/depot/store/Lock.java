package depot.store;

public interface Lock extends AutoCloseable {
    void check();

    @Override
    default void close() {
        check();
    }
}
