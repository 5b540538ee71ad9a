/* expr_literal.c: the values of written numbers and timestamps, the same on every machine. */
#include "core/schema/expr_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Exactly count digits. */
static bool take_number(const char **at, const char *end, int count, int *ret)
{
    if (end - *at < count)
        return false;
    int v = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        v = v * 10 + (**at - '0');
    }
    *ret = v;
    return true;
}

static bool take_char(const char **at, const char *end, char c)
{
    if (*at == end || **at != c)
        return false;
    (*at)++;
    return true;
}

/* Days since 1970-01-01. Years are counted from March, so that the leap day is a year's last. */
static int64_t days_of(int year, int month, int day)
{
    int y = month > 2 ? year : year - 1;
    int from_march = (month + 9) % 12;
    int64_t leap_days = y / 4 - y / 100 + y / 400;
    return (int64_t)y * 365 + leap_days + (153 * from_march + 2) / 5 + day - 1 - 719468;
}

static bool take_date(const char **at, const char *end, int64_t *ret_days)
{
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (!take_number(at, end, 4, &year) || !take_char(at, end, '-') || !take_number(at, end, 2, &month)
        || !take_char(at, end, '-') || !take_number(at, end, 2, &day))
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    /* The whole years that nanoseconds in 64 bits reach. */
    if (year < 1678 || year > 2261 || month < 1 || month > 12 || day < 1 || day > lengths[month - 1]
        || (month == 2 && day == 29 && !leap))
        return false;
    *ret_days = days_of(year, month, day);
    return true;
}

static bool take_fraction(const char **at, const char *end, int64_t *ret_ns)
{
    int64_t ns = 0, unit = 100 * 1000 * 1000;
    const char *start = *at;
    for (; *at < end && **at >= '0' && **at <= '9' && unit > 0; (*at)++, unit /= 10)
        ns += unit * (**at - '0');
    *ret_ns = ns;
    return *at > start;
}

bool expr_parse_timestamp(pawl_bytes text, int64_t *ret_ns)
{
    const char *at = text.data, *end = at + text.size;
    int64_t days, ns = 0;
    int hour = 0, minute = 0, second = 0;
    if (!take_date(&at, end, &days))
        return false;
    if (at != end) {
        if (!take_char(&at, end, 'T') || !take_number(&at, end, 2, &hour) || !take_char(&at, end, ':')
            || !take_number(&at, end, 2, &minute) || !take_char(&at, end, ':')
            || !take_number(&at, end, 2, &second))
            return false;
        if (take_char(&at, end, '.') && !take_fraction(&at, end, &ns))
            return false;
        if (!take_char(&at, end, 'Z') || at != end || hour > 23 || minute > 59 || second > 59)
            return false;
    }
    *ret_ns = (days * 86400 + hour * 3600 + minute * 60 + second) * INT64_C(1000000000) + ns;
    return true;
}
