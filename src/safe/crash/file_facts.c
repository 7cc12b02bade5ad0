/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "safe/crash/file_facts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "safe/base/sys.h"

/* On i386 the older calls cut users to 16 bits. */
#ifdef SYS_geteuid32
#define USER_CALL SYS_geteuid32
#else
#define USER_CALL SYS_geteuid
#endif

/* The kernel's struct stat of each machine: where its members are, all read as 32 bits. */
#if defined(__x86_64__)
enum { STAT_CALL = SYS_fstat, LINKS_AT = 16, MODE_AT = 24, USER_AT = 28 };
#elif defined(__i386__)
enum { STAT_CALL = SYS_fstat64, LINKS_AT = 20, MODE_AT = 16, USER_AT = 24 };
#elif defined(__aarch64__) /* asm-generic/stat.h */
enum { STAT_CALL = SYS_fstat, LINKS_AT = 20, MODE_AT = 16, USER_AT = 24 };
#else                      /* no system calls are made: sys_none.c */
enum { STAT_CALL = -1, LINKS_AT = 0, MODE_AT = 0, USER_AT = 0 };
#endif

/* Room for struct stat of any machine. */
#define STAT_SIZE 256

/* struct statx of statx(2), of which these members are read */
struct statx_facts {
	uint32_t mask;
	uint32_t block;
	uint64_t attributes;
	uint32_t links;
	uint32_t user;
	uint32_t group;
	uint16_t mode;
	uint16_t pad;
	uint64_t rest[28];
};
_Static_assert(sizeof(struct statx_facts) == 256, "the kernel's size");

/* Mask of statx(2): type, links and user; and types (inode(7)). */
enum { FACTS_WANTED = 0xd, TYPE = 0170000, TYPE_FILE = 0100000, TYPE_DEVICE = 0020000 };

static void set(struct fathom_file_facts *ret, uint32_t mode, uint32_t links, uint32_t user)
{
	ret->links = links;
	ret->user = user;
	ret->is_device = (mode & TYPE) == TYPE_DEVICE;
	ret->is_file = (mode & TYPE) == TYPE_FILE;
}

bool fathom_file_facts_read(long fd, struct fathom_file_facts *ret)
{
	struct statx_facts f = { 0 };
	uint64_t bytes[STAT_SIZE / sizeof(uint64_t)] = { 0 };
	uint32_t links;
	uint32_t mode;
	uint32_t user;

	if (!fathom_sys(SYS_statx, fd, (long)(uintptr_t)"", AT_EMPTY_PATH, FACTS_WANTED,
			(long)(uintptr_t)&f, 0)) {
		set(ret, f.mode, f.links, f.user);
		return true;
	}
	if (fathom_sys(STAT_CALL, fd, (long)(uintptr_t)bytes, 0, 0, 0, 0))
		return false;
	memcpy(&links, (const char *)bytes + LINKS_AT, sizeof links);
	memcpy(&mode, (const char *)bytes + MODE_AT, sizeof mode);
	memcpy(&user, (const char *)bytes + USER_AT, sizeof user);
	set(ret, mode, links, user);
	return true;
}

long fathom_open_path(const char *path, long flags, long mode)
{
	return fathom_sys(SYS_openat, AT_FDCWD, (long)(uintptr_t)path, flags, mode, 0, 0);
}

uint32_t fathom_file_user(void)
{
	return (uint32_t)fathom_sys(USER_CALL, 0, 0, 0, 0, 0, 0);
}
