/* SPDX-License-Identifier: MIT */
#include "made.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <termios.h>
#include <sys/ioctl.h>
#include <signal.h>
#include <utime.h>
#include <sys/time.h>

static void statuses(void)
{
	struct stat st;
	struct statfs sf;
	CALL(stat, "/etc/passwd", &st);
	CALL(stat, "/nonexist", &st);
	CALL(stat, BAD, &st);
	CALL(lstat, "/dev/null", &st);
	CALL(fstat, 1, BAD);
	CALL(newfstatat, AT_FDCWD, "/etc", &st, AT_SYMLINK_NOFOLLOW);
	statfs("/proc", &sf);
	CALL(fstatfs, 77, BAD);
	CALL(ustat, 5, BAD);
	CALL(statx, AT_FDCWD, "/etc/passwd", AT_SYMLINK_NOFOLLOW, 0x7ff, big);
	CALL(statx, 3, "x", 0x6000, 0x1000, BAD);
}

static void opens(void)
{
	struct open_how how = { O_RDONLY | O_CREAT, 0644, RESOLVE_IN_ROOT };
	open("x", O_RDWR | O_CREAT | O_LARGEFILE | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY, 0644);
	open("xq", O_RDWR | O_CREAT | O_SYNC, 01644);
	open("x", 0x80000003);
	CALL(open, ".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
	CALL(openat, -100, "x", -1, -1);
	CALL(open, "x", 0);
	CALL(creat, "created", 07777);
	CALL(open, end_of_page(5), 0);
	CALL(openat2, -100, "nope/x", &how, 24);
	how.flags = 0;
	how.mode = 0;
	CALL(openat2, -100, "nope/x", &how, 24);
	CALL(openat2, -100, "nope/x", &how, 4);
	CALL(openat2, -100, "nope/x", 0, 24);
}

static void names(void)
{
	access("/", 7);
	access("/", 8);
	access("/", 0);
	CALL(faccessat, -100, "/", 4);
	CALL(faccessat2, -100, "/", 4, 0x1200);
	umask(022);
	umask(0);
	chmod("nope", 0755);
	CALL(fchmodat, 3, "nope", 0);
	mknod("/nope/x", S_IFCHR | 0600, 0x801);
	mknod("/nope/x", S_IFIFO | 0600, 0x801);
	mkdir("/tmp", 0777);
	CALL(rename, "a\n\1772", "\1\2\377");
	CALL(link, 0, "");
	CALL(readlink, "/proc/self/exe", big, 4);
	CALL(getcwd, big, 1);
	chdir("/nope");
	CALL(mknodat, -100, "/nope/a", S_IFBLK | 0640, 0x1234567);
	CALL(linkat, -100, "a", 5, "b", AT_SYMLINK_FOLLOW);
	CALL(symlinkat, "a", -100, "/nope/b");
	CALL(renameat2, -100, "a", -100, "b", 1);
	CALL(unlinkat, -100, "a", AT_REMOVEDIR);
	CALL(fchownat, -100, "a", -1, 5, AT_EMPTY_PATH);
	CALL(readlinkat, -100, "/proc/self/exe", big, 3);
	CALL(truncate, "/nope", -1);
	CALL(getdents64, 99, BAD, 5);
	CALL(rmdir, "/nope");
	CALL(name_to_handle_at, -100, "/nope", 0, 0, 0);
}

static void times_of_files(void)
{
	struct timespec now[2] = { { 1, 2 }, { 0, UTIME_NOW } };
	close(a_file("timed"));
	utimensat(-100, "nope", now, 0);
	now[0].tv_nsec = UTIME_OMIT;
	utimensat(-100, "nope", now, AT_SYMLINK_NOFOLLOW);
	utimensat(-100, "nope", 0, 0);
	utimensat(-100, "timed", (struct timespec[]){ { 1600000000, 123456789 }, { -5, 0 } }, 0);
	CALL(utime, "timed", &(struct utimbuf){ 5, 951782400 });
	CALL(utimes, "timed", (struct timeval[]){ { 1, 2 }, { 3, 4 } });
	CALL(futimesat, -100, "timed", (struct timeval[]){ { 1, 2 }, { 3, 4 } });
	CALL(utimes, "timed", 0);
	CALL(utimes, "timed", BAD);
}

void files(void)
{
	statuses();
	opens();
	names();
	times_of_files();
}

static void controls_of_descriptors(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 5 };
	CALL(fcntl, fd, F_GETFL);
	CALL(fcntl, fd, F_GETFD);
	CALL(fcntl, fd, F_SETFL, O_NONBLOCK | O_APPEND);
	CALL(fcntl, fd, F_SETFD, 1);
	CALL(fcntl, fd, F_GETFD);
	CALL(fcntl, fd, F_DUPFD, 50);
	CALL(fcntl, fd, 999, 77);
	CALL(fcntl, fd, F_GETLK, &lock);
	CALL(fcntl, 99, F_SETLK, &lock);
	CALL(fcntl, fd, F_GETLK, BAD);
	CALL(fcntl, fd, F_GETPIPE_SZ);
	CALL(fcntl, fd, F_GETOWN);
	CALL(fcntl, fd, F_SETOWN, getpid());
	CALL(fcntl, fd, F_SETSIG, SIGIO);
	CALL(fcntl, fd, F_GETSIG);
	struct f_owner_ex owner = { 1, getpid() };
	CALL(fcntl, fd, F_SETOWN_EX, &owner);
	CALL(fcntl, fd, F_GETOWN_EX, &owner);
	CALL(fcntl, fd, F_SETLEASE, F_RDLCK);
	CALL(fcntl, fd, F_GETLEASE);
	CALL(fcntl, fd, F_NOTIFY, 5);
	CALL(fcntl, fd, F_DUPFD_CLOEXEC, 60);
	lock.l_type = F_RDLCK;
	CALL(fcntl, fd, F_OFD_SETLK, &lock);
}

