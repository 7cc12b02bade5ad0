/* SPDX-License-Identifier: MIT */
/* Makes calls that refer to files, by names and by descriptors, in the folder that it is given. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Calls by the path, and by others from folder @dir. */
static void by_name(const char *path, int dir)
{
	struct stat st;
	struct statfs fs;
	struct statx stx;
	char link[64];

	(void)stat(path, &st);
	(void)lstat("chosen", &st);
	(void)statfs(path, &fs);
	(void)syscall(SYS_statx, dir, "chosen", 0, STATX_BASIC_STATS, &stx);
	(void)fstatat(dir, "other", &st, 0);
	(void)access(path, R_OK);
	(void)chmod(path, 0644);
	(void)syscall(SYS_link, path, "made");
	(void)rename("made", "moved");
	(void)linkat(dir, "chosen", AT_FDCWD, "made", 0);
	(void)symlink("chosen", "made2");
	(void)symlinkat(path, dir, "made3");
	(void)readlink(path, link, sizeof link);
	(void)unlink("made");
	(void)unlink("moved");
	(void)unlink("made2");
	(void)unlink("made3");
	(void)truncate(path, 100);
	(void)setxattr(path, "user.chosen", "1", 1, 0);
	(void)getxattr(path, "user.chosen", link, sizeof link);
	(void)utimensat(dir, "chosen", NULL, 0);
	(void)execl(path, "chosen", NULL);
	(void)mount("chosen", path, "tmpfs", MS_BIND, NULL);
	(void)umount2(path, 0);
	(void)inotify_add_watch(inotify_init(), path, IN_OPEN);
	(void)syscall(SYS_name_to_handle_at, dir, "chosen", NULL, NULL, 0);
	(void)syscall(SYS_open_tree, dir, path, 0);
	(void)syscall(SYS_move_mount, -1, path, dir, "other", 0);
	(void)chdir(path);
	(void)mkdir(path, 0);
	(void)rmdir(path);
}

static void by_two(int fd, int other, int out)
{
	loff_t off = 0;

	(void)sendfile(out, fd, NULL, 3);
	(void)sendfile(out, other, NULL, 3);
	(void)splice(fd, &off, out, NULL, 2, 0);
	(void)splice(other, &off, out, NULL, 2, 0);
	(void)copy_file_range(other, NULL, fd, NULL, 1, 0);
	(void)dup3(fd, 50, 0);
	(void)dup2(other, 50);
	(void)dup3(other, 51, O_CLOEXEC);
	(void)tee(out, fd, 1, 0);
}

/* Sends descriptor @fd in a message. */
static void by_message(int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof fd)];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof fd),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { "x", 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	int pair[2];

	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		(void)sendmsg(pair[0], &message, 0);
}

static void by_many(int fd, int other, int out)
{
	struct pollfd polls[] = { { other, POLLIN, 0 }, { out, POLLOUT, 0 }, { fd, POLLIN, 0 } };
	struct epoll_event event = { .events = EPOLLIN };
	const int epoll = epoll_create1(0);
	struct timeval none = { 0, 0 };
	fd_set set;

	(void)poll(polls, 3, 0);
	(void)poll(polls, 2, 0);
	FD_ZERO(&set);
	FD_SET(out, &set);
	(void)select(out + 1, NULL, &set, NULL, &none);
	FD_SET(fd, &set);
	(void)select(out + 1, &set, NULL, NULL, &none);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	(void)select(out + 1, NULL, NULL, &set, &none);
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, out, &event);
	(void)epoll_wait(epoll, &event, 1, 0);
	(void)fanotify_mark(fanotify_init(0, 0), FAN_MARK_ADD, FAN_OPEN, fd, NULL);
}

int main(int argc, char **argv)
{
	struct stat st;
	char text[32];
	struct iovec iov = { text, 2 };
	int pipes[2];
	char *path;
	int other;
	int dir;
	int fd;

	if (argc < 2 || chdir(argv[1]) || asprintf(&path, "%s/chosen", argv[1]) < 0)
		return 1;
	fd = open("chosen", O_RDWR | O_CREAT | O_TRUNC, 0644);
	other = open("other", O_RDWR | O_CREAT, 0644);
	dir = open(".", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || other < 0 || dir < 0 || pipe(pipes))
		return 2;
	(void)!write(fd, "some bytes\n", 11);
	(void)!write(other, "some bytes\n", 11);
	(void)!pread(fd, text, 3, 1);
	(void)!readv(fd, &iov, 1);
	(void)fstat(fd, &st);
	(void)fstat(dir, &st);
	(void)lseek(fd, 0, SEEK_SET);
	(void)lseek(other, 0, SEEK_SET);
	(void)mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)mmap(NULL, 10, PROT_READ, MAP_PRIVATE, other, 0);
	(void)mmap(NULL, 10, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)fcntl(fd, F_GETFD);
	(void)fsync(fd);
	(void)fchmod(fd, 0644);
	(void)fchdir(dir);
	by_name(path, dir);
	by_two(fd, other, pipes[1]);
	by_many(fd, other, pipes[1]);
	by_message(fd);
	(void)unlink("chosen");
	(void)!read(fd, text, 1);
	(void)close(fd);
	(void)close(other);
	(void)close(fd);
	free(path);
	return 0;
}
