/* SPDX-License-Identifier: MIT */
/* saved FILE [threads]: functions that make system calls. */
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
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, argv[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
