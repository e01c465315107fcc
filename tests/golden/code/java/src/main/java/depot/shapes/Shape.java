package depot.shapes;

public interface Shape {
    double area();
}
