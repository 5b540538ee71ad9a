/* engine/directory/directory.h: a data directory on the disk, closed: what it was made with, where its parts lie,
 * whose it is; and directories as a whole. */
#ifndef ENGINE_DIRECTORY_DIRECTORY_H
#define ENGINE_DIRECTORY_DIRECTORY_H

#include "engine/directory/node_file.h"
#include "engine/directory/tree.h"

#endif
