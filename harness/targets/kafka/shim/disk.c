/* The disk: a budget of bytes, behind which writes are refused as on a full one, and a ledger of what has reached it.
 *
 * A write that grows a file takes from the budget of the whole disk and of its log directory; what does not fit is cut
 * off (a short write), and a write of which nothing fits gets ENOSPC. Removing and cutting files gives back what the
 * file system frees by that, but no more than the bytes that are gone: a file that is grown without being written, as
 * an index of 10 MiB by ftruncate, takes nothing, nor do stores to its mapped pages, and its holes give nothing. A
 * second disk (SEAWALL_BESIDE) never fills; what has reached it is in the same ledger.
 *
 * The ledger has a line for each event; files and directories are named by their inodes, so renaming one moves nothing:
 *
 *     created FILE DIRECTORY     flushed FILE SIZE     cut FILE SIZE     listed DIRECTORY     moved FILE DIRECTORY 0|1
 *
 * The last number of `moved` says whether all of the file had been flushed before. A file that is replaced by one of
 * which this is not true stays, under the inode of the new one, in a directory of its own, which is on that disk, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim.h"

#define MAX_FDS 65536
#define MAX_MAPPINGS 16384
#define FLUSHED_FILES 65536
#define MAX_REFUSALS 1000
#define FOREIGN 0
#define ON_DISK 1 /* and log directory number n is ON_DISK + 1 + n */
#define BESIDE 255

struct control *control HIDDEN;

static char disk[PATH_MAX], beside[PATH_MAX], log_dirs[LOG_DIRS][NAME_MAX + 2], kept[PATH_MAX];
static int log_dir_count, ledger = -1, refusals = -1;
static _Atomic unsigned char places[MAX_FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------------------------------------------- start */

static int must(int result, const char *what) {
    if (result >= 0)
        return result;
    dprintf(STDERR_FILENO, "seawall: %s: %s\n", what, strerror(errno));
    _exit(70);
}

static int appending(const char *variable) {
    const char *path = getenv(variable);
    return path == NULL ? -1 : must(REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), path);
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("SEAWALL_CONTROL"), *names = getenv("SEAWALL_LOG_DIRS");
    if (path == NULL || getenv("SEAWALL_DISK") == NULL)
        return;
    int fd = must(REAL(open)(path, O_RDWR | O_CLOEXEC), path);
    ledger = appending("SEAWALL_LEDGER");
    refusals = appending("SEAWALL_REFUSALS");
    int sharing = ledger < 0 ? MAP_PRIVATE : MAP_SHARED;
    void *mapped = REAL(mmap)(NULL, sizeof *control, PROT_READ | PROT_WRITE, sharing, fd, 0);
    must(mapped == MAP_FAILED ? -1 : 0, path);
    REAL(close)(fd);
    snprintf(disk, sizeof disk, "%s/", getenv("SEAWALL_DISK"));
    if (getenv("SEAWALL_BESIDE") != NULL)
        snprintf(beside, sizeof beside, "%s/", getenv("SEAWALL_BESIDE"));
    for (const char *name = names; name != NULL && *name && log_dir_count < LOG_DIRS; log_dir_count++) {
        size_t length = strcspn(name, ":");
        snprintf(log_dirs[log_dir_count], sizeof *log_dirs, "%.*s/", (int)length, name);
        name += length + (name[length] == ':');
    }
    if (getenv("SEAWALL_KEPT") != NULL) {
        snprintf(kept, sizeof kept, "%s", getenv("SEAWALL_KEPT"));
        if (mkdir(kept, 0777) == 0)
            must(chmod(kept, 0777), kept); /* whoever runs the node's other processes writes there, too */
        else
            must(errno == EEXIST ? 0 : -1, kept);
    }
    control = mapped;
}

/* ------------------------------------------------------------------------------------------------------- where */

static bool is_in(const char *path, const char *directory) {
    return *directory && strncmp(path, directory, strlen(directory)) == 0;
}

static int place_of_name(const char *path) {
    if (control == NULL || !is_in(path, disk))
        return control != NULL && is_in(path, beside) ? BESIDE : FOREIGN;
    for (int number = 0; number < log_dir_count; number++)
        if (strncmp(path + strlen(disk), log_dirs[number], strlen(log_dirs[number])) == 0)
            return ON_DISK + 1 + number;
    return ON_DISK;
}

static bool name_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

static int place_of(int fd) { return fd >= 0 && fd < MAX_FDS ? atomic_load(&places[fd]) : FOREIGN; }

static void put(int fd, int place) {
    if (fd >= 0 && fd < MAX_FDS)
        atomic_store(&places[fd], place);
}

static bool is_file(const struct stat *about) { return S_ISREG(about->st_mode); }

static const struct stat nothing;

