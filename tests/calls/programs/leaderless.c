/* SPDX-License-Identifier: MIT */
/*
 * A process whose first thread ends. Answers lines: "end" ends the first thread, and answers "ended" when it is a zombie;
 * "maps" answers with the mappings of the process and ".", without the stack that grows and what pthread_exit() loads;
 * "call N" calls getppid() N times, and answers with how often it has a parent.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2];

static int is_zombie(void)
{
	char path[64];
	char text[512] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	f = fopen(path, "r");
	if (f && fgets(text, sizeof text, f) == NULL)
		text[0] = 0;
	if (f)
		fclose(f);
	return strstr(text, ") Z ") != NULL;
}

static void put_maps(void)
{
	FILE *f = fopen("/proc/thread-self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof line, f))
		if (!strstr(line, "[stack]") && !strstr(line, "libgcc_s"))
			fputs(line, stdout);
	if (f)
		fclose(f);
	puts(".");
}

static void *serve(void *unused)
{
	char line[4096];

	(void)unused;
	while (fgets(line, sizeof line, stdin)) {
		if (!strcmp(line, "end\n")) {
			(void)!write(ends[1], "", 1);
			while (!is_zombie())
				usleep(1000);
			puts("ended");
		} else if (!strcmp(line, "maps\n")) {
			put_maps();
		} else {
			long sum = 0;

			for (long i = strtol(line + 5, NULL, 10); i > 0; i--)
				sum += getppid() > 0;
			printf("%ld\n", sum);
		}
		fflush(stdout);
	}
	exit(0);
}

int main(void)
{
	pthread_t thread;
	char byte;

	if (pipe(ends) || pthread_create(&thread, NULL, serve, NULL))
		return 1;
	(void)!read(ends[0], &byte, 1);
	pthread_exit(NULL);
}
