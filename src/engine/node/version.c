/* engine/node/version.c: version, commit and formats. Only this file is compiled again for every commit. */
#include <pawl/version.h>

#include "adapter/journal/segment.h"
#include "adapter/lmdb/mark.h"
#include "commit.h"
#include "core/event/event.h"
#include "core/project/operation.h"
#include "core/schema/definition.h"
#include "core/schema/row.h"
#include "core/token/token.h"
#include "engine/directory/directory.h"
#ifdef PAWL_CLUSTER
#include "adapter/kafka/record.h"
#endif

static const pawl_format formats[] = {
    {"directory", NODE_FILE_VERSION},
    {"journal", FORMAT_VERSION},
    {"store", MARK_VERSION},
    {"event", EVENT_VERSION},
    {"operation", OPERATION_VERSION},
    {"schema", DEFINITION_VERSION},
    {"row", ROW_VERSION},
    {"token", TOKEN_VERSION},
#ifdef PAWL_CLUSTER
    {"kafka", KAFKA_RECORD_VERSION},
#endif
};

static const pawl_version_info info = {
    .number = PAWL_VERSION_NUMBER,
    .version = PAWL_VERSION,
    .commit = PAWL_COMMIT,
#ifdef PAWL_CLUSTER
    .cluster = true,
#endif
    .formats = formats,
    .format_count = sizeof formats / sizeof formats[0],
};

const pawl_version_info *pawl_version(void)
{
    return &info;
}
