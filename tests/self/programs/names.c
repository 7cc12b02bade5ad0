/* SPDX-License-Identifier: MIT */
/*
 * A program that has every kind of function, and asks fathom for the name of each: at its first
 * byte, inside, and as a return address behind its last. Prints what is wrong, then "done".
 */
#define _GNU_SOURCE
#include "check.h"

#include <sys/auxv.h>
#include <time.h>

#ifdef __PIC__
#define FIXED 0
#else
#define FIXED 1
#endif

/* What Cinder's test has: a static function of that name in the program. */
static __attribute__((noinline, used)) long PyObject_Size(long x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) long global_code(long x)
{
	return PyObject_Size(x) + 2;
}

static __attribute__((noinline, used)) long static_code(long x)
{
	return global_code(x) * 5;
}

__attribute__((noinline, visibility("hidden"))) long hidden_code(long x)
{
	return static_code(x) - 7;
}

/* Another name for one function: the one without underscores is what people know. */
extern long _alias_code(long x) __attribute__((alias("global_code")));
__attribute__((weak)) long weak_code(long x)
{
	return hidden_code(x) ^ 3;
}

static __attribute__((noinline, used)) long chosen_one(long x)
{
	return x + 11;
}

static long (*resolve_chosen(void))(long)
{
	return chosen_one;
}

long chosen(long x) __attribute__((ifunc("resolve_chosen")));

/* Untyped, without a size. */
__asm__(".text\n.globl assembled\nassembled:\n\tnop\n\tnop\n\tret\n"
	".type sized_assembled, @function\nsized_assembled:\n\tnop\n\tret\n"
	".size sized_assembled, .-sized_assembled\n.globl sized_assembled\n");
void assembled(void);
void sized_assembled(void);

int initialised_data[4] = { 1 };
static int zero_data[256];

#ifdef WITHOUT_CXX /* nor a demangler */
static void *const cxx_functions[] = { NULL };
static const char *const cxx_names[] = { NULL };
#else
/* Of names.cc. */
extern void *const cxx_functions[];
extern const char *const cxx_names[];
#endif

static const struct {
	void *at;
	const char *name;
} own[] = {
	{ (void *)main_code, "main_code" },
	{ (void *)PyObject_Size, "PyObject_Size" },
	{ (void *)global_code, "global_code" },
	{ (void *)static_code, "static_code" },
	{ (void *)hidden_code, "hidden_code" },
	{ (void *)weak_code, "weak_code" },
	{ (void *)chosen_one, "chosen_one" },
	{ (void *)assembled, "assembled" },
	{ (void *)sized_assembled, "sized_assembled" },
	{ initialised_data, "initialised_data" },
	{ zero_data, "zero_data" },
};

static void check_all(void)
{
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		expect_name((uintptr_t)own[i].at, own[i].name, 0);
		expect_name((uintptr_t)own[i].at + 1, own[i].name, 1);
	}
	for (size_t i = 0; cxx_names[i]; i++) {
		expect_name((uintptr_t)cxx_functions[i], cxx_names[i], 0);
		expect_name((uintptr_t)cxx_functions[i] + 1, cxx_names[i], 1);
	}
}

/* The byte before a return address is the call's. */
static void check_return_address(void)
{
	struct looked a;

	expect(look_up_call(&a, (uintptr_t)global_code + 1));
	expect(a.is->offset == 1 && strcmp(a.is->symbol, "global_code") == 0);
	/* At the very start it is of what stands before. */
	(void)look_up_call(&a, (uintptr_t)global_code);
	expect(!a.is->symbol || strcmp(a.is->symbol, "global_code") != 0);
}

/* Cinder: labs is called so, what is nowhere has no name. */
static void check_outside(void)
{
	struct looked a;

	/* At fixed addresses that of a function of a library is that of its stub. */
	if (look_up(&a, (uintptr_t)labs) && a.is->source == FATHOM_SOURCE_PLT)
		expect(FIXED && strcmp(a.is->symbol, "labs@plt") == 0);
	else
		expect_name((uintptr_t)labs, "labs", 0);
	expect(!look_up(&a, UINT64_MAX) && !a.is->symbol && !path_of(&a) &&
	       a.is->reason == FATHOM_REASON_UNMAPPED);
	expect(!look_up(&a, 0) && a.is->reason == FATHOM_REASON_UNMAPPED);
	expect(!look_up(&a, (uintptr_t)&a) &&
	       a.is->reason == FATHOM_REASON_NO_FILE);
}

/* Every symbol of the vDSO by what the kernel calls it. */
static void check_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct looked a;

	if (!image)
		return;
	expect(!look_up(&a, (uintptr_t)image));
	expect(path_of(&a) && strcmp(path_of(&a), "[vdso]") == 0);
}

/*
 * What the resolver chose is called by its own name. At fixed addresses the function's address is
 * that of a stub, which is called by the IFUNC's.
 */
static void check_ifunc(void)
{
	/* Compilers believe that two functions are at two addresses. */
	const volatile uintptr_t called = (uintptr_t)chosen;
	const volatile uintptr_t one = (uintptr_t)chosen_one;

	expect_name(called, called == one ? "chosen_one" : "chosen@plt", 0);
	expect(chosen(1) == 12);
}

int main_code(int argc, char **argv)
{
	const uint32_t flags = argc > 1 && strcmp(argv[1], "full") == 0 ? FATHOM_SELF_FULL : 0;

	start(flags);
	check_all();
	check_return_address();
	check_outside();
	check_vdso();
	check_ifunc();
	return end();
}

int main(int argc, char **argv)
{
	return main_code(argc, argv);
}
