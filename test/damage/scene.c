#include "test/damage/scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/journal/tail.h"

const pawl_stream scene_streams[2] = {{.kind = PAWL_STREAM_RAW}, {.kind = PAWL_STREAM_OPLOG, 5, 7, 2}};

void scene_init(struct scene *scene)
{
    *scene = (struct scene){.log = NULL};
    const char *top = getenv("TMPDIR");
    snprintf(scene->dir, sizeof scene->dir, "%s/pawl-damage-XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(scene->dir));
    snprintf(scene->journal, sizeof scene->journal, "%s/journal", scene->dir);
    struct mem_world_options world = {.seed = 1};
    struct mem_env_options env = {.shards = 1};
    assert_ok(mem_world_open(&world, &scene->world, NULL));
    assert_ok(mem_env_open(scene->world, &env, &scene->env, NULL));
}

static void empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            char inner[512];
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            if (unlink(inner) != 0) {
                empty_dir(inner);
                rmdir(inner);
            }
        }
    closedir(dir);
}

void scene_release(struct scene *scene)
{
    scene_close(scene);
    mem_world_close(scene->world);
    empty_dir(scene->dir);
    assert_int_equal(rmdir(scene->dir), 0);
}

static void claimed(pawl_claim *claim)
{
    (void)claim;
}

int scene_open(struct scene *scene)
{
    struct journal_options options = {
        .dir = scene->dir, .env = mem_env_port(scene->env), .segment_bytes = SCENE_SEGMENT, .no_threads = true};
    int status = journal_open(&options, &scene->log, &scene->error);
    if (status != PAWL_OK) {
        scene->log = NULL;
        return status;
    }
    for (size_t i = 0; i < 2; i++) {
        pawl_claim claim = {.stream = scene_streams[i], .done = claimed};
        assert_ok(pawl_log_claim(scene->log, &claim));
        journal_pump(scene->log);
        assert_ok(claim.status);
        scene->epochs[i] = claim.epoch;
        scene->nexts[i] = claim.next;
    }
    return PAWL_OK;
}

void scene_close(struct scene *scene)
{
    if (!scene->log)
        return;
    assert_ok(pawl_log_close(scene->log));
    scene->log = NULL;
}

uint8_t scene_body(size_t stream, uint64_t offset)
{
    return (uint8_t)('a' + (stream * 13 + offset) % 26);
}

static void appended(pawl_append *append)
{
    (void)append;
}

void scene_append(struct scene *scene, size_t stream, size_t count, size_t bytes)
{
    pawl_append_entry entries[16];
    uint8_t bodies[16][512];
    assert_true(count <= 16 && bytes <= sizeof bodies[0]);
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = scene->nexts[stream]++;
        memset(bodies[i], scene_body(stream, offset), bytes);
        entries[i] = (pawl_append_entry){.entry = {.stream = scene_streams[stream],
                                                   .epoch = scene->epochs[stream],
                                                   .offset = offset,
                                                   .kind = (uint8_t)(offset + 3),
                                                   .body = {bodies[i], bytes}}};
    }
    pawl_append append = {.entries = entries, .count = count, .alone = true, .done = appended};
    assert_non_null(scene->log);
    if (!scene->log)
        return;
    assert_int_equal(pawl_log_append(scene->log, &append), PAWL_APPEND_DONE);
    assert_ok(append.status);
}

void scene_write(struct scene *scene, bool killed)
{
    assert_ok(scene_open(scene));
    scene_append(scene, 0, 2, 100);
    scene_append(scene, 1, 1, 0);
    scene_append(scene, 0, 1, 13);
    scene_close(scene);

    assert_ok(scene_open(scene));
    for (size_t i = 0; i < 6; i++) {
        scene_append(scene, i % 2, 3, 120);
        scene_append(scene, 1, 1, 61 + i);
    }
    struct picture open;
    picture_take(&open, scene->journal);
    scene_close(scene);
    picture_put(&open, scene->journal);
    picture_release(&open);

    assert_ok(scene_open(scene));
    scene_append(scene, 1, 2, 40);
    scene_close(scene);
    assert_ok(scene_open(scene));
    scene_append(scene, 0, 3, 1);
    picture_take(&open, scene->journal);
    scene_close(scene);
    if (killed)
        picture_put(&open, scene->journal);
    picture_release(&open);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct picture_file *)a)->name, ((const struct picture_file *)b)->name);
}