static void asked(int fd)
{
	struct termios t;
	struct winsize w;
	int n = 0;
	int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	CALL(ioctl, terminal, TCGETS, &t);
	ioctl(terminal, TIOCGWINSZ, &w);
	w.ws_row = 25;
	ioctl(terminal, TIOCSWINSZ, &w);
	ioctl(terminal, TIOCSPTLCK, &n);
	CALL(ioctl, terminal, TCSETS, &t);
	ioctl(terminal, TCFLSH, TCIOFLUSH);
	ioctl(terminal, TCXONC, TCOON);
	CALL(ioctl, fd, TCGETS, BAD);
	ioctl(fd, FIONREAD, &n);
	ioctl(fd, FIOCLEX);
	ioctl(fd, 0x12345678, 5);
	ioctl(fd, 0xc0045878, BAD);
	ioctl(-1, FIONBIO, &n);
	ioctl(-1, FIONBIO, BAD);
	ioctl(fd, _IOR('f', 1, long), &n);
	ioctl(fd, 0x40049409, 99);
}

static void attributes(int fd)
{
	fsetxattr(fd, "user.a", "valu", 4, XATTR_CREATE);
	fgetxattr(fd, "user.a", big, 100);
	fgetxattr(fd, "user.a", 0, 0);
	flistxattr(fd, big, 100);
	flistxattr(fd, 0, 0);
	getxattr("described", "user.nope", big, 5);
	fremovexattr(fd, "user.a");
}

void descriptors(void)
{
	int fd = a_file("described");
	controls_of_descriptors(fd);
	asked(fd);
	attributes(fd);
	flock(fd, LOCK_EX | LOCK_NB);
	flock(fd, LOCK_UN);
	fsync(fd);
	fdatasync(fd);
	syncfs(-1);
	dup2(fd, fd);
	dup3(1, 1, O_CLOEXEC);
	CALL(pipe, BAD);
	int ends[2];
	CALL(pipe2, ends, O_CLOEXEC | O_NONBLOCK);
	CALL(close_range, 900, 1000, 4);
}

