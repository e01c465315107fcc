package depot.shapes;

public sealed class Rectangle implements Shape permits Square {
    double width, height;

    public double area() {
        return width * height;
    }
}

final class Square extends Rectangle {}
