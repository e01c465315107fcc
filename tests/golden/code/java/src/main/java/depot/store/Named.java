package depot.store;

public interface Named {
    String label();
}
