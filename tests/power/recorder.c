/* Preloaded into a process: records what it does to the files in a folder, and lets calls fail.

RECORDER_FOLDER is the folder, RECORDER_LOG the file of the record. An entry is a `struct entry`,
the bytes of its names, and its data; files and folders are known by their inodes. A call and its
entry are one step: no other thread gets in between. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct entry {
    uint32_t kind, name_size;
    uint64_t inode, offset, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;
static long calls, failing;  /* calls so far; the number of the one that fails, or 0 */
static int failure;          /* its errno, or: */
enum { END = 0, END_BEFORE_SYNC = -1 }; /* the process ends there; only syncs count */

/* Let the call with this number from now on fail; 0 lets none fail. Returns the calls so far. */
long recorder_fail(long number, int error) {
    pthread_mutex_lock(&lock);
    long before = calls;
    calls = 0;
    failing = number;
    failure = error;
    pthread_mutex_unlock(&lock);
    return before;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_watched(const char *path) {
    const char *folder = getenv("RECORDER_FOLDER");
    size_t size = folder ? strlen(folder) : 0;
    return size && !strncmp(path, folder, size) && (path[size] == '/' || !path[size]);
}

/* The absolute path of a name in a folder; its links are not followed. */
static int absolute(int folder, const char *name, char *path) {
    if (*name == '/') return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    char link[64] = "/proc/self/cwd";
    if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    return size + snprintf(path + size, PATH_MAX - size, *name ? "/%s" : "%s", name) < PATH_MAX;
}

static int is_open_watched(int descriptor) {
    char path[PATH_MAX];
    return absolute(descriptor, "", path) && is_watched(path);
}

static void note(char kind, uint64_t inode, const char *names, size_t name_size, uint64_t offset,
                 const void *data, size_t size) {
    if (log_file < 0) {
        const char *path = getenv("RECORDER_LOG");
        if (path) log_file = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (log_file < 0) return;
    }
    struct entry entry = {kind, name_size, inode, offset, size};
    struct iovec parts[] = {
        {&entry, sizeof entry}, {(void *)names, name_size}, {(void *)data, data ? size : 0}};
    if (REAL(writev)(log_file, parts, 3) < 0) abort();
}

static uint64_t inode_of(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) ? 0 : status.st_ino;
}

/* Whether this call is to fail. Its process ends, if it is to. */
static int fails(int is_sync) {
    if (failure == END_BEFORE_SYNC && !is_sync) return 0;
    if (++calls != failing) return 0;
    if (failure <= 0) _exit(9);
    errno = failure;
    return 1;
}

/* A call that changes an open file: what is noted when it has succeeded. */
#define ON_FILE(type, kind, descriptor, call, noted)                        \
    if (!is_open_watched(descriptor)) return call;                          \
    pthread_mutex_lock(&lock);                                              \
    type result = fails(kind == 's') ? -1 : call;                           \
    int error = errno;                                                      \
    if (result >= 0) { noted; }                                             \
    pthread_mutex_unlock(&lock);                                            \
    errno = error;                                                          \
    return result;

ssize_t write(int descriptor, const void *data, size_t size) {
    ON_FILE(ssize_t, 'w', descriptor, REAL(write)(descriptor, data, size),
            int is_added = fcntl(descriptor, F_GETFL) & O_APPEND;
            off_t end = lseek(descriptor, 0, is_added ? SEEK_END : SEEK_CUR);
            note('w', inode_of(descriptor), NULL, 0, end - result, data, result))
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
    ON_FILE(ssize_t, 'w', descriptor, REAL(pwrite64)(descriptor, data, size, offset),
            note('w', inode_of(descriptor), NULL, 0, offset, data, result))
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
    return pwrite64(descriptor, data, size, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!is_open_watched(descriptor)) return REAL(writev)(descriptor, parts, count);
    return write(descriptor, parts[0].iov_base, parts[0].iov_len); /* may be part of it */
}

