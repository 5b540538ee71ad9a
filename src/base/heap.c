#include "base/heap.h"

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

/* Two roots become one: the later goes under the earlier, as its first child. */
static struct heap_node *meld(struct heap_node *a, struct heap_node *b)
{
    if (before(b, a)) {
        struct heap_node *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* A list of siblings becomes one root: melded in pairs from the left, then the pairs from the right, which is
 * what keeps the amortised cost logarithmic. The pairs wait on a list linked by next, the last one first. */
static struct heap_node *meld_all(struct heap_node *first)
{
    struct heap_node *pairs = NULL;
    while (first) {
        struct heap_node *a = first;
        struct heap_node *b = a->next;
        first = b ? b->next : NULL;
        struct heap_node *pair = b ? meld(a, b) : a;
        pair->next = pairs;
        pairs = pair;
    }
    struct heap_node *root = pairs;
    pairs = root ? root->next : NULL;
    while (pairs) {
        struct heap_node *pair = pairs;
        pairs = pair->next;
        root = meld(root, pair);
    }
    if (root) {
        root->next = NULL;
        root->prev = NULL;
    }
    return root;
}

void heap_insert(struct heap *heap, struct heap_node *node)
{
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    heap->root = heap->root ? meld(heap->root, node) : node;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    struct heap_node *rest = meld_all(node->child);
    if (node == heap->root) {
        heap->root = rest;
    } else {
        if (node->prev->child == node)
            node->prev->child = node->next;
        else
            node->prev->next = node->next;
        if (node->next)
            node->next->prev = node->prev;
        if (rest)
            heap->root = meld(heap->root, rest);
    }
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
}
