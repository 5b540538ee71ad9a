#include "bench/lib/report.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commit.h"

enum { QUESTION, OURS, PEER, UNIT, RATIO, GOAL, MET, COLUMNS };

#define CELL_MAX 128

typedef char cells[COLUMNS][CELL_MAX];

double answer_ratio(const struct bench_answer *a)
{
    return a->question->peer ? a->ours / a->peer : 0;
}

bool answer_met(const struct bench_answer *a)
{
    double value = a->question->peer ? answer_ratio(a) : a->ours;
    return a->question->better == BENCH_MORE ? value >= a->question->goal : value <= a->question->goal;
}

/* Copies what follows the colon of the first line that starts with key. */
static void find_line(const char *path, const char *key, char *text, size_t size)
{
    char line[512];
    FILE *file = fopen(path, "r");
    snprintf(text, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(text, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file)
        fclose(file);
}

/* A filesystem's type stands behind the lone "-" of its line in mountinfo; the line is found by its device. */
static void find_filesystem(const char *dir, char *text, size_t size)
{
    char line[4096];
    struct stat st;
    FILE *file = fopen("/proc/self/mountinfo", "r");
    snprintf(text, size, "unknown");
    if (file && stat(dir, &st) == 0) {
        char device[32];
        snprintf(device, sizeof device, " %u:%u ", major(st.st_dev), minor(st.st_dev));
        while (fgets(line, sizeof line, file)) {
            const char *type = strstr(line, " - ");
            if (type && strstr(line, device))
                snprintf(text, size, "%.*s", (int)strcspn(type + 3, " \n"), type + 3);
        }
    }
    if (file)
        fclose(file);
}

void report_machine(FILE *out, const char *dir)
{
    char cpu[128], filesystem[64];
    struct utsname kernel = {0};
    find_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    find_filesystem(dir, filesystem, sizeof filesystem);
    uname(&kernel);
    fprintf(out, "commit      %s\n", PAWL_COMMIT);
    fprintf(out, "machine     %s, %ld cores, %s %s %s\n", cpu, sysconf(_SC_NPROCESSORS_ONLN), kernel.sysname,
            kernel.release, kernel.machine);
    fprintf(out, "directory   %s (%s)\n\n", dir, filesystem);
}

static void format_value(char *cell, double value)
{
    snprintf(cell, CELL_MAX, "%.*f", value >= 1000 ? 0 : value >= 10 ? 1 : 3, value);
}

static void format_row(const struct bench_answer *a, cells row)
{
    snprintf(row[QUESTION], CELL_MAX, "%s", a->question->question);
    format_value(row[OURS], a->ours);
    snprintf(row[PEER], CELL_MAX, "-");
    snprintf(row[RATIO], CELL_MAX, "-");
    if (a->question->peer) {
        format_value(row[PEER], a->peer);
        snprintf(row[RATIO], CELL_MAX, "%.2f", answer_ratio(a));
    }
    snprintf(row[UNIT], CELL_MAX, "%s", a->question->unit);
    snprintf(row[GOAL], CELL_MAX, "%s %.2f",
             a->question->better == BENCH_MORE ? ">=" : "<=", a->question->goal);
    snprintf(row[MET], CELL_MAX, "%s", answer_met(a) ? "yes" : "NO");
}

/* Characters, not bytes: the bytes that continue a UTF-8 sequence take no room. */
static int text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_row(FILE *out, cells row, const int *widths)
{
    for (int c = 0; c < COLUMNS; c++) {
        int pad = widths[c] - text_width(row[c]);
        bool number = c == OURS || c == PEER || c == RATIO || c == GOAL;
        fprintf(out, "%s%*s%s%*s", c ? " | " : "", number ? pad : 0, "", row[c], number || c == MET ? 0 : pad,
                "");
    }
    fputc('\n', out);
}

void report_table(FILE *out, const struct bench_answer *answers, size_t count)
{
    cells head = {"question", "ours", "peer", "unit", "ratio", "goal", "met"}, row;
    int widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        widths[c] = text_width(head[c]);
    for (size_t i = 0; i < count; i++) {
        format_row(&answers[i], row);
        for (int c = 0; c < COLUMNS; c++)
            widths[c] = text_width(row[c]) > widths[c] ? text_width(row[c]) : widths[c];
    }
    print_row(out, head, widths);
    for (size_t i = 0; i < count; i++) {
        format_row(&answers[i], row);
        print_row(out, row, widths);
    }
}

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

void report_json(FILE *out, const struct bench_answer *answers, size_t count)
{
    fputs("[", out);
    for (size_t i = 0; i < count; i++) {
        const struct bench_answer *a = &answers[i];
        fprintf(out, "%s\n  {\"question\": ", i ? "," : "");
        print_string(out, a->question->question);
        fprintf(out, ", \"ours\": %.9g", a->ours);
        if (a->question->peer)
            fprintf(out, ", \"peer\": %.9g", a->peer);
        else
            fputs(", \"peer\": null", out);
        fputs(", \"unit\": ", out);
        print_string(out, a->question->unit);
        if (a->question->peer)
            fprintf(out, ", \"ratio\": %.6g", answer_ratio(a));
        else
            fputs(", \"ratio\": null", out);
        fprintf(out, ", \"goal\": %.9g, \"met\": %s}", a->question->goal, answer_met(a) ? "true" : "false");
    }
    fputs("\n]\n", out);
}
