/* SPDX-License-Identifier: MIT */
/*
 * Variables in every kind of section that holds no bytes in the file, and in one of their own; a
 * version among texts that look like versions. Tells where each is, then reads "set" to give each
 * its number.
 */
#include <stdio.h>
#include <string.h>

#define PLACED(name, section)                                                                      \
	extern long name;                                                                          \
	__asm__(".pushsection " section "\n.balign 8\n.globl " #name "\n.type " #name ",@object\n"  \
		".size " #name ",8\n" #name ": .zero 8\n.popsection\n")

__thread long in_tbss;
/* Behind .tbss, which takes no room in the program. */
long in_bss;
/* Linkers put it before .bss, or far behind it. */
PLACED(in_lbss, ".lbss,\"awl\",@nobits");
PLACED(in_own, ".Runtime,\"aw\",@progbits");
PLACED(in_own_bss, ".Runtime_bss,\"aw\",@nobits");
static long hidden_bss;

/* What a scan of memory for "N.N.N" finds before and after the version. */
const char before_version[] = "3.8.3";
const char library_version[] = "3.11.2";
const char after_version[] = "3.12.0";
static char copied[3][16];
unsigned version_number = 0x030b02f0;

int main(void)
{
	char line[64];

	strcpy(copied[0], "2.7.18");
	strcpy(copied[1], "3.8.3");
	printf("in_tbss %p\nin_bss %p\nin_lbss %p\nin_own %p\nin_own_bss %p\nhidden_bss %p\n", (void *)&in_tbss,
	       (void *)&in_bss, (void *)&in_lbss, (void *)&in_own, (void *)&in_own_bss, (void *)&hidden_bss);
	printf("library_version %p\nversion_number %p\ndone\n", (const void *)library_version, (void *)&version_number);
	(void)fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		in_tbss = 101;
		in_bss = 102;
		in_lbss = 103;
		in_own = 104;
		in_own_bss = 105;
		hidden_bss = 106;
		puts("done");
		(void)fflush(stdout);
	}
	return copied[0][0] + before_version[0] + after_version[0];
}
