/* SPDX-License-Identifier: MIT */
/* Crashes while it is loaded: in its constructor, or in the dynamic linker's call of a resolver. */
#ifdef BY_RESOLVER
typedef int function(void);

static function *resolve(void)
{
	*(volatile int *)0x60 = 1;
	return 0;
}

int chosen(void) __attribute__((ifunc("resolve")));
int (*volatile pointer)(void) = chosen;
#else
__attribute__((constructor)) static void at_load(void)
{
	*(volatile int *)0x60 = 1;
}
#endif
