/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether the file systems of files and of memory answer.
 *
 * A helper (fs_probe_helper.h) is the first to touch what is on a served file system (FUSE, NFS,
 * SMB and others: fs_probe.c lists them). If it does not answer in time, we do not touch it. The
 * file system of a path is found without touching it: openat2() resolves what the kernel has cached
 * and never waits; the list of mounts tells the type. If the kernel has not cached all of it, the
 * helper walks the path, provided that there is any served mount. So on machines without such
 * mounts, files cost one reading of that list.
 *
 * What did not answer is remembered for a minute: the device or, if that is unknown, the directory
 * where the helper got stuck. Nothing helps if a server stops answering between the helper and us,
 * or later.
 */
#ifndef FATHOM_BASE_FS_PROBE_H
#define FATHOM_BASE_FS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fathom_fs_probe;

/*
 * Waits without an answer may take @timeout_ms together in any minute; after that, a sixth of it
 * each. Returns NULL without memory.
 */
struct fathom_fs_probe *fathom_fs_probe_create(uint32_t timeout_ms);
void fathom_fs_probe_destroy(struct fathom_fs_probe *r);

/* Learns the mounts in the file @mountinfo, which are those of another mount namespace. */
void fathom_fs_probe_add_mounts(struct fathom_fs_probe *r, const char *mountinfo);

/* Returns whether the file system of @path answers; true if @r is NULL or nothing is known. */
bool fathom_fs_probe_path(struct fathom_fs_probe *r, const char *path);

/*
 * Returns whether files on @device (major << 32 | minor, as in /proc/PID/maps) may block us: it is
 * served, or no known mount has it.
 */
bool fathom_fs_probe_hangs(struct fathom_fs_probe *r, uint64_t device);

/* Returns whether @device did not answer before. */
bool fathom_fs_probe_is_dead(struct fathom_fs_probe *r, uint64_t device);

/* Returns whether @device answers when the file at @path, or at @other, is touched. */
bool fathom_fs_probe_device(struct fathom_fs_probe *r, uint64_t device, const char *path,
			    const char *other);

/*
 * Reads @size bytes at @avma of the memory at @path (/proc/PID/mem), which a file on @device is
 * mapped to. Returns how many could be read; errno tells why the others could not.
 */
size_t fathom_fs_probe_read_memory(struct fathom_fs_probe *r, uint64_t device, const char *path,
				   uint64_t avma, void *to, size_t size);

#endif
