/* base/timestamp.h: timestamps as text: RFC 3339 in UTC, as 2026-11-15T10:00:00.123456Z. The one place that
 * reads and writes them: JSON and expressions agree.
 *
 * A timestamp is nanoseconds since 1970 UTC in 64 bits. All of these are read and written exactly: from
 * 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z. There are no leap seconds. None of it
 * depends on the host's locale. */
#ifndef BASE_TIMESTAMP_H
#define BASE_TIMESTAMP_H

#include <pawl/types.h>

#define TIMESTAMP_CHARS 30

/* A date and a time with up to nine digits of a second, then 'Z'. False: not of the form, no such date or time,
 * or out of the range; *ret_ns is untouched then. */
bool timestamp_read(pawl_bytes text, int64_t *ret_ns);

/* A date alone, 2026-11-15: its midnight. False: the same. */
bool timestamp_read_date(pawl_bytes text, int64_t *ret_ns);

/* With 0, 3, 6 or 9 digits of a second. The size is returned; there is no end mark. */
size_t timestamp_write(int64_t ns, char text[TIMESTAMP_CHARS]);

#endif
