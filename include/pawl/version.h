/* version.h: which Pawl this is, and which formats it writes.
 *
 * A program compiles against a version (the macros) and runs with one (the function). They may differ: the
 * shared library can be replaced by a newer one that keeps the ABI. docs/ABI.md says what may change when. */
#ifndef PAWL_VERSION_H
#define PAWL_VERSION_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers: 10000 * major + 100 * minor + patch. */
#define PAWL_VERSION_NUMBER 100

/* A format of bytes on a disk or on a wire (docs/FORMAT.md). This library writes this version, and reads it and
 * all before it; a newer one is refused with PAWL_EVERSION. */
typedef struct pawl_format {
    const char *name; /* "journal", "event", ... */
    uint32_t version;
} pawl_format;

typedef struct pawl_version_info {
    uint32_t number;     /* as PAWL_VERSION_NUMBER, but of the library that runs */
    const char *version; /* "0.1.0" */
    const char *commit;  /* the commit that it was built from; "unknown" outside a checkout */
    bool cluster;        /* built with the log on Apache Kafka */
    const pawl_format *formats;
    size_t format_count;
} pawl_version_info;

/* Constants: never NULL, valid for as long as the library is loaded. Any thread. */
PAWL_API const pawl_version_info *pawl_version(void);

#ifdef __cplusplus
}
#endif
#endif
