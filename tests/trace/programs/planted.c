/* SPDX-License-Identifier: MIT */
/*
 * NOPs as an instrumented function has them, where no function starts: behind a prologue, in the
 * middle, at a label, before a loop, in data, also in data within the text.
 */
#include <stdio.h>

#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"

volatile int sink;

const unsigned char in_data[] = { 0x55, 0x48, 0x89, 0xe5, 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* Its text has an object, and a label that is no function, each at such a NOP. */
__asm__(".text\n"
	".balign 16\n"
	".type in_text, @object\n"
	"in_text: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3\n"
	".size in_text, .-in_text\n"
	".balign 16\n");

__attribute__((noinline)) int behind_the_prologue(int a)
{
	/* At -O0 all of the prologue comes before; else the push of this register does. */
	__asm__ volatile(NOP : : : "rbx");
	return a + sink;
}

__attribute__((noinline)) int in_the_middle(int a)
{
	sink += a;
	__asm__ volatile("a_label: " NOP "67: .byte 0x67, 0x0f, 0x1f, 0x04, 0x00\n");
	sink -= a;
	__asm__ volatile(".byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00\n");
	return a;
}

__attribute__((noinline)) int before_a_loop(int n)
{
	__asm__ volatile(NOP "1: decl %0\n jns 1b\n" : "+r"(n));
	return n;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", behind_the_prologue(argc) + in_the_middle(argc) + before_a_loop(argc) +
			       in_data[argc]);
	return 0;
}
