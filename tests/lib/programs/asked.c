/* SPDX-License-Identifier: MIT */
/*
 * Tells what its own dynamic linker answers. For each line of standard input it prints lines
 * "NAME 0xADDRESS" (0 for none) and then "done":
 *
 *	default NAME		dlsym(RTLD_DEFAULT)
 *	version NAME VERSION	dlvsym(RTLD_DEFAULT)
 *	of NAME			dlsym() of what was opened last
 *	call NAME		call it, as a function of a number
 *	open PATH		dlopen, RTLD_LOCAL
 *	global PATH		dlopen, RTLD_GLOBAL
 *	space PATH		dlmopen, in a namespace of its own
 *	close			dlclose of what was opened last
 *	tls			the threads' own numbers, and where each has "thread_own"
 *	set N			counted = N, for reading it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
	const char *text;
	struct node *next;
	long numbers[4];
	double number;
	float small;
	signed char low;
};

__thread int thread_own = 1;
static __thread char thread_hidden[64];
long counted = 42;
const char greeting[] = "good day";
static struct node second = { "second", NULL, { 5, 6, 7, 8 }, -0.5, 0.25f, -3 };
struct node first = { "first", &second, { 1, -2, 3, -4 }, 1.5, -2.25f, -128 };
const char *const greeting_pointer = greeting;

static sem_t told;
static void *opened;

static void tell(const char *name, const void *address)
{
	printf("%s 0x%lx\n", name, (unsigned long)address);
}

static __attribute__((noinline)) int hidden_function(int x)
{
	return x + (int)counted;
}

static void tell_thread(void)
{
	char name[64];

	(void)snprintf(name, sizeof name, "thread_own:%d", gettid());
	tell(name, &thread_own);
	(void)snprintf(name, sizeof name, "thread_hidden:%d", gettid());
	tell(name, thread_hidden);
}

static void *other_thread(void *arg)
{
	thread_own = hidden_function((int)(long)arg);
	tell_thread();
	sem_post(&told);
	for (;;)
		pause();
	return NULL;
}

static void tell_threads(void)
{
	pthread_t id;

	tell_thread();
	for (long i = 0; i < 2; i++) {
		pthread_create(&id, NULL, other_thread, (void *)i);
		sem_wait(&told);
	}
}

static void obey(char *line)
{
	char *word = strtok(line, " ");
	char *name = strtok(NULL, " ");
	char *version = strtok(NULL, " ");

	if (strcmp(word, "default") == 0)
		tell(name, dlsym(RTLD_DEFAULT, name));
	else if (strcmp(word, "version") == 0)
		tell(name, dlvsym(RTLD_DEFAULT, name, version));
	else if (strcmp(word, "of") == 0)
		tell(name, dlsym(opened, name));
	else if (strcmp(word, "call") == 0)
		((int (*)(int))dlsym(RTLD_DEFAULT, name))(1);
	else if (strcmp(word, "open") == 0)
		opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	else if (strcmp(word, "global") == 0)
		opened = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	else if (strcmp(word, "space") == 0)
		opened = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
	else if (strcmp(word, "close") == 0)
		dlclose(opened);
	else if (strcmp(word, "tls") == 0)
		tell_threads();
	else if (strcmp(word, "set") == 0)
		counted = atol(name);
}

int main(void)
{
	char line[4096];

	sem_init(&told, 0, 0);
	tell("main", (const void *)main);
	tell("hidden_function", (const void *)hidden_function);
	tell("counted", &counted);
	tell("greeting", greeting);
	tell("first", &first);
	puts("done");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
		puts("done");
		fflush(stdout);
	}
	return greeting_pointer == NULL;
}
