#include "adapter/mem/tree.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"

/* A key and its value, shared by all the nodes that were copied from one another. */
struct row {
    atomic_uint refs;
    uint64_t priority;
    struct longkey key;
    pawl_bytes value;
    size_t size;     /* of the allocation */
    uint8_t bytes[]; /* the key, the value, and the stored key if the key is long */
};

struct tree {
    atomic_uint refs;
    struct row *row;
    struct tree *left;
    struct tree *right;
};

static struct row *row_new(const pawl_allocator *alloc, pawl_bytes key, pawl_bytes value)
{
    size_t stored = key.size > PAWL_KEY_BYTES_SORTED ? PAWL_KEY_BYTES_SORTED : 0;
    size_t size = sizeof(struct row) + key.size + value.size + stored;
    struct row *row = mem_new(alloc, size, 1);
    if (!row)
        return NULL;
    atomic_init(&row->refs, 1);
    row->size = size;
    memcpy(row->bytes, key.data, key.size);
    if (value.size)
        memcpy(row->bytes + key.size, value.data, value.size);
    row->value = (pawl_bytes){row->bytes + key.size, value.size};
    row->key = longkey_place((pawl_bytes){row->bytes, key.size}, row->bytes + key.size + value.size);
    row->priority = hash_checksum(1, key);
    return row;
}

static struct row *row_ref(struct row *row)
{
    atomic_fetch_add_explicit(&row->refs, 1, memory_order_relaxed);
    return row;
}

static void row_unref(const pawl_allocator *alloc, struct row *row)
{
    if (atomic_fetch_sub_explicit(&row->refs, 1, memory_order_acq_rel) == 1)
        mem_free(alloc, row, row->size);
}

struct tree *tree_ref(struct tree *tree)
{
    if (tree)
        atomic_fetch_add_explicit(&tree->refs, 1, memory_order_relaxed);
    return tree;
}

void tree_unref(const pawl_allocator *alloc, struct tree *tree)
{
    if (!tree || atomic_fetch_sub_explicit(&tree->refs, 1, memory_order_acq_rel) != 1)
        return;
    tree_unref(alloc, tree->left);
    tree_unref(alloc, tree->right);
    row_unref(alloc, tree->row);
    mem_free(alloc, tree, sizeof *tree);
}

/* Takes the two subtrees' references, also on failure; copies the row's. */
static struct tree *node_new(const pawl_allocator *alloc, struct row *row, struct tree *left,
                             struct tree *right)
{
    struct tree *node = mem_new(alloc, 1, sizeof *node);
    if (!node) {
        tree_unref(alloc, left);
        tree_unref(alloc, right);
        return NULL;
    }
    atomic_init(&node->refs, 1);
    node->row = row_ref(row);
    node->left = left;
    node->right = right;
    return node;
}

/* The row goes in or replaces the one with its key. The result is a fresh node, which may still be turned. */
static struct tree *insert(const pawl_allocator *alloc, struct tree *tree, struct row *row)
{
    if (!tree)
        return node_new(alloc, row, NULL, NULL);
    int order = longkey_compare(row->key, tree->row->key);
    if (order == 0)
        return node_new(alloc, row, tree_ref(tree->left), tree_ref(tree->right));
    struct tree *below = insert(alloc, order < 0 ? tree->left : tree->right, row);
    if (!below)
        return NULL;
    struct tree *node = order < 0 ? node_new(alloc, tree->row, below, tree_ref(tree->right))
                                  : node_new(alloc, tree->row, tree_ref(tree->left), below);
    if (!node || below->row->priority <= node->row->priority)
        return node;
    if (order < 0) {
        node->left = below->right;
        below->right = node;
    } else {
        node->right = below->left;
        below->left = node;
    }
    return below;
}

int tree_put(const pawl_allocator *alloc, struct tree *tree, pawl_bytes key, pawl_bytes value,
             struct tree **ret_tree)
{
    struct row *row = row_new(alloc, key, value);
    if (!row)
        return PAWL_ENOMEM;
    struct tree *result = insert(alloc, tree, row);
    row_unref(alloc, row);
    if (!result)
        return PAWL_ENOMEM;
    *ret_tree = result;
    return PAWL_OK;
}

