/* engine/tree.h: directories as a whole. */
#ifndef ENGINE_TREE_H
#define ENGINE_TREE_H

#include <pawl/types.h>

/* All that is there, as far as it lets itself be removed. */
void tree_remove(const char *path);

/* A directory that is nobody else's, below TMPDIR or /tmp: "pawl-" and this name. path has NODE_PATH_MAX bytes.
 */
int tree_make_temporary(const char *name, char *path, pawl_error *error);

/* The names in a directory reach the disk. */
int tree_sync(const char *path, pawl_error *error);

#endif
