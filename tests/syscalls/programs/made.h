/* SPDX-License-Identifier: MIT */
/* Families of system calls, with chosen arguments: flags, bad pointers, the ends of pages. */
#ifndef FATHOM_TEST_MADE_H
#define FATHOM_TEST_MADE_H

#include <sys/syscall.h>
#include <unistd.h>

/* Makes the call as it is, without what libc makes of it. */
#define CALL(name, ...) syscall(SYS_##name __VA_OPT__(, ) __VA_ARGS__)

/* An address that cannot be read. */
#define BAD ((void *)8)

/* Memory for results. */
extern char big[65536];
/* The last bytes of a page, behind which is nothing. */
char *end_of_page(size_t size);
/* A file in the current folder. */
int a_file(const char *name);

void files(void);
void descriptors(void);
void data(void);
void memory(void);
void addresses(void);
void options(void);
void messages(void);
void signals(void);
void timers(void);
void processes(void);
void schedulers(void);
void identities(void);
void controls(void);
void futexes(void);
void waiting(void);
void system_v(void);
void rare(void);
void heads(void);
void programs(void);
void requests(void);
void keys(void);
void tracing(void);
void events(void);
void interfaces(void);
void filters(void);

#endif
