/* core/schema/value.h: one value of a field, as rows hold it and expressions compute it. */
#ifndef CORE_SCHEMA_VALUE_H
#define CORE_SCHEMA_VALUE_H

#include <pawl/types.h>

/* The numbers are stored in schemas and rows: they are never given to anything else. */
enum value_type {
    VALUE_NULL = 0,
    VALUE_INT64 = 1,
    VALUE_FLOAT64 = 2,
    VALUE_BOOL = 3,
    VALUE_STRING = 4, /* valid UTF-8 */
    VALUE_BYTES = 5,
    VALUE_TIMESTAMP = 6, /* nanoseconds since 1970 UTC, signed */
    VALUE_QNAME = 7,     /* a qualified name, as the number that group0 gave it */
    VALUE_REF = 8,       /* the ID of a record of the same workspace */
};

#define VALUE_TYPE_LAST VALUE_REF

/* Bytes and strings are borrowed from wherever the value came from. */
struct value {
    enum value_type type;
    union {
        int64_t integer; /* INT64, TIMESTAMP */
        double real;     /* FLOAT64: never NaN, never infinite */
        bool boolean;
        pawl_bytes bytes; /* STRING, BYTES */
        uint16_t name;    /* QNAME */
        uint64_t id;      /* REF */
    };
};

#endif