void picture_take(struct picture *picture, const char *path)
{
    *picture = (struct picture){.count = 0};
    DIR *dir = opendir(path);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        assert_true(picture->count < PICTURE_FILES_MAX);
        struct picture_file *f = &picture->files[picture->count++];
        assert_true(strlen(entry->d_name) < sizeof f->name);
        snprintf(f->name, sizeof f->name, "%s", entry->d_name);
        int fd = openat(dirfd(dir), f->name, O_RDONLY);
        struct stat st = {0};
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        f->size = (size_t)st.st_size;
        f->bytes = malloc(f->size + 1);
        assert_non_null(f->bytes);
        assert_int_equal(pread(fd, f->bytes, f->size + 1, 0), f->size);
        close(fd);
    }
    closedir(dir);
    qsort(picture->files, picture->count, sizeof picture->files[0], by_name);
}

void write_file(const char *dir, const char *name, const void *bytes, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), size);
    close(fd);
}

void picture_put(const struct picture *picture, const char *path)
{
    empty_dir(path);
    for (size_t i = 0; i < picture->count; i++)
        write_file(path, picture->files[i].name, picture->files[i].bytes, picture->files[i].size);
}

void picture_release(struct picture *picture)
{
    for (size_t i = 0; i < picture->count; i++)
        free(picture->files[i].bytes);
    picture->count = 0;
}

void picture_assert(const struct picture *picture, const char *path)
{
    struct picture now;
    picture_take(&now, path);
    assert_int_equal(now.count, picture->count);
    for (size_t i = 0; i < now.count; i++) {
        const struct picture_file *a = &picture->files[i], *b = &now.files[i];
        assert_string_equal(a->name, b->name);
        if (strcmp(a->name, "lock") == 0)
            continue;
        assert_int_equal(a->size, b->size);
        assert_memory_equal(a->bytes, b->bytes, a->size);
    }
    picture_release(&now);
}

const struct picture_file *picture_find(const struct picture *picture, const char *name)
{
    for (size_t i = 0; i < picture->count; i++)
        if (strcmp(picture->files[i].name, name) == 0)
            return &picture->files[i];
    fail_msg("there is no %s", name);
    return NULL;
}

const struct picture_file *picture_segment(const struct picture *picture, uint32_t wanted)
{
    uint32_t number;
    uint64_t lsn;
    for (size_t i = 0; i < picture->count; i++)
        if (segment_name_parse(picture->files[i].name, &number, &lsn) && number == wanted)
            return &picture->files[i];
    return NULL;
}

const struct picture_file *picture_newest(const struct picture *picture)
{
    uint32_t number = 1;
    while (picture_segment(picture, number + 1))
        number++;
    return picture_segment(picture, number);
}

size_t scene_records(struct scene *scene, const struct picture *picture, struct live_record *ret_records)
{
    size_t count = 0;
    int dir = disk_real.open_dir(NULL, scene->journal);
    for (uint32_t number = 1;; number++) {
        const struct picture_file *file = picture_segment(picture, number);
        const struct picture_file *next = picture_segment(picture, number + 1);
        struct segment_ref ref = {number, 0}, following = {0, UINT64_MAX};
        if (!file)
            break;
        assert_true(segment_name_parse(file->name, &ref.number, &ref.first_lsn));
        if (next)
            assert_true(segment_name_parse(next->name, &following.number, &following.first_lsn));
        struct tail t;
        struct tail_end end;
        struct record r;
        int status;
        assert_ok(tail_open(&t, &disk_real, dir, ref, NULL, NULL, NULL));
        assert_ok(tail_probe(&t, &end, NULL));
        scan_seek(&t.scan, t.file, t.at, t.lsn + 1, t.chain, true);
        uint64_t at = t.at;
        while (t.scan.lsn < following.first_lsn && scan_next(&t.scan, &r, &status) == SCAN_RECORD) {
            assert_true(count < LIVE_RECORDS_MAX);
            struct live_record *l = &ret_records[count++];
            *l = (struct live_record){.at = at,
                                      .size = t.scan.at - at,
                                      .lsn = r.lsn,
                                      .witnessed = next || end.sealed || r.lsn <= end.witnessed};
            snprintf(l->file, sizeof l->file, "%s", file->name);
            at = t.scan.at;
        }
        tail_close(&t);
    }
    disk_real.close(NULL, dir);
    return count;
}

void flip(const char *dir, const char *name, uint64_t at, uint8_t bits)
{
    char path[256];
    uint8_t byte;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}
