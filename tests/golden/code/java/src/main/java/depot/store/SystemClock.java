package depot.store;

public class SystemClock implements Clock {
    public long now() {
        return System.currentTimeMillis();
    }
}