static ino_t parent(const char *path) {
    char directory[PATH_MAX];
    struct stat about;
    snprintf(directory, sizeof directory, "%s", path);
    char *end = strrchr(directory, '/');
    if (end != NULL)
        *end = 0;
    return stat(directory, &about) == 0 ? about.st_ino : 0;
}

/* ------------------------------------------------------------------------------------------------------- ledger */

static void say(int file, const char *format, ...) {
    char line[PATH_MAX + 128];
    va_list words;
    if (file < 0)
        return;
    va_start(words, format);
    int length = vsnprintf(line, sizeof line, format, words);
    va_end(words);
    ssize_t written = REAL(write)(file, line, length);
    if (written >= 0 && written < length)
        errno = ENOSPC;
    must(written == length ? 0 : -1, "the ledger");
}

/* How much of each file this process has flushed, in a hash table that forgets a file rather than grow. */
static struct {
    ino_t file;
    off_t size;
} flushed_sizes[FLUSHED_FILES];

static void flushed(ino_t file, off_t size) {
    pthread_mutex_lock(&lock);
    flushed_sizes[file % FLUSHED_FILES].file = file;
    flushed_sizes[file % FLUSHED_FILES].size = size;
    pthread_mutex_unlock(&lock);
    say(ledger, "flushed %ju %jd\n", (uintmax_t)file, (intmax_t)size);
}

/* A file has been cut: no more than `size` bytes of it have reached the disk. */
static void cut(ino_t file, off_t size) {
    pthread_mutex_lock(&lock);
    if (flushed_sizes[file % FLUSHED_FILES].file == file && flushed_sizes[file % FLUSHED_FILES].size > size)
        flushed_sizes[file % FLUSHED_FILES].size = size;
    pthread_mutex_unlock(&lock);
    say(ledger, "cut %ju %jd\n", (uintmax_t)file, (intmax_t)size);
}

/* A file is gone: another one may get its inode, and has not been flushed. */
static void forget(ino_t file) {
    pthread_mutex_lock(&lock);
    if (flushed_sizes[file % FLUSHED_FILES].file == file)
        flushed_sizes[file % FLUSHED_FILES].file = 0;
    pthread_mutex_unlock(&lock);
}

/* A file has come to be, perhaps under the inode of one that nobody here saw go. */
static void created(ino_t file, ino_t directory) {
    char older[PATH_MAX + 32];
    forget(file);
    snprintf(older, sizeof older, "%s/%ju", kept, (uintmax_t)file);
    if (ledger >= 0)
        REAL(unlink)(older);
    say(ledger, "created %ju %ju\n", (uintmax_t)file, (uintmax_t)directory);
}

static bool is_flushed(const struct stat *about) {
    pthread_mutex_lock(&lock);
    bool all = flushed_sizes[about->st_ino % FLUSHED_FILES].file == about->st_ino &&
               flushed_sizes[about->st_ino % FLUSHED_FILES].size == about->st_size;
    pthread_mutex_unlock(&lock);
    return all;
}

static int flush(int fd, int (*real)(int)) {
    struct stat about;
    char path[PATH_MAX + 1];
    bool known = control != NULL && fstat(fd, &about) == 0; /* the size before: what is written meanwhile may not be in */
    int failed = real(fd);
    if (failed || !known)
        return failed;
    if (is_file(&about) && place_of(fd) != FOREIGN)
        flushed(about.st_ino, about.st_size);
    else if (S_ISDIR(about.st_mode) && name_of(fd, path) && place_of_name(strcat(path, "/")) != FOREIGN)
        say(ledger, "listed %ju\n", (uintmax_t)about.st_ino);
    return 0;
}

int fsync(int fd) { return flush(fd, REAL(fsync)); }

int fdatasync(int fd) { return flush(fd, REAL(fdatasync)); }

static struct {
    char *start;
    size_t length;
    ino_t file;
    off_t from;
} mappings[MAX_MAPPINGS];
static int mapping_count;

static void *mapped(void *start, size_t length, int fd, off_t from) {
    struct stat about;
    if (start == MAP_FAILED || place_of(fd) == FOREIGN || fstat(fd, &about) != 0)
        return start;
    pthread_mutex_lock(&lock);
    int index = 0;
    while (index < mapping_count && mappings[index].start != NULL)
        index++;
    if (index < MAX_MAPPINGS) {
        mappings[index].start = start, mappings[index].length = length;
        mappings[index].file = about.st_ino, mappings[index].from = from;
        mapping_count += index == mapping_count;
    }
    pthread_mutex_unlock(&lock);
    return start;
}

void *mmap(void *start, size_t length, int protection, int flags, int fd, off_t from) {
    return mapped(REAL(mmap)(start, length, protection, flags, fd, from), length, fd, from);
}

void *mmap64(void *start, size_t length, int protection, int flags, int fd, off64_t from) {
    return mapped(REAL(mmap64)(start, length, protection, flags, fd, from), length, fd, from);
}

