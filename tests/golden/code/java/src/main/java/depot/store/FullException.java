package depot.store;

public class FullException extends Exception {
    FullException(String name) {
        super(name);
    }
}
