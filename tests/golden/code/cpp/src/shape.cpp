#include "geo/shape.h"
#include "canvas.h"
#include <cmath>

using namespace std;
using geo::Shape;
using std::string;

namespace geo {

int Shape::count = 0;

namespace {

const int kHidden = 3;

struct Secret {
  int value;
};

double square(double x) { return std::pow(x, 2); }

}  // namespace

static void note(const string& text) { Log::write(text); }

Shape::Shape(string name) : name_(std::move(name)), canvas_(nullptr) { touch(); }

Shape::~Shape() {}

const string& Shape::name() const { return name_; }

bool Shape::operator==(const Shape& other) const { return name() == other.name(); }

void Shape::touch() {
  this->canvas_->redraw();
  canvas_->layers.front().clear();
  auto corner = new Corner();
  auto row = std::make_unique<Grid<int>>();
  auto made = Shape::parse("a");
  Canvas canvas(1);
  Canvas* other = canvas.parent();
  other->draw<Shape>(*this);
  square(2);
  note("touched");
  ::geo::version();
  std::vector<Shape*> shapes{};
  for (const Shape* shape : shapes) shape->area();
  auto f = [this](int x) { return square(x); };
  f(1);
  return (void)Corner{1, 2};
}

template <typename T, int N>
T& Grid<T, N>::at(int x, int y) {
  return cells_[x * N + y];
}

}  // namespace geo

namespace geo::detail {
void Helper::run() const noexcept {}
}  // namespace geo::detail

Shape::operator bool() const { return true; }

geo::Shape operator"" _shape(const char* text, unsigned long) { return geo::Shape(text); }

extern "C" int geo_version(void) { return geo::version(); }

TEST_F(ShapeTest, HasAName) { EXPECT_EQ(Shape("a").name(), "a"); }

struct Point {
  int x;
} origin;

int größe(int länge) { return länge; }
