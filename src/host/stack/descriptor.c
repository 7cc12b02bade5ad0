/* SPDX-License-Identifier: MIT */
#include "host/stack/descriptor.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/file/kernel_text.h"
#include "host/stack/task_files.h"
#include "safe/base/limits.h"

/* Formats the path of the link (@folder "fd") or the facts (@folder "fdinfo") of @fd. */
static bool format_path(const struct fathom_waiter *w, const char *folder, int32_t fd,
			struct fathom_path *ret)
{
	char name[32];
	struct fathom_text text = text_init(name, sizeof name);

	if (fd < 0)
		return false;
	fathom_text_cstr(&text, folder);
	fathom_text_char(&text, '/');
	fathom_text_dec(&text, (uint64_t)fd);
	fathom_text_end(&text);
	return fathom_task_path(w, name, ret);
}

/* Reads what the link of @fd says; returns false if it cannot be read. */
static bool read_link(const struct fathom_waiter *w, int32_t fd, struct fathom_path *ret)
{
	struct fathom_path path;
	ssize_t size = 0;

	if (format_path(w, "fd", fd, &path))
		size = readlink(path.text, ret->text, sizeof ret->text - 1);
	ret->text[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* Returns the inode in "socket:[INODE]"; 0 if @link is not of that form, with this @label. */
static uint64_t inode_of(const char *link, const char *label)
{
	const size_t size = strlen(label);

	return strncmp(link, label, size) == 0 ? strtoull(link + size, NULL, 10) : 0;
}

static bool is_pidfd(const char *link)
{
	return strcmp(link, "anon_inode:[pidfd]") == 0 || strncmp(link, "pidfd:[", 7) == 0;
}

/* Returns the PID of the process that pidfd @fd refers to, as /proc has it; 0 if unknown. */
static int32_t read_pid(const struct fathom_waiter *w, int32_t fd)
{
	struct fathom_path path;
	char text[1024];
	size_t size;
	int64_t pid;

	if (!format_path(w, "fdinfo", fd, &path))
		return 0;
	size = fathom_text_read_short(path.text, text, sizeof text - 1);
	text[size] = '\0';
	/* -1: it has ended; 0: it is in another PID namespace. */
	pid = (int64_t)fathom_task_number(text, "\nPid:", 10, 0);
	return pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
}

int32_t fathom_descriptor_pid(const struct fathom_waiter *w, int32_t fd)
{
	struct fathom_path link;

	return read_link(w, fd, &link) && is_pidfd(link.text) ? read_pid(w, fd) : 0;
}

static bool describe_socket(struct fathom_waiter *w, uint64_t inode, enum fathom_direction way)
{
	struct fathom_path folder;

	if (fathom_task_path(w, "net", &folder))
		fathom_sockets_read(&w->facts->sockets, folder.text);
	return fathom_sockets_describe(&w->facts->sockets, inode, way, &w->text);
}

bool fathom_descriptor_name(struct fathom_waiter *w, int32_t fd, uint64_t inode,
			    enum fathom_direction way)
{
	struct fathom_path link;
	uint64_t socket;
	uint64_t pipe;
	int32_t pid;

	if (!read_link(w, fd, &link))
		return false;
	pid = is_pidfd(link.text) ? read_pid(w, fd) : 0;
	if (pid) {
		fathom_text_cstr(&w->text, "process ");
		fathom_text_dec(&w->text, (uint64_t)pid);
		return true;
	}
	socket = inode_of(link.text, "socket:[");
	pipe = inode_of(link.text, "pipe:[");
	if (inode && (socket | pipe) && (socket | pipe) != inode)
		return false;
	if (!socket || !describe_socket(w, socket, way))
		fathom_text_cstr(&w->text, link.text);
	return true;
}

void fathom_descriptors_add(struct fathom_descriptors *d, int32_t fd, uint64_t inode)
{
	if (d->n < sizeof d->first / sizeof *d->first) {
		d->first[d->n].fd = fd;
		d->first[d->n].inode = inode;
	}
	d->n++;
}

bool fathom_descriptors_read_epoll(const struct fathom_waiter *w, int32_t fd,
				   struct fathom_descriptors *ret)
{
	struct fathom_path path;
	char *text;
	char *line;
	char *next;
	size_t size;

	if (!format_path(w, "fdinfo", fd, &path) ||
	    fathom_text_read(path.text, FATHOM_MAX_EPOLL_TEXT, NULL, NULL, &text, &size, NULL))
		return false;
	/* "tfd: FD events: MASK data: NUMBER  pos:N ino:HEXADECIMAL sdev:N" (proc_pid_fdinfo(5)) */
	for (line = text; (next = memchr(line, '\n', size - (size_t)(line - text))); line = next) {
		const char *inode;

		*next++ = '\0';
		inode = strstr(line, " ino:");
		if (strncmp(line, "tfd:", 4) == 0)
			fathom_descriptors_add(ret, (int32_t)strtol(line + 4, NULL, 10),
					       inode ? strtoull(inode + 5, NULL, 16) : 0);
	}
	free(text);
	return true;
}
