#include "base/timestamp.h"

#include <string.h>

#include "base/error.h"

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

/* Each 'd' of the form is a digit, and everything else is itself. */
static bool has_form(const char *at, const char *form, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (form[i] == 'd' ? at[i] < '0' || at[i] > '9' : at[i] != form[i])
            return false;
    return true;
}

/* Of characters that are digits. */
static int number_at(const char *at, size_t count)
{
    int v = 0;
    for (size_t i = 0; i < count; i++)
        v = v * 10 + (at[i] - '0');
    return v;
}

/* ".5" and up to nine digits; nothing at all is no fraction. */
static bool read_fraction(const char *at, size_t size, int *ret_ns)
{
    int ns = 0;
    if (size == 1 || size > 10 || !has_form(at, ".ddddddddd", size))
        return false;
    for (size_t i = 1; i < 10; i++)
        ns = ns * 10 + (i < size ? at[i] - '0' : 0);
    *ret_ns = ns;
    return true;
}

/* The first ten characters. */
static bool read_days(const char *at, int64_t *ret_days)
{
    int year = number_at(at, 4), month = number_at(at + 5, 2), day = number_at(at + 8, 2);
    if (!date_exists(year, month, day))
        return false;
    *ret_days = days_of(year, month, day);
    return true;
}

/* False: beyond 64 bits. */
static bool join(int64_t seconds, int64_t rest, int64_t *ret_ns)
{
    int64_t whole, ns;
    if (seconds < 0 && rest > 0) { /* towards zero, or the range's first second would not fit */
        seconds++;
        rest -= SECOND_NS;
    }
    if (__builtin_mul_overflow(seconds, SECOND_NS, &whole) || __builtin_add_overflow(whole, rest, &ns))
        return false;
    *ret_ns = ns;
    return true;
}

bool timestamp_read(pawl_bytes text, int64_t *ret_ns)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    const size_t fixed = sizeof form - 1;
    const char *at = text.data;
    int64_t days;
    int ns;
    if (text.size < fixed + 1 || text.size > TIMESTAMP_CHARS || at[text.size - 1] != 'Z'
        || !has_form(at, form, fixed) || !read_days(at, &days)
        || !read_fraction(at + fixed, text.size - fixed - 1, &ns))
        return false;
    int hour = number_at(at + 11, 2), minute = number_at(at + 14, 2), second = number_at(at + 17, 2);
    return hour <= 23 && minute <= 59 && second <= 59
           && join(days * DAY_SECONDS + hour * 3600 + minute * 60 + second, ns, ret_ns);
}

bool timestamp_read_date(pawl_bytes text, int64_t *ret_ns)
{
    static const char form[] = "dddd-dd-dd";
    int64_t days;
    return text.size == sizeof form - 1 && has_form(text.data, form, text.size) && read_days(text.data, &days)
           && join(days * DAY_SECONDS, 0, ret_ns);
}

static char *put_number(char *at, int number, size_t digits)
{
    for (size_t i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

size_t timestamp_write(int64_t ns, char text[TIMESTAMP_CHARS])
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

_Static_assert(TIMESTAMP_CHARS < PAWL_WALL_TEXT_MAX, "every timestamp fits, with a zero behind it");

void pawl_wall_format(pawl_wall wall, char *text)
{
    text[timestamp_write(wall.ns, text)] = '\0';
}

int pawl_wall_parse(const char *text, pawl_wall *ret_wall, pawl_error *error)
{
    int64_t ns;
    if (!timestamp_read((pawl_bytes){text, strlen(text)}, &ns))
        return error_set(error, PAWL_EINVAL, "'%.40s' is not a time such as 2026-11-15T10:00:00.123Z", text);
    ret_wall->ns = ns;
    return PAWL_OK;
}
