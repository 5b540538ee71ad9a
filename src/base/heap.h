/* base/heap.h: a priority queue whose nodes are inside what they order.
 *
 * A pairing heap: insert is O(1), taking the least and removing any node are O(log n) amortised, and nothing is
 * allocated. Nodes are ordered by key, then by seq, so that whoever gives each node its own seq gets one order
 * and no other, whatever came and went in between.
 *
 * A heap that is all zeros is empty. The nodes are the caller's, who also knows which of them are in. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <pawl/types.h>

struct heap_node {
    struct heap_node *child;
    struct heap_node *next;
    struct heap_node *prev; /* the left sibling; of a first child, the parent; of the root, NULL */
    uint64_t key;
    uint64_t seq;
};

struct heap {
    struct heap_node *root;
};

/* From a node to the struct that has it as member. */
#define heap_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* The least node, or NULL. */
static inline struct heap_node *heap_min(const struct heap *heap)
{
    return heap->root;
}

/* key and seq are set by the caller before, and stay while the node is in. */
void heap_insert(struct heap *heap, struct heap_node *node);
void heap_remove(struct heap *heap, struct heap_node *node);

#endif
