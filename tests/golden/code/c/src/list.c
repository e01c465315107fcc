#include "store/list.h"
#include "../include/store/node.h"
#include <stdlib.h>
#include CONFIGURED_HEADER

#define SWAP(a, b) \
    do {           \
        swap(a, b); \
    } while (0)

size_t list_count = 0, *list_sizes;
static const char *names[] = {"one", "two"};
static int compare_numbers(const void *one, const void *other);
extern int verbose;
int (*on_change)(list *) = 0;

static const list_compare comparers[] = {compare_numbers, NULL};

static struct cache {
    int used;
} cache = {0};

/* Make an empty list. */
list *list_create(void) {
    list *l = calloc(1, sizeof(*l));
    l->release = free;
    register_list(l);
    return l;
}

// Compares.
// By number.
static int compare_numbers(const void *one, const void *other) {
    const node_t *a = one;
    return a->value.number > ((const node_t *)other)->value.number;
}

int list_sort(list *l, list_compare compare)
{
    if (!compare)
        compare = compare_numbers;
    qsort(l, list_length(l), sizeof(node_t), compare_numbers);
    SWAP(l->first, l->first);
    return l->release != NULL;
}

void list_release(list *l) {
    l->release(l);
    LIST_FIRST(l) = NULL;
}
