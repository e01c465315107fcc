#pragma once

struct node;

typedef struct node {
    struct node *next;
    union value {
        long number;
        char *text;
    } value;
    enum { NODE_NUMBER, NODE_TEXT } kind;
} node_t;

enum color { RED, GREEN = 2, BLUE };

typedef enum { SMALL, LARGE } size_kind;

struct PACKED_ALIGNED header {
    unsigned length;
};

node_t *node_create(enum color color);
STORE_API int node_print(const node_t *node);
void (*node_handler(int signal, void (*handler)(int)))(int);
