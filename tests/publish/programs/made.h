/* SPDX-License-Identifier: MIT */
/* Machine code that calls back, of each kind of frame, for x86-64. */
#ifndef MADE_H
#define MADE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* A function of C that made code calls. */
typedef long callback_fn(long argument);
/* Made code: calls @next with @argument, adds 1 to what it returns. */
typedef long made_fn(callback_fn *next, long argument);

static inline uint8_t *make_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; inc %rax; pop %rbp; ret */
static const uint8_t made_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89,
				      0xf7, 0xff, 0xd0, 0x48, 0xff, 0xc0, 0x5d, 0xc3 };
enum { MADE_FRAME_FROM = 4, MADE_FRAME_UNTIL = 16 };

/* push %rbx; sub $16,%rsp; mov %rdi,%rax; mov %rsi,%rdi; mov $7,%ebx; call *%rax; inc %rax;
   add $16,%rsp; pop %rbx; ret */
static const uint8_t made_pushes[] = { 0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xf8, 0x48,
				       0x89, 0xf7, 0xbb, 7,    0,    0,    0,    0xff, 0xd0,
				       0x48, 0xff, 0xc0, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3 };

#endif
