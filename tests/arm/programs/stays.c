/* SPDX-License-Identifier: MIT */
/* Prints which instructions that call the kernel are not what the file has: 1, or are: 0. */
#include <stdint.h>
#include <stdio.h>

extern const uint32_t calls[], calls_end[];

/* Functions of which none is called. */
__asm__(".text\n"
	".globl calls\n"
	"calls:\n"
#define FUNCTION(name, body) \
	".type " name ", %function\n" name ":\n" body "	ret\n.size " name ", . - " name "\n"
	FUNCTION("plain", "	mov x8, #173\n	svc #0\n")
	FUNCTION("twice", "	mov x8, #173\n	svc #0\n	mov x8, #172\n	svc #0\n")
	/* another number of the instruction */
	FUNCTION("other", "	svc #1\n")
	/* rt_sigreturn() */
	FUNCTION("restorer", "	mov x8, #139\n	svc #0\n")
	FUNCTION("narrow", "	mov w8, #139\n	svc #0\n")
	/* munmap(), then exit() */
	FUNCTION("unmap_self", "	mov x8, #215\n	svc #0\n	mov x8, #93\n	svc #0\n")
	FUNCTION("unmap", "	mov x8, #215\n	svc #0\n	mov x8, #94\n	svc #0\n")
	FUNCTION("leave", "	mov x8, #94\n	svc #0\n	mov x8, #93\n	svc #0\n")
	/* as musl and glibc ask whether the thread was cancelled */
	FUNCTION("cancel_zero", "	ldr w0, [x0]\n	cbnz w0, 1f\n	mov x8, x1\n	mov x0, x2\n	mov x1, x3\n	svc #0\n1:	nop\n")
	FUNCTION("cancel_bit", "	ldr w0, [x0]\n	tbnz w0, #2, 1f\n	mov x8, x1\n	mov x0, x2\n	svc #0\n1:	nop\n")
	FUNCTION("loads", "	ldr w0, [x0]\n	add w0, w0, #1\n	cbnz w0, 1f\n	svc #0\n1:	nop\n")
	".globl calls_end\n"
	"calls_end:\n");

int main(void)
{
	/* The words of the file are read where nothing is changed: one of them is svc #0. */
	for (const uint32_t *word = calls; word < calls_end; word++)
		if ((*word & 0xffe0001f) == 0xd4000001 || (*word & 0xfc000000) == 0x14000000)
			printf("%d ", *word >> 26 == 5);
	printf("\n");
	return 0;
}
