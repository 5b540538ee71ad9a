/* expr_literal.c: the values of written numbers and timestamps, the same on every machine. */
#include "core/schema/expr_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timestamp.h"

/* The mantissa goes to strtod as an integer, its point moved into the exponent: 12.5e3 is 125e2. strtod rounds
 * exactly, but takes the decimal point from the locale, and the host program may have set one with a comma. */
bool expr_parse_float(pawl_bytes text, double *ret_real)
{
    char plain[EXPR_NUMBER_CHARS_MAX + 16];
    const char *c = text.data, *end = c + text.size;
    size_t used = 0;
    int point = 0, exponent = 0;
    for (bool fraction = false; c < end && *c != 'e' && *c != 'E'; c++) {
        if (*c == '.') {
            fraction = true;
            continue;
        }
        plain[used++] = *c;
        point -= fraction;
    }
    if (c < end) {
        c++;
        bool negative = *c == '-';
        if (*c == '-' || *c == '+')
            c++;
        /* Beyond any float, whatever the mantissa: larger ones need not be told apart. */
        for (; c < end; c++)
            exponent = exponent < 10000 ? exponent * 10 + (*c - '0') : exponent;
        exponent = negative ? -exponent : exponent;
    }
    snprintf(plain + used, sizeof plain - used, "e%d", exponent + point);
    double real = strtod(plain, NULL);
    if (!isfinite(real))
        return false;
    *ret_real = real;
    return true;
}

bool expr_parse_timestamp(pawl_bytes text, int64_t *ret_ns)
{
    return timestamp_read(text, ret_ns) || timestamp_read_date(text, ret_ns);
}