static void vectors(int fd)
{
	struct iovec v[2] = { { "abc", 3 }, { "defghi", 6 } };
	struct iovec in = { big, 100 };
	writev(fd, v, 2);
	writev(99, v, 2);
	writev(99, 0, 2);
	writev(99, BAD, 2);
	writev(99, v, 0);
	v[1].iov_base = BAD;
	writev(99, v, 2);
	struct iovec *edge = (void *)end_of_page(16);
	edge[0] = v[0];
	writev(99, edge, 2);
	CALL(writev, 99, edge, 1024);
	preadv(fd, &in, 1, 3);
	preadv2(fd, &in, 1, 3, RWF_HIPRI);
	pwritev2(fd, v, 1, -1, RWF_DSYNC);
	pwritev2(fd, v, 1, 0, RWF_DSYNC | 0x800);
	readv(fd, &in, 1);
	CALL(process_vm_readv, getpid(), &in, 1, &in, 1, 0);
}

static void copies(int fd)
{
	loff_t from = 1, to = 2;
	off_t at = 3;
	int other = a_file("copied");
	int ends[2];
	struct iovec v = { "abc", 3 };
	copy_file_range(fd, &from, other, &to, 5, 0);
	CALL(sendfile, other, fd, &at, 4);
	CALL(sendfile, other, fd, 0, 4);
	pipe(ends);
	splice(fd, &from, ends[1], 0, 3, SPLICE_F_MOVE);
	tee(ends[0], ends[1], 5, SPLICE_F_NONBLOCK);
	vmsplice(ends[1], &v, 1, SPLICE_F_GIFT);
	fallocate(fd, FALLOC_FL_KEEP_SIZE, 1, 2);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	sync_file_range(fd, 0, 1, 7);
	ftruncate(fd, 100);
	CALL(readahead, fd, 1, 2);
}

void data(void)
{
	int fd = a_file("data");
	CALL(write, 99, "\0\1\2abc\n\t\"\\\377\0331\033a\0078\0", 19);
	CALL(write, 99, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50);
	CALL(write, 99, "", 0);
	CALL(write, 99, 0, 0);
	CALL(write, 99, 0, 7);
	CALL(write, 99, BAD, 7);
	memcpy(end_of_page(5), "abcde", 5);
	char *edge = end_of_page(40);
	memset(edge, 'e', 40);
	CALL(write, 99, edge, 40);
	CALL(write, 99, edge, 41);
	CALL(write, 99, edge + 35, 6);
	pwrite(fd, "0123456789", 10, 5);
	CALL(pread64, fd, big, 15, 0);
	CALL(pread64, fd, big, 5, -1);
	CALL(read, fd, big, 100);
	CALL(read, fd, big, 100);
	lseek(fd, 0, SEEK_SET);
	CALL(read, fd, BAD, 3);
	lseek(fd, -5, SEEK_CUR);
	lseek(fd, 0, 9);
	vectors(fd);
	copies(fd);
}

void memory(void)
{
	char *pages = end_of_page(4096);
	CALL(mmap, 0x1000, 4096, 0, 0, 3, 0x1000);
	CALL(mmap, 0, 4096, 0x123, 0x12345670, 3, 0x1000);
	CALL(mmap, 0, 4096, 3,
	     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE | MAP_LOCKED | MAP_STACK, -1,
	     0);
	CALL(mmap, 0, 1 << 21, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21u << 26), -1, 0);
	CALL(mprotect, 0, 0, 0xff);
	madvise(0, 0, MADV_DONTNEED);
	madvise(0, 0, 444);
	CALL(msync, 0, 0, 5);
	CALL(mremap, 0, 1, 2, 3, 4);
	CALL(mremap, 0, 1, 2, 1, 4);
	CALL(brk, 0);
	CALL(mlockall, 0x88);
	CALL(mincore, 0, 0, 0);
	CALL(mincore, pages, 4096, big);
	CALL(mlock2, 0, 1, 1);
	munlock(pages, 10);
	CALL(munmap, 1, 0);
	CALL(pkey_alloc, 0, 3);
	CALL(pkey_mprotect, pages, 4096, 1, -1);
	CALL(mbind, pages, 4096, 1, &(long){ 3 }, 5, 1);
	CALL(set_mempolicy, 0, 0, 0);
	CALL(remap_file_pages, pages, 4096, 0, 0, 0);
	CALL(membarrier, 1, 0, 0);
	CALL(shmdt, BAD);
}
