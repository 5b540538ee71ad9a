/* adapter/mem/tree.h: an ordered map whose old versions stay.
 *
 * A treap: a tree by key, a heap by a priority drawn from the key's hash, so its shape depends on the rows and
 * not on how they came. Nothing that is shared is ever changed: a change copies the path to it and shares the
 * rest, so a version is one pointer, and keeping one costs one reference. References may be given back on any
 * thread.
 *
 *   T1. A node whose count is above one, or that a version's root reaches, is not written to. */
#ifndef ADAPTER_MEM_TREE_H
#define ADAPTER_MEM_TREE_H

#include "port/longkey.h"

struct tree; /* a version: NULL is the empty one */

struct tree *tree_ref(struct tree *tree);
void tree_unref(const pawl_allocator *alloc, struct tree *tree);

/* Each gives a new version with a reference of its own, and leaves the old one as it was. PAWL_ENOMEM. */
int tree_put(const pawl_allocator *alloc, struct tree *tree, pawl_bytes key, pawl_bytes value,
             struct tree **ret_tree);
int tree_remove_range(const pawl_allocator *alloc, struct tree *tree, const struct longkey_range *range,
                      struct tree **ret_tree);
int tree_remove(const pawl_allocator *alloc, struct tree *tree, pawl_bytes key, struct tree **ret_tree);

/* Borrowed from the version. */
bool tree_get(const struct tree *tree, pawl_bytes key, pawl_bytes *ret_value);

/* In order, or in reverse, until visit says stop; false if it did. */
bool tree_scan(const struct tree *tree, const struct longkey_range *range, bool reverse, pawl_visit_row visit,
               void *arg);

#endif
