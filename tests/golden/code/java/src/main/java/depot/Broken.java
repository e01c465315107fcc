package depot;

import java.util.

/** Half of a class. */
public class Broken {
    void half(int a, {
        call(a;
    }

    Shelf left

    void after() { half(1); }
