/* Preloaded into a test process: watches and breaks the writes of one data.mdb and its redo.log.
 *
 *   FAULT_LOG=file    append one line per event, in order:
 *                       sync | meta <dsync|plain> | data | redo | redo half | redo sync | ack
 *   FAULT_SYNC=n      the n-th fdatasync, fsync or msync of data.mdb fails with EIO
 *   FAULT_META=n      the n-th write to a meta page (the first 8192 bytes) fails with EIO
 *   FAULT_DATA=n      the n-th write of other pages fails with ENOSPC
 *   FAULT_REDO_SYNC=n    the n-th sync of redo.log fails with EIO
 *   FAULT_REDO_WRITE=n   of the n-th record only half is written into redo.log, for want of room,
 *                        as the system then says
 *
 *   FAULT_FULL=file   while this file exists, the disk of the folder it lies in is full: files there
 *                     don't grow or come into being with bytes in them (ENOSPC), and statvfs
 *                     says that nothing is free
 *   FAULT_SUDDEN=1    and statvfs does not say so
 *   FAULT_DISK=folder FAULT_DISK_BYTES=n   the folder is a disk of so many bytes for its data.mdb and
 *                     for the copy that `compact` makes in it
 *   FAULT_READONLY=folder   nothing in it can be opened for writing, made or removed (EROFS)
 *
 * Counting begins when the program writes to a file whose name ends in "fault-arm"; a write to one
 * that ends in "fault-ack" is an acknowledgement. Nothing else is touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define META_BYTES 8192
#define REDO_HEAD 4096 /* of redo.log: its records begin there */
#define REDO_FILL (1 << 20)
#define REDO_END 16 /* in place of the first record: none count any more */

static int armed;
static int syncs, metas, datas, redo_syncs, redo_writes;

static int names(int fd, const char *ending) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t wanted = strlen(ending);
    return (size_t)length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

/* Is it in the folder of the marker, and is the marker there? */
static int full(int fd) {
    const char *marker = getenv("FAULT_FULL");
    if (!marker || access(marker, F_OK)) return 0;
    struct stat found;
    if (names(fd, "redo.log") && !fstat(fd, &found) && found.st_blocks * 512LL >= found.st_size)
        return 0; /* it has all its blocks and does not grow */
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t folder = strrchr(marker, '/') - marker + 1;
    if (strncmp(path, marker, folder) != 0) return 0;
    errno = ENOSPC;
    return 1;
}

static off_t size_of(const char *folder, const char *name) {
    char path[4096];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &found) ? 0 : found.st_size;
}

/* Does a write up to `end` leave the disk of FAULT_DISK? */
static int too_small(int fd, off_t end) {
    const char *folder = getenv("FAULT_DISK"), *bytes = getenv("FAULT_DISK_BYTES");
    if (!folder || !bytes) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t inside = strlen(folder);
    if (strncmp(path, folder, inside) != 0 || !strstr(path, "data.mdb")) return 0;
    int is_copy = strstr(path, "compact-new") != NULL;
    off_t other = size_of(folder, is_copy ? "data.mdb" : "compact-new/data.mdb");
    off_t own = size_of(folder, is_copy ? "compact-new/data.mdb" : "data.mdb");
    if (end <= own || other + end <= atoll(bytes)) return 0;
    errno = ENOSPC;
    return 1;
}

static int read_only(const char *path, int flags) {
    const char *folder = getenv("FAULT_READONLY");
    if (!folder || !path) return 0;
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length])) return 0;
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))) return 0;
    errno = EROFS;
    return 1;
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

static int redo_sync_fails(void) {
    if (is_turn("FAULT_REDO_SYNC", &redo_syncs)) {
        errno = EIO;
        return 1;
    }
    note("redo sync\n");
    return 0;
}

static int is_record(int fd, off_t offset, size_t size) {
    return offset >= REDO_HEAD && size != REDO_FILL && size != REDO_END && names(fd, "redo.log");
}

static size_t length_of(const struct iovec *parts, int count) {
    size_t total = 0;
    for (int at = 0; at < count; at++) total += parts[at].iov_len;
    return total;
}

static int write_fails(int fd, off_t offset, size_t size) {
    if (full(fd) || too_small(fd, offset + size)) return 1;
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
    if (names(fd, "redo.log") && redo_sync_fails()) return -1;
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
    if (getenv("FAULT_DISK") && names(fd, "data.mdb")) {
        off_t at = lseek(fd, 0, SEEK_CUR);
        if (at >= 0 && too_small(fd, at + size)) return -1;
    }
    return full(fd) ? -1 : real(fd, bytes, size);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
    REAL(posix_fallocate);
    return full(fd) ? ENOSPC : real(fd, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    REAL(posix_fallocate64);
    return full(fd) ? ENOSPC : real(fd, offset, length);
}

static void no_room(fsblkcnt_t *free, fsblkcnt_t *available, unsigned long unit) {
    const char *folder = getenv("FAULT_DISK"), *bytes = getenv("FAULT_DISK_BYTES");
    if (folder && bytes) {
        off_t used = size_of(folder, "data.mdb") + size_of(folder, "compact-new/data.mdb");
        off_t left = atoll(bytes) - used;
        *free = *available = left > 0 ? left / unit : 0;
    }
    const char *marker = getenv("FAULT_FULL");
    if (marker && !getenv("FAULT_SUDDEN") && !access(marker, F_OK)) *free = *available = 0;
}

int statvfs(const char *path, struct statvfs *state) {
    REAL(statvfs);
    int failed = real(path, state);
    no_room(&state->f_bfree, &state->f_bavail, state->f_frsize);
    return failed;
}

int statvfs64(const char *path, struct statvfs64 *state) {
    REAL(statvfs64);
    int failed = real(path, state);
    no_room((fsblkcnt_t *)&state->f_bfree, (fsblkcnt_t *)&state->f_bavail, state->f_frsize);
    return failed;
}

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = va_arg(rest, mode_t); \
        va_end(rest); \
        return read_only(path, flags) ? -1 : real(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    struct stat known;
    if (stat(path, &known) && read_only(path, O_CREAT)) return -1;
    return real(path, mode);
}

int unlink(const char *path) {
    REAL(unlink);
    return read_only(path, O_WRONLY) ? -1 : real(path);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return read_only(to, O_WRONLY) ? -1 : real(from, to);
}

/* LMDB writes a run of several pages so, after an lseek. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    return write_fails(fd, lseek(fd, 0, SEEK_CUR), length_of(parts, count)) ? -1 : real(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite);
    if (is_record(fd, offset, size)) {
        if (is_turn("FAULT_REDO_WRITE", &redo_writes)) {
            note("redo half\n");
            return real(fd, bytes, size / 2, offset);
        }
        note("redo\n");
    }
    return write_fails(fd, offset, size) ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    if (is_record(fd, offset, size)) {
        if (is_turn("FAULT_REDO_WRITE", &redo_writes)) {
            note("redo half\n");
            return real(fd, bytes, size / 2, offset);
        }
        note("redo\n");
    }
    return write_fails(fd, offset, size) ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    REAL(pwritev);
    return write_fails(fd, offset, length_of(parts, count)) ? -1 : real(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    REAL(pwritev64);
    return write_fails(fd, offset, length_of(parts, count)) ? -1 : real(fd, parts, count, offset);
}
