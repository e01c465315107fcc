#ifndef STORE_LIST_H
#define STORE_LIST_H

#include <stddef.h>
#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many nodes a list holds before it is split. */
#define LIST_LIMIT 64
#define LIST_FIRST(l) ((l)->first)
#define LIST_CHECKED

/* A list that owns its nodes. */
typedef struct list {
    node_t *first;
    size_t length;
    /* Frees a value. */
    void (*release)(void *value);
} list, *list_ptr;

typedef struct {
    list *over;
    node_t *at;
} list_iterator;

typedef struct opaque opaque;

typedef int (*list_compare)(const void *one, const void *other);

/* Make an empty list.
 *
 * Nobody else frees it. */
list *list_create(void);
void list_release(list *l);
extern size_t list_count, *list_sizes;
int list_sort(list *l, list_compare compare), list_reverse(list *l);

/* Of everyone who includes this. */
static inline size_t list_length(const list *l) { return l->length; }

#ifdef __cplusplus
}
#endif

#endif