/* All of a before all of b. */
static int join(const pawl_allocator *alloc, struct tree *a, struct tree *b, struct tree **ret_tree)
{
    struct tree *below = NULL;
    if (!a || !b) {
        *ret_tree = tree_ref(a ? a : b);
        return PAWL_OK;
    }
    bool a_above = a->row->priority > b->row->priority;
    int status = a_above ? join(alloc, a->right, b, &below) : join(alloc, a, b->left, &below);
    if (status != PAWL_OK)
        return status;
    struct tree *node = a_above ? node_new(alloc, a->row, tree_ref(a->left), below)
                                : node_new(alloc, b->row, below, tree_ref(b->right));
    if (!node)
        return PAWL_ENOMEM;
    *ret_tree = node;
    return PAWL_OK;
}

int tree_remove_range(const pawl_allocator *alloc, struct tree *tree, const struct longkey_range *range,
                      struct tree **ret_tree)
{
    if (!tree) {
        *ret_tree = NULL;
        return PAWL_OK;
    }
    struct tree *left = NULL, *right = NULL;
    int side = longkey_range_side(range, tree->row->key);
    int status = side >= 0 ? tree_remove_range(alloc, tree->left, range, &left) : PAWL_OK;
    if (status == PAWL_OK && side <= 0)
        status = tree_remove_range(alloc, tree->right, range, &right);
    if (status == PAWL_OK && side == 0)
        status = join(alloc, left, right, ret_tree);
    if (status != PAWL_OK || side == 0) {
        tree_unref(alloc, left);
        tree_unref(alloc, right);
        return status;
    }
    struct tree *node = side < 0 ? node_new(alloc, tree->row, tree_ref(tree->left), right)
                                 : node_new(alloc, tree->row, left, tree_ref(tree->right));
    if (!node)
        return PAWL_ENOMEM;
    *ret_tree = node;
    return PAWL_OK;
}

int tree_remove(const pawl_allocator *alloc, struct tree *tree, pawl_bytes key, struct tree **ret_tree)
{
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    struct tree *below = NULL;
    if (!tree)
        return PAWL_ENOTFOUND;
    int order = longkey_compare(longkey_place(key, room), tree->row->key);
    if (order == 0)
        return join(alloc, tree->left, tree->right, ret_tree);
    int status = tree_remove(alloc, order < 0 ? tree->left : tree->right, key, &below);
    if (status != PAWL_OK)
        return status;
    struct tree *node = order < 0 ? node_new(alloc, tree->row, below, tree_ref(tree->right))
                                  : node_new(alloc, tree->row, tree_ref(tree->left), below);
    if (!node)
        return PAWL_ENOMEM;
    *ret_tree = node;
    return PAWL_OK;
}

bool tree_get(const struct tree *tree, pawl_bytes key, pawl_bytes *ret_value)
{
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    struct longkey place = longkey_place(key, room);
    while (tree) {
        int order = longkey_compare(place, tree->row->key);
        if (order == 0) {
            *ret_value = tree->row->value;
            return true;
        }
        tree = order < 0 ? tree->left : tree->right;
    }
    return false;
}

bool tree_scan(const struct tree *tree, const struct longkey_range *range, bool reverse, pawl_visit_row visit,
               void *arg)
{
    if (!tree)
        return true;
    int side = longkey_range_side(range, tree->row->key);
    const struct tree *first = reverse ? tree->right : tree->left;
    const struct tree *second = reverse ? tree->left : tree->right;
    bool see_first = reverse ? side <= 0 : side >= 0;
    bool see_second = reverse ? side >= 0 : side <= 0;
    if (see_first && !tree_scan(first, range, reverse, visit, arg))
        return false;
    if (side == 0 && !visit(arg, tree->row->key.whole, tree->row->value))
        return false;
    return !see_second || tree_scan(second, range, reverse, visit, arg);
}
