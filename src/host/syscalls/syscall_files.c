/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Where the name of descriptor 0 would be: an address that is none. */
#define NAMES UINT64_C(0x8000000000000000)

#define SOCKET "socket:["

/* Descriptors of one thread that are being looked up. */
struct collection {
	const struct fathom_syscall_files *files;
	struct fathom_syscall_record *record;
	int32_t tid;
};

/* Where what the descriptor is beside its path would be: each has its room. */
static uint64_t detail_of(int32_t fd)
{
	return NAMES + (uint64_t)(uint32_t)fd * (2 * PATH_MAX) + PATH_MAX;
}

static uint64_t path_of(int32_t fd)
{
	return NAMES + (uint64_t)(uint32_t)fd * (2 * PATH_MAX);
}

/* Writes the path of the link that reports @fd. */
static void write_link(char to[64], int32_t tid, int32_t fd)
{
	if (fd == -1)
		(void)snprintf(to, 64, "/proc/%d/cwd", (int)tid);
	else
		(void)snprintf(to, 64, "/proc/%d/fd/%d", (int)tid, (int)fd);
}

size_t fathom_syscall_file_link(int32_t tid, int32_t fd, char to[PATH_MAX])
{
	char link[64];
	ssize_t n;

	write_link(link, tid, fd);
	n = readlink(link, to, PATH_MAX);
	return n > 0 ? (size_t)n : 0;
}

/* Appends the number of the process that @fd, a pidfd of @tid, is for. */
static void put_process(int32_t tid, int32_t fd, struct fathom_text *out)
{
	char path[64];
	char line[128];
	FILE *file;

	(void)snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)tid, (int)fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		const long pid = strncmp(line, "Pid:", 4) ? 0 : strtol(line + 4, NULL, 10);

		if (pid <= 0)
			continue;
		fathom_text_cstr(out, "pid:");
		fathom_text_dec(out, (uint64_t)pid);
	}
	if (file)
		(void)fclose(file);
}

static void put_device(const char *link, struct fathom_text *out)
{
	struct stat st;

	if (stat(link, &st) != 0 || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
		return;
	fathom_text_cstr(out, S_ISCHR(st.st_mode) ? "char " : "block ");
	fathom_text_dec(out, major(st.st_rdev));
	fathom_text_char(out, ':');
	fathom_text_dec(out, minor(st.st_rdev));
}

/* Appends what @fd is beside its path @name, if it is wanted. */
static void put_detail(const struct collection *c, int32_t fd, const char *name,
		       struct fathom_text *out)
{
	const uint32_t wanted = c->files->wanted;
	char link[64];

	write_link(link, c->tid, fd);
	if (wanted & FATHOM_SYSCALL_FILE_SOCKETS && !strncmp(name, SOCKET, sizeof SOCKET - 1)) {
		const unsigned long inode = strtoul(name + sizeof SOCKET - 1, NULL, 10);

		if (!fathom_socket_name(c->files->sockets, link, (uint32_t)inode, out))
			fathom_text_cstr(out, name);
	} else if (wanted & FATHOM_SYSCALL_FILE_PIDFDS && !strcmp(name, "anon_inode:[pidfd]")) {
		put_process(c->tid, fd, out);
	} else if (wanted & FATHOM_SYSCALL_FILE_DEVICES && *name == '/') {
		put_device(link, out);
	}
}

/* Reads what was found before the call, or after it. */
static bool read_name(struct fathom_syscall_record *record, int32_t fd, bool after,
		      struct fathom_fd_name *ret)
{
	ret->path_size =
		fathom_syscall_record_read(record, path_of(fd), after, ret->path, sizeof ret->path);
	ret->detail_size = fathom_syscall_record_read(record, detail_of(fd), after, ret->detail,
						      sizeof ret->detail);
	return ret->path_size || ret->detail_size;
}

static bool collect(void *data, int32_t fd, bool after, struct fathom_fd_name *ret)
{
	const struct collection *c = data;
	const bool has_paths = c->files->wanted & FATHOM_SYSCALL_FILE_PATHS;
	struct fathom_syscall_call call;
	struct fathom_text detail = text_init(ret->detail, sizeof ret->detail);
	bool has_ended;
	size_t n;
	bool is_path;

	fathom_syscall_record_call(c->record, &call);
	has_ended = call.end != FATHOM_SYSCALL_NOT_YET;
	if (read_name(c->record, fd, after && has_ended, ret) || (fd == -1 && !has_paths))
		return false;
	n = fathom_syscall_file_link(c->tid, fd, ret->path);
	if (!n || n == PATH_MAX)
		return false;
	ret->path[n] = '\0';
	if (fd >= 0)
		put_detail(c, fd, ret->path, &detail);
	is_path = *ret->path == '/' ? has_paths || detail.len : has_paths && !detail.len;
	if (is_path)
		fathom_syscall_record_add(c->record, path_of(fd), has_ended, ret->path, n);
	if (detail.len && detail.len < detail.cap)
		fathom_syscall_record_add(c->record, detail_of(fd), has_ended, detail.buf,
					  detail.len);
	return false;
}

void fathom_syscall_files_add(const struct fathom_syscall_files *files,
			      struct fathom_syscall_record *record,
			      const struct fathom_syscall_options *options, int32_t tid)
{
	struct fathom_syscall_options o = *options;
	struct collection c = { files, record, tid };
	struct fathom_text nowhere = text_init(NULL, 0);

	o.name_fd = collect;
	o.data = &c;
	fathom_syscall_format(record, &o, &nowhere, NULL);
}

bool fathom_syscall_files_name(void *record, int32_t fd, bool after, struct fathom_fd_name *ret)
{
	/* Those that the call itself has stored in memory are known only after it. */
	return read_name(record, fd, after, ret) || (!after && read_name(record, fd, true, ret));
}