/* The mapping that holds an address; -1: none. Under the lock. */
static int mapping_at(const char *address) {
    for (int index = 0; index < mapping_count; index++)
        if (mappings[index].start <= address && address < mappings[index].start + mappings[index].length)
            return index;
    return -1;
}

int munmap(void *start, size_t length) {
    pthread_mutex_lock(&lock);
    int index = mapping_at(start);
    if (index >= 0)
        mappings[index].start = NULL, mappings[index].length = 0;
    pthread_mutex_unlock(&lock);
    return REAL(munmap)(start, length);
}

int msync(void *start, size_t length, int flags) {
    int failed = REAL(msync)(start, length, flags);
    pthread_mutex_lock(&lock);
    int index = failed || !(flags & MS_SYNC) ? -1 : mapping_at(start);
    ino_t file = index < 0 ? 0 : mappings[index].file;
    off_t end = index < 0 ? 0 : mappings[index].from + (off_t)mappings[index].length;
    pthread_mutex_unlock(&lock);
    if (index >= 0)
        flushed(file, end);
    return failed;
}

/* ------------------------------------------------------------------------------------------------------- budget */

static _Atomic int64_t *budget(int place) {
    return place > ON_DISK ? &control->free_bytes[place - ON_DISK] : &control->free_bytes[0];
}

static bool has_budget(int place) { return place != FOREIGN && place != BESIDE; }

static bool is_limited(int place) {
    return has_budget(place) && (atomic_load(&control->free_bytes[0]) != UNLIMITED || atomic_load(budget(place)) != UNLIMITED);
}

/* Take what there is of `wanted` bytes from one budget. */
static int64_t take_from(_Atomic int64_t *budget, int64_t wanted) {
    int64_t left = atomic_load(budget), taken;
    do {
        taken = left < wanted ? (left < 0 ? 0 : left) : wanted;
    } while (left != UNLIMITED && !atomic_compare_exchange_weak(budget, &left, left - taken));
    return taken;
}

static void give_to(_Atomic int64_t *budget, int64_t size) {
    int64_t left = atomic_load(budget);
    while (left != UNLIMITED && !atomic_compare_exchange_weak(budget, &left, left + size))
        ;
}

/* Give back what a file has lost. */
static void give(int place, const struct stat *before, const struct stat *after) {
    int64_t size = before->st_size - after->st_size, freed = ((int64_t)before->st_blocks - after->st_blocks) * 512;
    size = size < freed ? size : freed;
    if (!has_budget(place) || size <= 0)
        return;
    give_to(&control->free_bytes[0], size);
    if (place > ON_DISK)
        give_to(budget(place), size);
}

static int64_t take(int place, int64_t wanted) {
    int64_t taken = take_from(&control->free_bytes[0], wanted);
    if (place == ON_DISK)
        return taken;
    int64_t fits = take_from(budget(place), taken);
    give_to(&control->free_bytes[0], taken - fits);
    return fits;
}

static void refused(int fd, int place, size_t size) {
    static _Atomic int told;
    char path[PATH_MAX];
    if (atomic_fetch_add(&told, 1) < MAX_REFUSALS && name_of(fd, path))
        say(refusals, "%d %d %zu %s\n", getpid(), place - ON_DISK - 1, size,
            path + (place_of_name(path) == FOREIGN ? 0 : strlen(disk)));
}

/* How much of a write of `size` bytes at `at` (-1: where the file stands) fits; -1, with errno, when nothing does. */
static ssize_t fitting(int fd, int place, size_t size, off_t at) {
    struct stat about;
    if (size == 0 || fstat(fd, &about) != 0)
        return size;
    if (at < 0)
        at = fcntl(fd, F_GETFL) & O_APPEND ? about.st_size : lseek(fd, 0, SEEK_CUR);
    int64_t inside = at < about.st_size ? about.st_size - at : 0;
    int64_t growth = (int64_t)size > inside ? (int64_t)size - inside : 0;
    int64_t fits = size - (growth - take(place, growth));
    if (fits > 0)
        return fits;
    refused(fd, place, size);
    errno = ENOSPC;
    return -1;
}

