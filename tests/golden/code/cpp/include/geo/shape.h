#pragma once

#include <memory>
#include <string>
#include <vector>

GEO_BEGIN
namespace geo {

class Canvas;

/// Anything that can be drawn.
///
/// It owns nothing.
class GEO_API Shape {
 public:
  Shape() = default;
  explicit Shape(std::string name);
  Shape(const Shape&) = delete;
  virtual ~Shape();

  /** The area, in square metres. */
  virtual double area() const = 0;
  const std::string& name() const;
  bool operator==(const Shape& other) const;
  explicit operator bool() const { return !name_.empty(); }
  static std::unique_ptr<Shape> parse(const std::string& text);

  static constexpr int kLimit = 8;
  static int count;
  using Ptr = std::shared_ptr<Shape>;

 protected:
  void touch();
  struct Corner {
    double x, y;
  };

 private:
  friend class Canvas;
  std::string name_;
  Canvas* canvas_;
};

enum class Color : unsigned char { kRed, kGreen };

template <typename T>
concept Drawable = requires(T shape) { shape.draw(); };

template <typename T, int N = 2>
class Grid : public Shape, private std::vector<T> {
 public:
  T& at(int x, int y);
  template <typename F>
  void each(F visit) {
    visit(at(0, 0));
  }

 private:
  T cells_[N];
};

// A grid of one kind has fewer cells.
template <>
struct Grid<bool, 1> {
  int operator()(int x) const { return x; }
};

template <typename T>
using Row = std::vector<T>;

typedef Grid<int> IntGrid;

template <typename T>
T largest(T one, T other);

inline namespace v1 {
int version();
}

}  // namespace geo
GEO_END
