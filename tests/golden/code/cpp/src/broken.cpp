class Whole {
 public:
  void works() { helper(); }
};

class Half : public {
  void lost(int a;
  template <typename

void after() { Whole().works(); }

namespace open {
int inside() { return 1; }
