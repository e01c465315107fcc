package depot.shapes;

/* Not a javadoc comment, but a comment. */
public interface Shapes {
    double UNIT = 1.0;

    static double area(Shape shape) {
        return shape.area() * UNIT;
    }
}
