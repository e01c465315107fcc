#ifndef CANVAS_H_
#define CANVAS_H_

namespace geo {

class Shape;

class Canvas final {
 public:
  explicit Canvas(int depth)
      :
#ifdef COUNTED
        count_(0),
#endif
        depth_(depth) {
  }
  Canvas* parent();
  template <class T>
  void draw(const T& shape);
  void redraw();

  struct Layer {
    void clear();
  };
  std::vector<Layer> layers;
  int (*callback)(int);

 private:
  int depth_;
};

union Word {
  int number;
  float fraction;
};

}  // namespace geo

#endif
