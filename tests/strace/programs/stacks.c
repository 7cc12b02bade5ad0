/* SPDX-License-Identifier: MIT */
/*
 * stacks WHAT: functions that make system calls, below one another. blocks: one waits for input.
 * calls: recursion, a callback of libc, the vDSO, a signal. deep: 300 frames. threads: two at once.
 * made: code of no file, which gets a name between two calls. forks PROGRAM: a child becomes
 * PROGRAM. loads LIBRARY...: each is loaded, called, and unloaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

/* Nothing is called last. */
static volatile int after;

KEPT int tell(char c)
{
	return (int)write(1, &c, 1) + after;
}

KEPT int down(int n, int (*last)(char c))
{
	const int got = n ? down(n - 1, last) : last('d');

	return got + after;
}

KEPT int wait_for_input(char c)
{
	return (int)read(0, &c, 1) + after;
}

KEPT int compare(const void *a, const void *b)
{
	tell('c');
	return *(const int *)a - *(const int *)b + after;
}

KEPT void handle(int number)
{
	tell('s');
	after = number - number;
}

KEPT int calls(void)
{
	int items[3] = { 3, 1, 2 };
	struct timespec now;

	down(3, tell);
	qsort(items, 3, sizeof *items, compare);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	return 0;
}

KEPT void *first(void *unused)
{
	for (int i = 0; i < 50; i++)
		tell('1');
	return unused;
}

KEPT void *second(void *unused)
{
	for (int i = 0; i < 50; i++)
		down(1, tell);
	return unused;
}

KEPT int threads(void)
{
	pthread_t made[2];

	pthread_create(&made[0], NULL, first, NULL);
	pthread_create(&made[1], NULL, second, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(made[i], NULL);
	return 0;
}

/* Calls getppid() in code that is made, names the code, and does so again. */
KEPT int made(void)
{
	/* push %rbp; mov %rsp,%rbp; mov $110,%eax; syscall; pop %rbp; ret */
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb8, 110, 0,
					      0,    0,    0x0f, 0x05, 0x5d, 0xc3 };
	void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*call)(void);
	char path[64];
	FILE *map;

	memcpy(room, code, sizeof code);
	memcpy(&call, &room, sizeof call);
	after = call() * 0;
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	(void)fprintf(map, "%lx %zx made_code\n", (unsigned long)room, sizeof code);
	(void)fclose(map);
	after = call() * 0;
	return unlink(path);
}

KEPT int become(char **argv)
{
	return execv(argv[0], argv) + after;
}

KEPT int forks(char **argv)
{
	int status;

	if (!fork())
		_exit(become(argv));
	return wait(&status) < 0;
}

KEPT int loads(char **paths)
{
	for (; *paths; paths++) {
		void *library = dlopen(*paths, RTLD_NOW);
		void (*speak)(void);

		if (!library)
			return 1;
		*(void **)&speak = dlsym(library, "speak");
		speak();
		dlclose(library);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "blocks"))
		return down(3, wait_for_input) < 0;
	if (!strcmp(what, "calls"))
		return calls();
	if (!strcmp(what, "deep"))
		return down(300, tell) < 0;
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "made"))
		return made();
	if (!strcmp(what, "forks"))
		return forks(argv + 2);
	if (!strcmp(what, "loads"))
		return loads(argv + 2);
	return 2;
}