ssize_t write(int fd, const void *data, size_t size) {
    int place = place_of(fd);
    ssize_t fits = is_limited(place) ? fitting(fd, place, size, -1) : (ssize_t)size;
    return fits < 0 ? -1 : REAL(write)(fd, data, fits);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    int place = place_of(fd);
    ssize_t fits = is_limited(place) ? fitting(fd, place, size, at) : (ssize_t)size;
    return fits < 0 ? -1 : REAL(pwrite64)(fd, data, fits, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    int place = place_of(fd);
    if (!is_limited(place) || count <= 0 || count > IOV_MAX)
        return REAL(writev)(fd, parts, count);
    struct iovec fitted[count];
    size_t size = 0;
    for (int index = 0; index < count; index++)
        size += parts[index].iov_len;
    ssize_t left = fitting(fd, place, size, -1);
    if (left < 0)
        return -1;
    for (int index = 0; index < count; index++) {
        fitted[index] = parts[index];
        if ((ssize_t)fitted[index].iov_len > left)
            fitted[index].iov_len = left;
        left -= fitted[index].iov_len;
    }
    return REAL(writev)(fd, fitted, count);
}

/* ------------------------------------------------------------------------------------------------------- names */

static int opened(const char *path, int flags, mode_t mode, int (*real)(const char *, int, ...)) {
    struct stat before = {0}, after;
    char name[PATH_MAX];
    bool creates = flags & O_CREAT && place_of_name(path) != FOREIGN;
    bool cuts = flags & O_TRUNC && place_of_name(path) != FOREIGN && stat(path, &before) == 0;
    int fd = real(path, creates ? flags | O_EXCL : flags, mode);
    if (fd < 0 && creates && errno == EEXIST && !(flags & O_EXCL)) {
        creates = false;
        fd = real(path, flags, mode);
    }
    if (fd < 0 || control == NULL || fstat(fd, &after) != 0)
        return fd;
    int place = is_file(&after) && name_of(fd, name) ? place_of_name(name) : FOREIGN;
    put(fd, place);
    if (place != FOREIGN && creates)
        created(after.st_ino, parent(name));
    if (place != FOREIGN && cuts) {
        give(place, &before, &nothing);
        cut(after.st_ino, 0);
    }
    return fd;
}

#define MODE(flags)                                                                                                    \
    ({                                                                                                                 \
        mode_t mode = 0;                                                                                               \
        if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                       \
            va_list words;                                                                                             \
            va_start(words, flags);                                                                                    \
            mode = va_arg(words, mode_t);                                                                              \
            va_end(words);                                                                                             \
        }                                                                                                              \
        mode;                                                                                                          \
    })

int open(const char *path, int flags, ...) { return opened(path, flags, MODE(flags), REAL(open)); }

int open64(const char *path, int flags, ...) { return opened(path, flags, MODE(flags), REAL(open64)); }

int close(int fd) {
    put(fd, FOREIGN);
    return REAL(close)(fd);
}

int dup2(int from, int to) {
    int fd = REAL(dup2)(from, to);
    if (fd >= 0 && from != to)
        put(fd, place_of(from));
    return fd;
}

int ftruncate64(int fd, off64_t size) {
    struct stat before, after;
    int place = place_of(fd);
    bool known = place != FOREIGN && fstat(fd, &before) == 0;
    int failed = REAL(ftruncate64)(fd, size);
    if (!failed && known && size < before.st_size && fstat(fd, &after) == 0) {
        give(place, &before, &after);
        cut(before.st_ino, size);
    }
    return failed;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

/* Keep what `to` held on the disk while its newest content has not reached that. */
static void keep(const char *to, const struct stat *old, const struct stat *new, bool is_safe) {
    char of_old[PATH_MAX + 32], of_new[PATH_MAX + 32];
    if (ledger < 0)
        return;
    snprintf(of_old, sizeof of_old, "%s/%ju", kept, (uintmax_t)old->st_ino);
    snprintf(of_new, sizeof of_new, "%s/%ju", kept, (uintmax_t)new->st_ino);
    if (is_safe)
        REAL(unlink)(of_old);
    else if (REAL(rename)(of_old, of_new) != 0)
        must(link(to, of_new), of_new);
}

int rename(const char *from, const char *to) {
    struct stat new, old;
    int place = place_of_name(to);
    bool is_move = place != FOREIGN && stat(from, &new) == 0 && is_file(&new);
    bool replaces = is_move && stat(to, &old) == 0 && is_file(&old);
    bool is_safe = is_move && is_flushed(&new);
    if (replaces)
        keep(to, &old, &new, is_safe);
    int failed = REAL(rename)(from, to);
    if (failed || !is_move)
        return failed;
    say(ledger, "moved %ju %ju %d\n", (uintmax_t)new.st_ino, (uintmax_t)parent(to), is_safe);
    if (replaces) {
        forget(old.st_ino);
        give(place, &old, &nothing);
    }
    return 0;
}

static int removed(const char *path, int (*real)(const char *)) {
    struct stat before;
    int place = place_of_name(path);
    bool known = place != FOREIGN && lstat(path, &before) == 0 && is_file(&before);
    int failed = real(path);
    if (!failed && known) {
        forget(before.st_ino);
        give(place, &before, &nothing);
    }
    return failed;
}

int unlink(const char *path) { return removed(path, REAL(unlink)); }

int remove(const char *path) { return removed(path, REAL(remove)); }
