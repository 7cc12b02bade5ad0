/* SPDX-License-Identifier: MIT */
/*
 * 160 functions of some 256 bytes, one after the other without a gap: of any number in their range another is wrong. The last
 * instruction of each is a call: what it would return to is the next function.
 */
#define NOINLINE __attribute__((noinline, used))

#ifdef MOVED
/* All that follows is elsewhere: no call is where one was. */
NOINLINE void moved(void)
{
	__asm__ volatile(".skip 731, 0x90");
}
#endif

static NOINLINE __attribute__((noreturn)) void stop(void)
{
	__builtin_trap();
}

#ifdef __x86_64__
#define BODY ".skip 247, 0x90"
#else
#define BODY ".rept 62\n nop\n .endr"
#endif

#define STEP(n) NOINLINE void step_##n(void) { __asm__ volatile(BODY); stop(); }
#define TEN(n) \
	STEP(n##0) STEP(n##1) STEP(n##2) STEP(n##3) STEP(n##4) STEP(n##5) STEP(n##6) STEP(n##7) STEP(n##8) STEP(n##9)

TEN(0)
TEN(1)
TEN(2)
TEN(3)
TEN(4)
TEN(5)
TEN(6)
TEN(7)
TEN(8)
TEN(9)
TEN(10)
TEN(11)
TEN(12)
TEN(13)
TEN(14)
TEN(15)

#ifdef PROGRAM
int main(void)
{
	return 0;
}
#endif
