package depot.shapes;

class Patterns {
    static double size(Shape shape) {
        return switch (shape) {
            case Rectangle rectangle -> rectangle.area();
            case Circle(Point(double x, double y), double radius) -> radius * Shapes.UNIT;
            case Ring(Circle outer, var hole) when hole != null -> outer.area();
            default -> shape.area();
        };
    }
}

record Point(double x, double y) {}

record Circle(Point middle, double radius) implements Shape {
    public double area() {
        return Math.PI * middle.x();
    }
}

record Ring(Circle outer, Circle hole) implements Shape {
    public double area() {
        return outer().area() - hole.area();
    }
}
