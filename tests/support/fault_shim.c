/* Preloaded into a test process: watches and breaks the writes of one data.mdb.
 *
 *   FAULT_LOG=file    append one line per event, in order:
 *                       sync | meta <dsync|plain> | data | ack
 *   FAULT_SYNC=n      the n-th fdatasync, fsync or msync fails with EIO
 *   FAULT_META=n      the n-th write to a meta page (the first 8192 bytes) fails with EIO
 *   FAULT_DATA=n      the n-th write of other pages fails with ENOSPC
 *
 * Counting begins when the program writes to a file whose name ends in "fault-arm"; a write to one
 * that ends in "fault-ack" is an acknowledgement. Nothing else is touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define META_BYTES 8192

static int armed;
static int syncs, metas, datas;

static int names(int fd, const char *ending) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t wanted = strlen(ending);
    return (size_t)length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

static void note(const char *text) {
    const char *log = getenv("FAULT_LOG");
    if (!armed || !log) return;
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd < 0) return;
    real(fd, text, strlen(text));
    close(fd);
}

/* Is this the one that has to fail? */
static int is_turn(const char *setting, int *count) {
    if (!armed) return 0;
    const char *wanted = getenv(setting);
    *count += 1;
    return wanted && *count == atoi(wanted);
}

static int sync_fails(void) {
    if (is_turn("FAULT_SYNC", &syncs)) {
        errno = EIO;
        return 1;
    }
    note("sync\n");
    return 0;
}

static int write_fails(int fd, off_t offset) {
    if (!names(fd, "data.mdb")) return 0;
    if (offset < META_BYTES) {
        if (is_turn("FAULT_META", &metas)) {
            errno = EIO;
            return 1;
        }
        note(fcntl(fd, F_GETFL) & O_DSYNC ? "meta dsync\n" : "meta plain\n");
    } else {
        if (is_turn("FAULT_DATA", &datas)) {
            errno = ENOSPC;
            return 1;
        }
        note("data\n");
    }
    return 0;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int fdatasync(int fd) {
    REAL(fdatasync);
    if (names(fd, "data.mdb") && sync_fails()) return -1;
    return real(fd);
}

int fsync(int fd) {
    REAL(fsync);
    if (names(fd, "data.mdb") && sync_fails()) return -1;
    return real(fd);
}

int msync(void *address, size_t length, int flags) {
    REAL(msync);
    return sync_fails() ? -1 : real(address, length, flags);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(write);
    if (names(fd, "fault-arm")) armed = 1;
    if (names(fd, "fault-ack")) note("ack\n");
    return real(fd, bytes, size);
}

/* LMDB writes a run of several pages so, after an lseek. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    return write_fails(fd, lseek(fd, 0, SEEK_CUR)) ? -1 : real(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite);
    return write_fails(fd, offset) ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    return write_fails(fd, offset) ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    REAL(pwritev);
    return write_fails(fd, offset) ? -1 : real(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    REAL(pwritev64);
    return write_fails(fd, offset) ? -1 : real(fd, parts, count, offset);
}
