/* SPDX-License-Identifier: MIT */
/*
 * Makes three functions that call each other, tells of them in the perf map of its number, and calls
 * deeper() through them, which prints "ready" and waits.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTIONS = 3, PITCH = 64 };

volatile int sink;

__attribute__((noinline, noclone)) int deeper(int n)
{
	if (n)
		return deeper(n - 1) + sink;
	puts("ready");
	fflush(stdout);
	return (int)pause();
}

__attribute__((noinline, noclone)) static int first(void)
{
	return deeper(10) + sink;
}

/* push %rbp; mov %rsp, %rbp; mov $TARGET, %rax; call *%rax; pop %rbp; ret */
static void write_function(uint8_t *at, uint64_t target)
{
	static const uint8_t before[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8 };
	static const uint8_t behind[] = { 0xff, 0xd0, 0x5d, 0xc3 };

	memcpy(at, before, sizeof before);
	memcpy(at + sizeof before, &target, sizeof target);
	memcpy(at + sizeof before + sizeof target, behind, sizeof behind);
}

int main(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;
	int (*made)(void);

	if (code == MAP_FAILED)
		return 1;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	for (int i = 0; i < FUNCTIONS; i++) {
		const uint8_t *next = code + (i + 1) * PITCH;

		write_function(code + i * PITCH, i + 1 < FUNCTIONS ? (uintptr_t)next : (uintptr_t)first);
		fprintf(map, "%llx %x made %d\n", (unsigned long long)(uintptr_t)(code + i * PITCH), PITCH, i);
	}
	fclose(map);
	made = (int (*)(void))(uintptr_t)code;
	sink = made() + sink;
	return 0;
}
