/* SPDX-License-Identifier: MIT */
/* saved FILE [threads | pages]: functions that make system calls; pages: all over a page. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

KEPT int put(int fd)
{
	return (int)write(fd, "hello", 5) + 1;
}

KEPT int flush(int fd)
{
	return fsync(fd) + 1;
}

KEPT int save(const char *path)
{
	const int fd = creat(path, 0644);
	const int n = put(fd) + flush(fd);

	return close(fd) + n;
}

/* Saves @size bytes further down the stack. */
KEPT int save_below(const char *path, int size)
{
	volatile char room[size];

	room[0] = path[0];
	return save(path) + room[0] - path[0];
}

static void *run(void *path)
{
	for (int i = 0; i < 50; i++)
		save(path);
	return path;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc < 2)
		return 2;
	if (argc == 2)
		return save(argv[1]) != 7;
	if (argv[2][0] == 'p') {
		for (int size = 16; size <= 4096; size += 16)
			if (save_below(argv[1], size) != 7)
				return 2;
		return 0;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, argv[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
