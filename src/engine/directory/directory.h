/* engine/directory/directory.h: a data directory on the disk: what it was made with, the paths in it and its
 * lock (node_file.h); removing and syncing whole directories (tree.h). */
#ifndef ENGINE_DIRECTORY_DIRECTORY_H
#define ENGINE_DIRECTORY_DIRECTORY_H

#include "engine/directory/node_file.h"
#include "engine/directory/tree.h"

#endif
