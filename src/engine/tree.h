/* engine/tree.h: directories as a whole. */
#ifndef ENGINE_TREE_H
#define ENGINE_TREE_H

#include <pawl/types.h>

/* All that is there, as far as it lets itself be removed. */
void tree_remove(const char *path);

/* The names in a directory reach the disk. */
int tree_sync(const char *path, pawl_error *error);

#endif
