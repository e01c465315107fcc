/* Written before there were prototypes. */
int
add(a, b)
    int a;
    int b;
{
    return a + b;
}

#ifdef WIDE
long sum(long a) {
#else
int sum(int a) {
#endif
    return add(a, 1);
}

EXPORTED int exported(void) { return add(1, 2); }

int __attribute__((noinline)) attributed(void) { return 1; }

DEFINE_TABLE(numbers)
static unsigned char größe(int länge) { return sum(länge); }

static int limit(int a) {
    if (a > 1
#ifdef STRICT
        && a < 10 &&
#endif
        1) {
        return 0;
    }
    return exported();
}
