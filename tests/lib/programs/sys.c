/* SPDX-License-Identifier: MIT */
/*
 * sys WORD [maps]: calls the kernel in the ways that the word names, from a call that cannot be mistaken on: close(BEGIN). Then
 * prints where code of no file is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BEGIN 12345

static void *volatile kept;
static sigjmp_buf out;
static int ends[2];

/* Has a descriptor be @to: the lowest free one depends on who watches. */
static int move(int fd, int to)
{
	(void)dup3(fd, to, 0);
	(void)close(fd);
	return to;
}

static void make_pipe(int pair[2], int to)
{
	(void)pipe(pair);
	pair[0] = move(pair[0], to);
	pair[1] = move(pair[1], to + 1);
}

static void files(void)
{
	char bytes[100];
	struct stat st;
	struct iovec v[2] = { { "one ", 4 }, { "two\n", 4 } };
	const int fd = move(open("made", O_RDWR | O_CREAT | O_TRUNC, 0644), 50);

	(void)write(fd, "some bytes\n", 11);
	(void)writev(fd, v, 2);
	(void)lseek(fd, 5, SEEK_SET);
	(void)read(fd, bytes, sizeof bytes);
	(void)pread(fd, bytes, 4, 0);
	(void)fstat(fd, &st);
	(void)ftruncate(fd, 3);
	(void)close(fd);
	(void)stat("made", &st);
	(void)rename("made", "renamed");
	(void)mkdir("folder", 0700);
	(void)symlink("renamed", "folder/link");
	(void)readlink("folder/link", bytes, sizeof bytes);
	(void)unlink("folder/link");
	(void)rmdir("folder");
	(void)unlink("renamed");
	(void)access("/", R_OK);
	(void)umask(022);
	(void)getcwd(bytes, sizeof bytes);
	(void)chdir("/");
	for (int i = 0; i < 3; i++)
		(void)dup(i);
}

static void errors(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)open("/nonexistent/file", O_RDONLY);
	(void)open(page, O_RDONLY);
	(void)open((const char *)1, O_RDONLY);
	(void)read(77, &page, 1);
	(void)write(1, page, 5);
	(void)close(-1);
	(void)chdir("/proc/self/exe");
	(void)mkdir("/", 0755);
	(void)rmdir("/proc");
	(void)kill(getpid(), 4711);
	(void)socket(AF_INET, 77, 0);
	(void)munmap(page + 1, 4096);
	(void)syscall(999, 1, 2, 3);
	(void)syscall(SYS_getppid);
}

static void *work(void *data)
{
	char name[32];
	int fd;

	(void)snprintf(name, sizeof name, "of thread %d", *(int *)data);
	fd = move(open(name, O_RDWR | O_CREAT, 0600), 60 + *(int *)data);
	(void)write(fd, name, strlen(name));
	(void)close(fd);
	(void)unlink(name);
	for (int i = 0; i < 100; i++)
		(void)getppid();
	return data;
}

static void threads(void)
{
	int numbers[4];
	pthread_t t;

	for (int i = 0; i < 4; i++) {
		numbers[i] = i;
		if (!pthread_create(&t, NULL, work, &numbers[i]))
			(void)pthread_join(t, NULL);
	}
}

/* Eight at once. */
static void crowd(void)
{
	pthread_t t[8];
	int numbers[8];

	for (int i = 0; i < 8; i++) {
		numbers[i] = i;
		(void)pthread_create(&t[i], NULL, work, &numbers[i]);
	}
	for (int i = 0; i < 8; i++)
		(void)pthread_join(t[i], NULL);
}

static void processes(void)
{
	volatile int *is_done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	for (int i = 0; i < 3; i++) {
		/* The parent calls nothing while the child does. */
		if (!fork()) {
			(void)chdir("/");
			(void)getpgid(0);
			*is_done = i + 1;
			_exit(i);
		}
		while (*is_done != i + 1)
			;
		(void)wait(&status);
		(void)umask((mode_t)WEXITSTATUS(status));
	}
	/* The memory is the child's, too. */
	if (!vfork()) {
		(void)getpgid(0);
		(void)execl("/nonexistent/program", "program", NULL);
		_exit(7);
	}
	(void)wait(&status);
	(void)umask((mode_t)WEXITSTATUS(status));
}

static void handler(int number)
{
	(void)write(ends[1], "h", 1);
	(void)number;
}

static void leave(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void after(int ms)
{
	const struct itimerval it = { .it_value = { .tv_usec = ms * 1000 } };

	(void)setitimer(ITIMER_REAL, &it, NULL);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = handler };
	static char stack[65536];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof stack };
	int other[2];
	char byte;

	make_pipe(ends, 50);
	make_pipe(other, 52);
	(void)sigaction(SIGALRM, &action, NULL);
	after(20);
	(void)read(other[0], &byte, 1); /* interrupted */
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)kill(getpid(), SIGUSR1);
	(void)sigaltstack(&own, NULL);
	action.sa_flags = SA_ONSTACK;
	(void)sigaction(SIGUSR2, &action, NULL);
	(void)raise(SIGUSR2);
	action.sa_handler = leave;
	(void)sigaction(SIGALRM, &action, NULL);
	for (volatile int i = 0; i < 3; i++)
		if (!sigsetjmp(out, 1)) {
			after(20);
			(void)read(other[0], &byte, 1); /* left */
		}
	(void)read(ends[0], &byte, 1);
}

static void clean(void *data)
{
	(void)write(ends[1], data, 1);
}

static void *blocked(void *data)
{
	char byte;

	pthread_cleanup_push(clean, "c");
	(void)read(ends[0], &byte, 1);
	pthread_cleanup_pop(0);
	return data;
}

/* A call that begins anew, and one whose thread is cancelled. */
static void waits(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t t;
	void *result;
	char byte;

	make_pipe(ends, 50);
	(void)sigaction(SIGALRM, &action, NULL);
	after(20);
	(void)read(ends[0], &byte, 1);
	(void)pthread_create(&t, NULL, blocked, NULL);
	(void)usleep(50000);
	(void)pthread_cancel(t);
	(void)pthread_join(t, &result);
	(void)umask(result == PTHREAD_CANCELED ? 077 : 0);
	(void)read(ends[0], &byte, 1);
}

/* Prints where code of no file is. */
static void print_code(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof line, maps))
		if (strstr(line, " r-xp 00000000 00:00 0 \n"))
			(void)fputs(line, stdout);
	if (maps)
		(void)fclose(maps);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "files", files },     { "errors", errors },
		    { "threads", threads }, { "crowd", crowd },
		    { "processes", processes }, { "signals", signals },
		    { "waits", waits } };

	/* The C library does more at its first allocation, and when it first needs libgcc: the tracer may have had it do so. */
	kept = malloc(1);
	(void)backtrace((void *[1]){ NULL }, 1);
	(void)close(BEGIN);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].run();
	if (argc > 2)
		print_code();
	return 3;
}
