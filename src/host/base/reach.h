/* SPDX-License-Identifier: MIT */
/*
 * Whether the file systems that files and memory are on answer.
 *
 * What is on a file system of a server (FUSE, NFS, SMB and others: reach.c lists them) is touched
 * by a helper (reach_helper.h) first, and not by us when that does not answer in time. Which file
 * system a path leads to is found without touching it: openat2() resolves what the kernel has at
 * hand and never waits; the list of mounts tells the type. Where the kernel has not everything at
 * hand, the helper walks the path, if there is any mount of that kind at all. So files of a machine
 * without such mounts cost one reading of that list.
 *
 * What did not answer is remembered for a minute: the device or, where it is not known, the
 * directory where the helper got stuck. A server may stop answering between the helper and us, or
 * later: nothing helps then.
 */
#ifndef FATHOM_BASE_REACH_H
#define FATHOM_BASE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fathom_reach;

/*
 * Waits, that end without an answer, may take @timeout_ms together in any minute; when that is used
 * up, a twentieth of it each. NULL without memory.
 */
struct fathom_reach *fathom_reach_create(uint32_t timeout_ms);
void fathom_reach_destroy(struct fathom_reach *r);

/* Learns of the mounts in the file at @mountinfo, those of another mount namespace. */
void fathom_reach_add_mounts(struct fathom_reach *r, const char *mountinfo);

/* Whether the file system that @path leads to answers; true for @r NULL, and if it is not known. */
bool fathom_reach_path(struct fathom_reach *r, const char *path);

/*
 * Whether files on @device (major << 32 | minor, as in /proc/PID/maps) may keep us waiting: it is
 * that of a server, or of no mount that is known.
 */
bool fathom_reach_hangs(struct fathom_reach *r, uint64_t device);

/* Whether @device did not answer before. */
bool fathom_reach_is_dead(struct fathom_reach *r, uint64_t device);

/* Whether @device answers when the file at @path, or at @other, is touched. */
bool fathom_reach_device(struct fathom_reach *r, uint64_t device, const char *path,
			 const char *other);

/*
 * Reads @size bytes at @avma of the memory at @path (/proc/PID/mem) that a file on @device is
 * mapped to; returns how many could be read, with errno for the others.
 */
size_t fathom_reach_read_memory(struct fathom_reach *r, uint64_t device, const char *path,
				uint64_t avma, void *to, size_t size);

#endif
