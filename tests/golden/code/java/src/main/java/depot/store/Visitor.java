package depot.store;

public interface Visitor {
    boolean visit(Crate crate);
}
