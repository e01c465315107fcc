int before(void) { return 1; }

int half(int a {
    before();
    if (a {

int after(void) { return before(); }

struct unfinished {
    int a;
