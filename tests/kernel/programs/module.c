/* SPDX-License-Identifier: MIT */
/* Something with the shape of a module: relocatable, in several sections. */
#define SECTION(name) __attribute__((section(name), noinline, used))

extern int printk(const char *format, ...);
int counter = 1;
static int hidden[16];

static inline __attribute__((always_inline)) int mixed(int x)
{
	volatile int y = x;

	return y * 3 + counter;
}

__attribute__((noinline)) int mod_work(int x)
{
	hidden[x & 15] += mixed(x);
	return mixed(x + 1) + printk("working");
}

static __attribute__((noinline, used)) int mod_helper(int x)
{
	return mod_work(x) - mixed(x);
}

SECTION(".text.unlikely") int mod_rare(int x)
{
	return mod_helper(x) + mixed(x);
}

SECTION(".init.text") int mod_start(int x)
{
	return mixed(x) + 7;
}

SECTION(".exit.text") int mod_stop(int x)
{
	return mixed(x) - 7;
}
