/* engine/json/form_time.c: timestamps, exact over the whole range of 64 bits of nanoseconds: from
 * 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z. */
#include <string.h>

#include "engine/json/form.h"

#define SECOND_NS   INT64_C(1000000000)
#define DAY_SECONDS INT64_C(86400)

/* Days since 1970-01-01, in the calendar of today. Years are counted from March, so that the leap day is a
 * year's last; 719468 days lie between the March of year 0 and 1970. */
static int64_t days_of(int year, int month, int day)
{
    int y = month > 2 ? year : year - 1, from_march = (month + 9) % 12;
    return (int64_t)y * 365 + y / 4 - y / 100 + y / 400 + (153 * from_march + 2) / 5 + day - 1 - 719468;
}

/* The other way, within the range of the timestamps: all years have four digits. */
static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t since = days + 719468, century = since / 146097, in_cycle = since % 146097;
    int64_t year = (in_cycle - in_cycle / 1460 + in_cycle / 36524 - in_cycle / 146096) / 365;
    int64_t in_year = in_cycle - (365 * year + year / 4 - year / 100), from_march = (5 * in_year + 2) / 153;
    *ret_day = (int)(in_year - (153 * from_march + 2) / 5 + 1);
    *ret_month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *ret_year = (int)(year + century * 400 + (*ret_month <= 2));
}

static bool date_exists(int year, int month, int day)
{
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= lengths[month - 1]
           && (month != 2 || day < 29 || leap);
}

static bool number_at(const char *at, size_t count, int *ret_number)
{
    int v = 0;
    for (size_t i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        v = v * 10 + (at[i] - '0');
    }
    *ret_number = v;
    return true;
}

/* ".5" and up to nine digits; nothing at all is no fraction. */
static bool read_fraction(const char *at, size_t size, int *ret_ns)
{
    int ns = 0;
    if (size == 0) {
        *ret_ns = 0;
        return true;
    }
    if (size < 2 || size > 10 || at[0] != '.' || !number_at(at + 1, size - 1, &ns))
        return false;
    for (size_t digits = size - 1; digits < 9; digits++)
        ns *= 10;
    *ret_ns = ns;
    return true;
}

bool form_timestamp_read(pawl_bytes text, int64_t *ret_ns)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    const size_t fixed = sizeof form - 1;
    const char *at = text.data;
    int year, month, day, hour, minute, second, ns;
    if (text.size < fixed + 1 || text.size > FORM_TIMESTAMP_CHARS || at[text.size - 1] != 'Z')
        return false;
    for (size_t i = 0; i < fixed; i++)
        if (form[i] != 'd' && at[i] != form[i])
            return false;
    if (!number_at(at, 4, &year) || !number_at(at + 5, 2, &month) || !number_at(at + 8, 2, &day)
        || !number_at(at + 11, 2, &hour) || !number_at(at + 14, 2, &minute) || !number_at(at + 17, 2, &second)
        || !read_fraction(at + fixed, text.size - fixed - 1, &ns))
        return false;
    if (!date_exists(year, month, day) || hour > 23 || minute > 59 || second > 59)
        return false;
    int64_t seconds = days_of(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second, whole;
    int64_t rest = ns;
    if (seconds < 0 && ns > 0) { /* towards zero, or the range's first second would not fit */
        seconds++;
        rest -= SECOND_NS;
    }
    return !__builtin_mul_overflow(seconds, SECOND_NS, &whole) && !__builtin_add_overflow(whole, rest, ret_ns);
}

static char *put_number(char *at, int number, size_t digits)
{
    for (size_t i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

size_t form_timestamp_write(int64_t ns, char text[FORM_TIMESTAMP_CHARS])
{
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;
    if (rest < 0) {
        seconds--;
        rest += SECOND_NS;
    }
    int64_t days = seconds / DAY_SECONDS, in_day = seconds % DAY_SECONDS;
    if (in_day < 0) {
        days--;
        in_day += DAY_SECONDS;
    }
    int year, month, day;
    date_of(days, &year, &month, &day);
    const struct {
        int number;
        size_t digits;
        char before;
    } parts[] = {{month, 2, '-'},
                 {day, 2, '-'},
                 {(int)(in_day / 3600), 2, 'T'},
                 {(int)(in_day / 60 % 60), 2, ':'},
                 {(int)(in_day % 60), 2, ':'}};
    char *at = put_number(text, year, 4);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *at++ = parts[i].before;
        at = put_number(at, parts[i].number, parts[i].digits);
    }
    if (rest) {
        *at++ = '.';
        if (rest % 1000000 == 0)
            at = put_number(at, (int)(rest / 1000000), 3);
        else if (rest % 1000 == 0)
            at = put_number(at, (int)(rest / 1000), 6);
        else
            at = put_number(at, (int)rest, 9);
    }
    *at++ = 'Z';
    return (size_t)(at - text);
}
