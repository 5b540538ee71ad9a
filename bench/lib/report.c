#include "bench/lib/report.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commit.h"

enum { QUESTION, OURS, PEER, UNIT, RATIO, GOAL, MET, COLUMNS };

#define CELL_MAX 128

typedef char cells[COLUMNS][CELL_MAX];

#define PEERS_MAX 16

static struct {
    char name[32], version[32];
} peers[PEERS_MAX];
static size_t peer_count;

void bench_peer(const char *name, const char *version)
{
    for (size_t i = 0; i < peer_count; i++)
        if (strcmp(peers[i].name, name) == 0)
            return;
    assert(peer_count < PEERS_MAX);
    snprintf(peers[peer_count].name, sizeof peers[0].name, "%s", name);
    snprintf(peers[peer_count].version, sizeof peers[0].version, "%s", version);
    peer_count++;
}

/* A goal for a ratio says nothing if the peer was left out. */
static bool is_judged(const struct bench_answer *a)
{
    return a->question->goal > 0 && (!a->question->peer || a->peer.median > 0);
}

bool answer_met(const struct bench_answer *a)
{
    double value = a->question->peer ? a->ratio : a->ours.median;
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

struct machine {
    char processor[128], filesystem[64];
    struct utsname kernel;
    long cores;
};

static void find_machine(struct machine *m, const char *dir)
{
    *m = (struct machine){.cores = sysconf(_SC_NPROCESSORS_ONLN)};
    find_line("/proc/cpuinfo", "model name", m->processor, sizeof m->processor);
    find_filesystem(dir, m->filesystem, sizeof m->filesystem);
    uname(&m->kernel);
}

void report_machine(FILE *out, const char *dir)
{
    struct machine m;
    find_machine(&m, dir);
    fprintf(out, "commit      %s\n", PAWL_COMMIT);
    fprintf(out, "machine     %s, %ld cores, %s %s %s\n", m.processor, m.cores, m.kernel.sysname,
            m.kernel.release, m.kernel.machine);
    fprintf(out, "directory   %s (%s)\n\n", dir, m.filesystem);
}

static void format_value(char *cell, double value)
{
    snprintf(cell, CELL_MAX, "%.*f", value >= 1000 ? 0 : value >= 10 ? 1 : 3, value);
}

static void format_row(const struct bench_answer *a, cells row)
{
    snprintf(row[QUESTION], CELL_MAX, "%s", a->question->question);
    format_value(row[OURS], a->ours.median);
    snprintf(row[PEER], CELL_MAX, "-");
    snprintf(row[RATIO], CELL_MAX, "-");
    if (a->peer.median > 0) {
        format_value(row[PEER], a->peer.median);
        snprintf(row[RATIO], CELL_MAX, "%.2f", a->ratio);
    }
    snprintf(row[UNIT], CELL_MAX, "%s", a->question->unit);
    snprintf(row[GOAL], CELL_MAX, "-");
    if (a->question->goal > 0)
        snprintf(row[GOAL], CELL_MAX, "%s %.2f",
                 a->question->better == BENCH_MORE ? ">=" : "<=", a->question->goal);
    snprintf(row[MET], CELL_MAX, "%s", !is_judged(a) ? "-" : answer_met(a) ? "yes" : "NO");
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
    for (size_t i = 0; i < peer_count; i++)
        fprintf(out, "%s%s %s%s", i ? ", " : "\npeers: ", peers[i].name, peers[i].version,
                i + 1 == peer_count ? "\n" : "");
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

static void print_side(FILE *out, const char *name, const struct bench_side *side)
{
    if (side->median <= 0) {
        fprintf(out, ", \"%s\": null", name);
        return;
    }
    fprintf(out, ", \"%s\": {\"median\": %.9g, \"least\": %.9g, \"most\": %.9g", name, side->median,
            side->least, side->most);
    fprintf(out, ", \"processor_us\": %.6g, \"per\": \"%s\"}", side->processor_us,
            side->per_operation ? "operation" : "round");
}

static void print_answer(FILE *out, const struct bench_answer *a)
{
    fputs("    {\"question\": ", out);
    print_string(out, a->question->question);
    fputs(", \"unit\": ", out);
    print_string(out, a->question->unit);
    print_side(out, "ours", &a->ours);
    print_side(out, "peer", &a->peer);
    if (a->peer.median > 0)
        fprintf(out, ", \"ratio\": %.6g", a->ratio);
    else
        fputs(", \"ratio\": null", out);
    fprintf(out, ", \"of\": \"%s\", \"better\": \"%s\"", a->question->peer ? "ratio" : "ours",
            a->question->better == BENCH_MORE ? "more" : "less");
    if (a->question->goal > 0)
        fprintf(out, ", \"goal\": %.9g", a->question->goal);
    else
        fputs(", \"goal\": null", out);
    fprintf(out, ", \"met\": %s}", !is_judged(a) ? "null" : answer_met(a) ? "true" : "false");
}

static void print_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "  \"%s\": ", name);
    print_string(out, text);
    fputs(",\n", out);
}

void report_json(FILE *out, const struct bench_run *run, const struct bench_answer *answers, size_t count)
{
    char kernel[256];
    struct machine m;
    find_machine(&m, run->dir);
    snprintf(kernel, sizeof kernel, "%s %s %s", m.kernel.sysname, m.kernel.release, m.kernel.machine);
    fputs("{\n", out);
    print_member(out, "bench", run->bench);
    print_member(out, "commit", PAWL_COMMIT);
    print_member(out, "processor", m.processor);
    print_member(out, "kernel", kernel);
    print_member(out, "filesystem", m.filesystem);
    print_member(out, "compiler", __VERSION__);
    fprintf(out, "  \"cores\": %ld,\n  \"rounds\": %u,\n  \"quick\": %s,\n", m.cores, run->rounds,
            run->quick ? "true" : "false");
    fputs("  \"peers\": {", out);
    for (size_t i = 0; i < peer_count; i++) {
        fputs(i ? ", " : "", out);
        print_string(out, peers[i].name);
        fputs(": ", out);
        print_string(out, peers[i].version);
    }
    fputs("},\n", out);
    fprintf(out, "  \"load_before\": %.2f,\n  \"load_after\": %.2f,\n  \"answers\": [", run->load_before,
            run->load_after);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n" : "\n", out);
        print_answer(out, &answers[i]);
    }
    fputs("\n  ]\n}\n", out);
}