int ftruncate64(int descriptor, off64_t size) {
    ON_FILE(int, 't', descriptor, REAL(ftruncate64)(descriptor, size),
            note('t', inode_of(descriptor), NULL, 0, size, NULL, 0))
}

int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

int fsync(int descriptor) {
    ON_FILE(int, 's', descriptor, REAL(fsync)(descriptor),
            note('s', inode_of(descriptor), NULL, 0, 0, NULL, 0))
}

int fdatasync(int descriptor) {
    ON_FILE(int, 's', descriptor, REAL(fdatasync)(descriptor),
            note('s', inode_of(descriptor), NULL, 0, 0, NULL, 0))
}

/* Files that sendfile and copy_file_range would fill unseen: callers then copy by themselves. */
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) {
    (void)to, (void)from, (void)offset, (void)size;
    errno = ENOTSOCK;
    return -1;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    return sendfile64(to, from, offset, size);
}

static int opened(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    int (*real)(int, const char *, int, ...) = REAL(openat);
    if (!(flags & (O_CREAT | O_TRUNC)) || !absolute(folder, name, path) || !is_watched(path))
        return real(folder, name, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat before;
    int is_new = lstat(path, &before);
    int result = is_new && fails(0) ? -1 : real(folder, name, flags, mode), error = errno;
    if (result >= 0 && is_new) note('c', inode_of(result), path, strlen(path), 0, NULL, 0);
    else if (result >= 0 && flags & O_TRUNC) note('t', inode_of(result), NULL, 0, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

#define OPEN(name, folder, ...)                   \
    int name(__VA_ARGS__, int flags, ...) {       \
        va_list more;                             \
        va_start(more, flags);                    \
        mode_t mode = va_arg(more, mode_t);       \
        va_end(more);                             \
        return opened(folder, path, flags, mode); \
    }

OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, folder, int folder, const char *path)
OPEN(openat64, folder, int folder, const char *path)

/* A call that changes names: both are noted, with a zero in between. */
#define ON_NAMES(kind, from_folder, from, to_folder, to, call)                            \
    char names[2 * PATH_MAX + 1];                                                         \
    if (!absolute(from_folder, from, names) || !is_watched(names)) return call;           \
    size_t size = strlen(names);                                                          \
    if (to && absolute(to_folder, to ? to : "", names + size + 1))                        \
        size += 1 + strlen(names + size + 1);                                             \
    pthread_mutex_lock(&lock);                                                            \
    int result = fails(0) ? -1 : call, error = errno;                                     \
    struct stat after;                                                                    \
    if (!result) note(kind, kind == 'd' && !lstat(names, &after) ? after.st_ino : 0, names, size, 0, NULL, 0); \
    pthread_mutex_unlock(&lock);                                                          \
    errno = error;                                                                        \
    return result;

static const char *const none = NULL;

int rename(const char *from, const char *to) {
    ON_NAMES('r', AT_FDCWD, from, AT_FDCWD, to, REAL(rename)(from, to))
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    ON_NAMES('r', from_folder, from, to_folder, to,
             REAL(renameat)(from_folder, from, to_folder, to))
}

int unlink(const char *path) { ON_NAMES('u', AT_FDCWD, path, 0, none, REAL(unlink)(path)) }

int unlinkat(int folder, const char *path, int flags) {
    ON_NAMES('u', folder, path, 0, none, REAL(unlinkat)(folder, path, flags))
}

int rmdir(const char *path) { ON_NAMES('u', AT_FDCWD, path, 0, none, REAL(rmdir)(path)) }

int mkdir(const char *path, mode_t mode) {
    ON_NAMES('d', AT_FDCWD, path, 0, none, REAL(mkdir)(path, mode))
}

int mkdirat(int folder, const char *path, mode_t mode) {
    ON_NAMES('d', folder, path, 0, none, REAL(mkdirat)(folder, path, mode))
}
