function fine() {
  return other(;
}

class Open {
  method() {
    fine()
