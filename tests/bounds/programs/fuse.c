/* SPDX-License-Identifier: MIT */
/*
 * fuse SOURCE MOUNTPOINT [USER]: in a mount namespace of its own, mounts a file system that shows
 * the regular files of the directory SOURCE, to USER only (a number) if one is named, and answers
 * for it in the protocol of linux/fuse.h. Tells "ready". On a line of standard input it stops answering: requests are taken and nothing comes
 * back, so that nothing ends who waits for it. At the end of its input it answers on, until it ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 64
#define SECONDS    3600 /* that the kernel may remember names and attributes */

static char *names[MOST_FILES]; /* the file of node i + 2 */
static int n_names;
static int source;
static int fuse;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header header = { .error = -error, .unique = unique };
	static char buf[sizeof header + (1 << 20)];

	header.len = (uint32_t)(sizeof header + size);
	memcpy(buf, &header, sizeof header);
	if (size)
		memcpy(buf + sizeof header, data, size);
	(void)!write(fuse, buf, header.len);
}

static int attributes(uint64_t node, struct fuse_attr *ret)
{
	struct stat st;

	memset(ret, 0, sizeof *ret);
	if (node == FUSE_ROOT_ID ? fstat(source, &st)
				 : fstatat(source, names[node - 2], &st, 0))
		return errno;
	ret->ino = node;
	ret->size = (uint64_t)st.st_size;
	ret->blocks = (uint64_t)st.st_blocks;
	ret->mtime = (uint64_t)st.st_mtim.tv_sec;
	ret->ctime = (uint64_t)st.st_ctim.tv_sec;
	ret->mode = st.st_mode;
	ret->nlink = 1;
	ret->blksize = 4096;
	return 0;
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .entry_valid = SECONDS, .attr_valid = SECONDS };
	struct stat st;
	int i = 0;

	if (in->nodeid != FUSE_ROOT_ID || fstatat(source, name, &st, 0)) {
		answer(in->unique, ENOENT, NULL, 0);
		return;
	}
	while (i < n_names && strcmp(names[i], name) != 0)
		i++;
	if (i == n_names) {
		if (n_names == MOST_FILES)
			exit(1);
		names[n_names++] = strdup(name);
	}
	out.nodeid = (uint64_t)i + 2;
	(void)attributes(out.nodeid, &out.attr);
	answer(in->unique, 0, &out, sizeof out);
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	static char data[1 << 20];
	const int fd = openat(source, names[in->nodeid - 2], O_RDONLY);
	const ssize_t got = fd < 0 ? -1 : pread(fd, data, r->size, (off_t)r->offset);

	answer(in->unique, got < 0 ? errno : 0, data, got < 0 ? 0 : (size_t)got);
	if (fd >= 0)
		close(fd);
}

static void start(const struct fuse_in_header *in, const struct fuse_init_in *init)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = 4096,
				     .max_write = 4096,
				     .max_background = 16,
				     .congestion_threshold = 12 };

	out.minor = init->minor < out.minor ? init->minor : out.minor;
	answer(in->unique, 0, &out, sizeof out);
}

static void handle(const struct fuse_in_header *in)
{
	const void *body = in + 1;
	struct fuse_attr_out attr = { .attr_valid = SECONDS };
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };
	struct fuse_statfs_out statfs = { .st = { .bsize = 4096, .namelen = 255 } };
	int error;

	switch (in->opcode) {
	case FUSE_INIT:
		start(in, body);
		break;
	case FUSE_LOOKUP:
		look_up(in, body);
		break;
	case FUSE_GETATTR:
		error = attributes(in->nodeid, &attr.attr);
		answer(in->unique, error, &attr, error ? 0 : sizeof attr);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in->unique, 0, &open, sizeof open);
		break;
	case FUSE_READ:
		read_file(in, body);
		break;
	case FUSE_STATFS:
		answer(in->unique, 0, &statfs, sizeof statfs);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in->unique, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static _Alignas(8) char request[FUSE_MIN_READ_BUFFER + (1 << 17)];
	char options[128];
	struct pollfd waiting[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int silent = 0;
	char line;

	if (argc < 3)
		return 2;
	source = open(argv[1], O_RDONLY | O_DIRECTORY);
	fuse = open("/dev/fuse", O_RDWR);
	if (source < 0 || fuse < 0)
		fail("/dev/fuse");
	(void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%s,group_id=%s%s",
		       fuse, argc > 3 ? argv[3] : "0", argc > 3 ? argv[3] : "0",
		       argc > 3 ? "" : ",allow_other");
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("server", argv[2], "fuse", MS_NODEV, options))
		fail("mount");
	puts("ready");
	fflush(stdout);
	waiting[0].fd = fuse;
	for (;;) {
		ssize_t got;

		(void)poll(waiting, 2, -1);
		if (waiting[1].revents && read(0, &line, 1) <= 0)
			waiting[1].fd = -1;
		else if (waiting[1].revents) {
			silent = 1;
			puts("silent");
			fflush(stdout);
		}
		if (!(waiting[0].revents & POLLIN))
			continue;
		got = read(fuse, request, sizeof request);
		if (got < 0 && errno == ENODEV)
			return 0;
		if (got > 0 && !silent)
			handle((const void *)request);
	}
}
