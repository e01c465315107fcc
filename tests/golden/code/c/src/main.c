#include "store/list.h"
#include <stdio.h>

static void note(const char *text) { printf("%s\n", text); }

int main(int argc, char **argv) {
    list *l = list_create();
    list_sort(l, 0);
    /* Of another file alone. */
    compare_numbers(argv, argv);
    /* Nobody has said that there is one. */
    sum(argc);
    note("done");
    l->release(l);
    return LIST_LIMIT + node_print(LIST_FIRST(l));
}
