/* SPDX-License-Identifier: MIT */
/*
 * Following code to its return. Encodings are by hand (Intel SDM, volume 2), expectations by hand;
 * the call frame information of this program is the truth for its own code.
 */
#include "unit.h"

#include <elf.h>
#include <string.h>

#include "../cfi/each_module.h"
#include "host/disasm/code.h"
#include "host/stack/follow_code.h"
#include "safe/unwind/row.h"

#define CODE  UINT64_C(0x401000)
#define STACK UINT64_C(0x7fff0000)
/* Where the stack pointer is at the start: the middle of the stack, aligned to 16. */
#define START (STACK + 0x400)

enum { STACK_SIZE = 0x800, CODE_SIZE = 0x4000 };

/* Numbers of x86-64's psABI; of i386, where they differ. */
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, PC = 16, EBX = 3, ESP = 4, EBP = 5, ESI = 6, EIP = 8 };

struct memory {
	uint64_t start;
	size_t size;
	const uint8_t *bytes;
	size_t n_reads;
};

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	struct memory *m = data;
	const uint64_t at = avma - m->start;
	size_t n;

	m->n_reads++;
	if (at >= m->size)
		return 0;
	n = size < m->size - at ? size : m->size - at;
	memcpy(to, m->bytes + at, n);
	return n;
}

/* A program and a thread in it. */
struct program {
	uint8_t code[CODE_SIZE];
	uint8_t stack[STACK_SIZE];
	struct memory code_memory;
	struct memory stack_memory;
	struct fathom_reader code_reader;
	struct fathom_reader stack_reader;
	struct fathom_step_memory memory;
	struct fathom_registers r;
};

/* What a word of the stack holds. */
static uint64_t word_at(uint64_t address, uint8_t size)
{
	const uint64_t word = 0x5500000000000000 | address * 0x101;

	return size == 4 ? (uint32_t)word : word;
}

static uint64_t initial(unsigned number)
{
	return 0x1234560000 + number;
}

/* All registers are known; the frame pointer leads to the word at START + 0x40. */
static struct program *make_program(const void *code, size_t size, uint16_t machine)
{
	static struct program p;
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(machine);

	memset(&p, 0, sizeof p);
	memset(p.code, 0xcc, sizeof p.code);
	memcpy(p.code, code, size);
	for (size_t i = 0; i < STACK_SIZE; i += arch->word) {
		const uint64_t word = word_at(STACK + i, arch->word);

		memcpy(p.stack + i, &word, arch->word);
	}
	p.code_memory = (struct memory){ CODE, CODE_SIZE, p.code, 0 };
	p.stack_memory = (struct memory){ STACK, STACK_SIZE, p.stack, 0 };
	p.code_reader = (struct fathom_reader){ .read = read_memory, .data = &p.code_memory };
	p.stack_reader = (struct fathom_reader){ .read = read_memory, .data = &p.stack_memory };
	p.memory = (struct fathom_step_memory){ &p.stack_reader, &p.code_reader, false };
	p.r = (struct fathom_registers){ .machine = machine, .pc = CODE, .sp = START };
	for (uint8_t i = 0; i < arch->n; i++)
		fathom_register_set(&p.r, i, arch->word == 4 ? (uint32_t)initial(i) : initial(i));
	fathom_register_set(&p.r, arch->pc, CODE);
	fathom_register_set(&p.r, arch->sp, START);
	fathom_register_set(&p.r, arch->fp, START + 0x40);
	return &p;
}

struct followers {
	struct fathom_follower *x86_64;
	struct fathom_follower *i386;
};

static struct fathom_follower *follower_of(void **state, uint16_t machine)
{
	struct followers *f = *state;

	return machine == EM_386 ? f->i386 : f->x86_64;
}

static int set_up(void **state)
{
	static struct followers f;

	assert_int_equal(fathom_follower_create(fathom_unwind_arch(EM_X86_64), &f.x86_64, NULL), 0);
	assert_int_equal(fathom_follower_create(fathom_unwind_arch(EM_386), &f.i386, NULL), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct followers *f = *state;

	fathom_follower_destroy(f->x86_64);
	fathom_follower_destroy(f->i386);
	return 0;
}

static void skip_without_decoder(void)
{
	struct fathom_code_decoder *d;

	if (fathom_x86_open(true, false, &d, NULL))
		skip();
	d->close(d);
}

/* What a register is expected to be. */
enum { SAME = -1, UNKNOWN = -2, OTHER = -3 };

struct expected {
	const char *what;
	uint16_t machine;
	bool is_return;
	uint8_t pc; /* offset in code */
	enum fathom_stop stop;
	unsigned at;    /* offset of the return address from START */
	unsigned taken; /* bytes beside it that the return takes */
	int bx;         /* offset from START of the word that it holds, or one of the above */
	int bp;
	size_t size;
	const char *code;
};

#define BYTES(s)   sizeof(s) - 1, s
#define FOUND      FATHOM_STOP_NONE
#define NO_RULE    FATHOM_STOP_NO_RULE, 0, 0, 0, 0
#define REGISTER   FATHOM_STOP_REGISTER, 0, 0, 0, 0
#define UNREADABLE FATHOM_STOP_UNREADABLE, 0, 0, 0, 0
#define X64        EM_X86_64, false, 0
#define X32        EM_386, false, 0

static const struct expected forms[] = {
	/* the stub of CPython's -X perf: sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
	{ "stub", X64, FOUND, 0, 0, SAME, SAME,
	  BYTES("\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3") },
	{ "stub, in front of its call", EM_X86_64, false, 4, FOUND, 8, 0, SAME, SAME,
	  BYTES("\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3") },
	{ "stub, behind its call", EM_X86_64, true, 6, FOUND, 8, 0, SAME, SAME,
	  BYTES("\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3") },
	{ "stub, at its return", EM_X86_64, false, 10, FOUND, 0, 0, SAME, SAME,
	  BYTES("\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3") },
	/* pushes and pops */
	{ "pop %rbx", X64, FOUND, 8, 0, 0, SAME, BYTES("\x5b\xc3") },
	{ "push %rbx; pop %rbx", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x53\x5b\xc3") },
	{ "push %rbx; pop %rbp", X64, FOUND, 0, 0, SAME, OTHER, BYTES("\x53\x5d\xc3") },
	{ "push %rbx; xor %ebx,%ebx; pop %rbx", X64, FOUND, 0, 0, SAME, SAME,
	  BYTES("\x53\x31\xdb\x5b\xc3") },
	{ "push %r12; pop %r12", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x41\x54\x41\x5c\xc3") },
	{ "pushf; popf", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x9c\x9d\xc3") },
	{ "push $1; pop %rbx", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\x6a\x01\x5b\xc3") },
	{ "push 8(%rbp); pop %rcx", X64, FOUND, 0, 0, SAME, SAME, BYTES("\xff\x75\x08\x59\xc3") },
	{ "push %fs; pop %rcx", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x0f\xa0\x59\xc3") },
	{ "push %bx; pop %bx", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\x66\x53\x66\x5b\xc3") },
	{ "pop 8(%rsp); pop; pop %rbx", X64, FOUND, 24, 0, UNKNOWN, SAME,
	  BYTES("\x8f\x44\x24\x08\x59\x5b\xc3") },
	{ "pop (%rsp): the return address", X64, NO_RULE, BYTES("\x8f\x04\x24\xc3") },
	{ "push %rbx; ret", X64, NO_RULE, BYTES("\x53\xc3") },
	{ "push %rsp; pop %rbp", X64, FOUND, 0, 0, SAME, OTHER, BYTES("\x54\x5d\xc3") },
	/* sums */
	{ "add $8,%rsp", X64, FOUND, 8, 0, SAME, SAME, BYTES("\x48\x83\xc4\x08\xc3") },
	{ "sub $0x100,%rsp; add $0x108,%rsp", X64, FOUND, 8, 0, SAME, SAME,
	  BYTES("\x48\x81\xec\x00\x01\x00\x00\x48\x81\xc4\x08\x01\x00\x00\xc3") },
	{ "sub $-128,%rsp", X64, FOUND, 128, 0, SAME, SAME, BYTES("\x48\x83\xec\x80\xc3") },
	{ "lea 8(%rsp),%rsp", X64, FOUND, 8, 0, SAME, SAME, BYTES("\x48\x8d\x64\x24\x08\xc3") },
	{ "add $8,%esp", X64, NO_RULE, BYTES("\x83\xc4\x08\xc3") },
	{ "add %rax,%rsp", X64, NO_RULE, BYTES("\x48\x01\xc4\xc3") },
	{ "and $-16,%rsp", X64, NO_RULE, BYTES("\x48\x83\xe4\xf0\xc3") },
	{ "xchg %rax,%rsp", X64, NO_RULE, BYTES("\x48\x94\xc3") },
	{ "pop %rsp", X64, NO_RULE, BYTES("\x5c\xc3") },
	{ "mov (%rsp),%rsp", X64, NO_RULE, BYTES("\x48\x8b\x24\x24\xc3") },
	{ "lea (%rsp,%rax),%rsp", X64, NO_RULE, BYTES("\x48\x8d\x24\x04\xc3") },
	/* frame pointers */
	{ "leave", X64, FOUND, 0x48, 0, SAME, 0x40, BYTES("\xc9\xc3") },
	{ "mov %rbp,%rsp; pop %rbp", X64, FOUND, 0x48, 0, SAME, 0x40,
	  BYTES("\x48\x89\xec\x5d\xc3") },
	{ "lea -8(%rbp),%rsp; pop %rbx; pop %rbp", X64, FOUND, 0x48, 0, 0x38, 0x40,
	  BYTES("\x48\x8d\x65\xf8\x5b\x5d\xc3") },
	{ "mov -8(%rbp),%rbx; leave", X64, FOUND, 0x48, 0, 0x38, 0x40,
	  BYTES("\x48\x8b\x5d\xf8\xc9\xc3") },
	{ "enter $16,$0; leave", X64, FOUND, 0, 0, SAME, SAME, BYTES("\xc8\x10\x00\x00\xc9\xc3") },
	{ "enter $16,$1", X64, NO_RULE, BYTES("\xc8\x10\x00\x01\xc9\xc3") },
	{ "push %rbp; mov %rsp,%rbp; sub; leave", X64, FOUND, 0, 0, SAME, SAME,
	  BYTES("\x55\x48\x89\xe5\x48\x83\xec\x20\xc9\xc3") },
	{ "mov %rsp,%rbp; add; leave: below the stack pointer", X64, NO_RULE,
	  BYTES("\x48\x89\xe5\x48\x83\xc4\x10\xc9\xc3") },
	{ "xor %ebp,%ebp; leave", X64, REGISTER, BYTES("\x31\xed\xc9\xc3") },
	/* a realigned stack: mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp, where the word leads
	   nowhere */
	{ "lea -8(%r10),%rsp", X64, UNREADABLE, BYTES("\x4c\x8b\x55\xf8\xc9\x49\x8d\x62\xf8\xc3") },
	/* slots */
	{ "mov 8(%rsp),%rbx; add $24,%rsp", X64, FOUND, 24, 0, 8, SAME,
	  BYTES("\x48\x8b\x5c\x24\x08\x48\x83\xc4\x18\xc3") },
	{ "mov %rbx,8(%rsp); xor; mov 8(%rsp),%rbx", X64, FOUND, 24, 0, SAME, SAME,
	  BYTES("\x48\x89\x5c\x24\x08\x31\xdb\x48\x8b\x5c\x24\x08\x48\x83\xc4\x18\xc3") },
	{ "movups %xmm0,(%rsp); pop %rbx; pop %rbp", X64, FOUND, 16, 0, UNKNOWN, UNKNOWN,
	  BYTES("\x0f\x11\x04\x24\x5b\x5d\xc3") },
	{ "incl 4(%rsp); pop %rbx; pop %rbp", X64, FOUND, 16, 0, UNKNOWN, 8,
	  BYTES("\xff\x44\x24\x04\x5b\x5d\xc3") },
	{ "mov %rax,(%rdi): nobody knows where", X64, FOUND, 8, 0, 0, SAME,
	  BYTES("\x31\xff\x48\x89\x07\x5b\xc3") },
	{ "mov %fs:0(%rsp),%rbx", X64, FOUND, 0, 0, UNKNOWN, SAME,
	  BYTES("\x64\x48\x8b\x1c\x24\xc3") },
	{ "mov -8(%rsp),%rbx: the red zone", X64, FOUND, 0, 0, -8, SAME,
	  BYTES("\x48\x8b\x5c\x24\xf8\xc3") },
	{ "mov -136(%rsp),%rbx: below it", X64, FOUND, 0, 0, UNKNOWN, SAME,
	  BYTES("\x48\x8b\x9c\x24\x78\xff\xff\xff\xc3") },
	{ "mov -8(%rsp),%rbx: behind a call", EM_X86_64, true, 0, FOUND, 8, 0, UNKNOWN, SAME,
	  BYTES("\x48\x8b\x5c\x24\xf8\x59\xc3") },
	/* other writes */
	{ "mov %eax,%ebx", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\x89\xc3\xc3") },
	{ "mov $0,%bl", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\xb3\x00\xc3") },
	{ "cmove %rax,%rbx", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\x48\x0f\x44\xd8\xc3") },
	{ "cpuid", X64, FOUND, 0, 0, UNKNOWN, SAME, BYTES("\x0f\xa2\xc3") },
	{ "syscall", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x0f\x05\xc3") },
	{ "syscall clobbers %rcx: mov %rcx,%rbx", X64, FOUND, 0, 0, UNKNOWN, SAME,
	  BYTES("\x0f\x05\x48\x89\xcb\xc3") },
	/* returns */
	{ "ret $16", X64, FOUND, 0, 16, SAME, SAME, BYTES("\xc2\x10\x00") },
	{ "rep ret", X64, FOUND, 0, 0, SAME, SAME, BYTES("\xf3\xc3") },
	{ "lret", X64, NO_RULE, BYTES("\xcb") },
	{ "iretq", X64, NO_RULE, BYTES("\x48\xcf") },
	{ "add $0x1000,%rsp: nothing is there", X64, UNREADABLE,
	  BYTES("\x48\x81\xc4\x00\x10\x00\x00\xc3") },
	/* ways */
	{ "jmp", X64, FOUND, 0, 0, SAME, SAME, BYTES("\xeb\x01\xcc\xc3") },
	{ "je", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x74\x01\x90\xc3") },
	{ "je, one way ends", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x74\x01\xf4\xc3") },
	{ "je, the other way ends", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x74\x01\xc3\xf4") },
	{ "jrcxz", X64, FOUND, 0, 0, SAME, SAME, BYTES("\xe3\x01\x90\xc3") },
	{ "two returns disagree", X64, NO_RULE, BYTES("\x75\x01\xc3\x58\xc3") },
	{ "ret and ret $8 disagree", X64, NO_RULE, BYTES("\x75\x01\xc3\xc2\x08\x00") },
	{ "two ways meet at another depth", X64, NO_RULE, BYTES("\x75\x01\x50\x90\xc3") },
	{ "a loop that keeps the depth", X64, FOUND, 0, 0, SAME, SAME,
	  BYTES("\x50\x58\x75\xfc\xc3") },
	{ "a loop that pushes", X64, NO_RULE, BYTES("\x50\x75\xfd\xc3") },
	{ "a loop without end", X64, NO_RULE, BYTES("\xeb\xfe") },
	{ "je over mov %rax,%rbx", X64, FOUND, 0, 0, UNKNOWN, SAME,
	  BYTES("\x74\x03\x48\x89\xc3\xc3") },
	{ "je over mov %rax,8(%rsp), then mov 8(%rsp),%rbx", X64, FOUND, 24, 0, UNKNOWN, SAME,
	  BYTES("\x31\xc0\x74\x05\x48\x89\x44\x24\x08\x48\x8b\x5c\x24\x08\x48\x83\xc4\x18\xc3") },
	{ "a loop that stores to (%rsp), then pop %rbx", X64, FOUND, 8, 0, UNKNOWN, SAME,
	  BYTES("\x75\x06\x89\x04\x24\x90\xeb\xf8\x5b\xc3") },
	{ "a loop that changes %rbp, then leave", X64, REGISTER,
	  BYTES("\x48\xff\xc5\x75\xfb\xc9\xc3") },
	{ "jmp *%rax", X64, NO_RULE, BYTES("\xff\xe0") },
	{ "je over jmp *%rax", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x75\x02\xff\xe0\xc3") },
	{ "hlt", X64, NO_RULE, BYTES("\xf4\xc3") },
	{ "ud2", X64, NO_RULE, BYTES("\x0f\x0b\xc3") },
	{ "int3", X64, NO_RULE, BYTES("\xcc\xc3") },
	{ "no instruction", X64, NO_RULE, BYTES("\x06\xc3") },
	/* calls */
	{ "a call of the next instruction: pop %rbx", X64, FOUND, 0, 0, OTHER, SAME,
	  BYTES("\xe8\x00\x00\x00\x00\x5b\xc3") },
	{ "lcall *(%rax)", X64, NO_RULE, BYTES("\xff\x18\xc3") },
	{ "mov %rbx,%rax; call; mov %rax,%rbp: a call changes %rax", EM_X86_64, false, 0, FOUND, 8,
	  0, SAME, UNKNOWN, BYTES("\x48\x89\xd8\xff\xd1\x48\x89\xc5\x59\xc3") },
	/* a call that does not return, then another function */
	{ "call; ret", X64, NO_RULE, BYTES("\xff\xd1\xc3") },
	{ "call; push %rbx; pop %rbx; ret", X64, NO_RULE, BYTES("\xff\xd1\x53\x5b\xc3") },
	{ "behind a call: ret", EM_X86_64, true, 2, NO_RULE, BYTES("\xff\xd1\xc3") },
	{ "call; endbr64; pop; ret", X64, NO_RULE, BYTES("\xff\xd1\xf3\x0f\x1e\xfa\x59\xc3") },
	{ "setjmp: endbr64 behind a call", EM_X86_64, true, 2, FOUND, 8, 0, SAME, SAME,
	  BYTES("\xff\xd1\xf3\x0f\x1e\xfa\x59\xc3") },
	{ "aligned calls, but the function is not", X64, NO_RULE, BYTES("\xff\xd1\x59\x59\xc3") },
	{ "misaligned calls", X64, FOUND, 0, 0, SAME, SAME, BYTES("\x50\xff\xd1\x59\xc3") },
	/* i386 */
	{ "pop %ebx; pop %ebp", X32, FOUND, 8, 0, 0, 4, BYTES("\x5b\x5d\xc3") },
	{ "leave", X32, FOUND, 0x44, 0, SAME, 0x40, BYTES("\xc9\xc3") },
	{ "lea -8(%ebp),%esp; pop %ebx; pop %esi; pop %ebp; ret $4", X32, FOUND, 0x44, 4, 0x38,
	  0x40, BYTES("\x8d\x65\xf8\x5b\x5e\x5d\xc2\x04\x00") },
	{ "sub $12,%esp; call; add $12,%esp", EM_386, true, 5, FOUND, 12, 0, SAME, SAME,
	  BYTES("\x83\xec\x0c\xff\xd1\x83\xc4\x0c\xc3") },
	{ "call *%ecx; int $0x80; add $12,%esp", X32, FOUND, 12, 0, SAME, SAME,
	  BYTES("\xff\xd1\xcd\x80\x83\xc4\x0c\xc3") },
	{ "a callee that took 4 bytes", X32, NO_RULE, BYTES("\xff\xd1\x83\xc4\x08\xc3") },
	{ "a pc thunk; ret; it: mov (%esp),%ebx; ret", X32, FOUND, 0, 0, OTHER, SAME,
	  BYTES("\xe8\x01\x00\x00\x00\xc3\x8b\x1c\x24\xc3") },
	{ "push %cs; pusha", X32, NO_RULE, BYTES("\x0e\x60\xc3") },
	{ "mov %sp,%bp", X32, FOUND, 0, 0, SAME, UNKNOWN, BYTES("\x66\x89\xe5\xc3") },
};

static void check_register(const struct expected *e, const struct fathom_registers *r,
			   const struct fathom_registers *before, uint8_t number, int expected)
{
	const uint8_t word = e->machine == EM_386 ? 4 : 8;
	uint64_t want = before->value[number];

	if (expected == UNKNOWN) {
		assert_false(fathom_register_known(r, number));
		return;
	}
	assert_true(fathom_register_known(r, number));
	if (expected == OTHER) {
		assert_int_not_equal(r->value[number], want);
		return;
	}
	/* Of -8 no register is the mark. */
	if (expected != SAME)
		want = word_at(START + (uint64_t)(int64_t)expected, word);
	assert_int_equal(r->value[number], want);
}

static void test_forms(void **state)
{
	skip_without_decoder();
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const struct expected *e = &forms[i];
		const bool is_64 = e->machine == EM_X86_64;
		const struct fathom_unwind_arch *arch = fathom_unwind_arch(e->machine);
		struct program *p = make_program(e->code, e->size, e->machine);
		struct fathom_registers before;
		enum fathom_stop stop;

		p->r.pc = CODE + e->pc;
		before = p->r;
		stop = fathom_follow_to_return(follower_of(state, e->machine), &p->memory,
					       e->is_return, &p->r);
		if (stop != e->stop || (!stop && p->r.sp != START + e->at + arch->word + e->taken))
			print_message("%s: stop %d, sp %+d\n", e->what, stop,
				      (int)(p->r.sp - START));
		assert_int_equal(stop, e->stop);
		if (stop) {
			assert_memory_equal(&p->r, &before, sizeof before);
			continue;
		}
		assert_int_equal(p->r.sp, START + e->at + arch->word + e->taken);
		assert_int_equal(p->r.pc, word_at(START + e->at, arch->word));
		assert_int_equal(p->r.value[arch->sp], p->r.sp);
		assert_int_equal(p->r.value[arch->pc], p->r.pc);
		check_register(e, &p->r, &before, is_64 ? RBX : EBX, e->bx);
		check_register(e, &p->r, &before, is_64 ? RBP : EBP, e->bp);
		/* Nothing is known of what callees may change. */
		assert_int_equal(p->r.known & ~(arch->callee_saved | UINT64_C(1) << arch->pc |
						UINT64_C(1) << arch->sp),
				 0);
	}
}

static enum fathom_stop follow(void **state, struct program *p)
{
	return fathom_follow_to_return(follower_of(state, EM_X86_64), &p->memory, false, &p->r);
}

/* Below the limit of instructions the return is found, above it nothing. */
static void test_length(void **state)
{
	static uint8_t code[FATHOM_MAX_FOLLOWED + 1];
	struct program *p;

	skip_without_decoder();
	memset(code, 0x90, sizeof code);
	code[FATHOM_MAX_FOLLOWED - 1] = 0xc3;
	p = make_program(code, sizeof code, EM_X86_64);
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
	code[FATHOM_MAX_FOLLOWED - 1] = 0x90;
	code[FATHOM_MAX_FOLLOWED] = 0xc3;
	p = make_program(code, sizeof code, EM_X86_64);
	assert_int_equal(follow(state, p), FATHOM_STOP_NO_RULE);
}

/* Writes @n branches, each to a return of its own. */
static void write_branches(uint8_t *code, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t to = n * 6 + i - (i + 1) * 6;

		code[i * 6] = 0x0f;
		code[i * 6 + 1] = 0x84;
		memcpy(code + i * 6 + 2, &to, 4);
	}
	memset(code + (size_t)n * 6, 0xc3, n + 1);
}

static void test_ways(void **state)
{
	static uint8_t code[(FATHOM_MAX_FOLLOW_PENDING + 1) * 7 + 1];
	struct program *p;

	skip_without_decoder();
	write_branches(code, FATHOM_MAX_FOLLOW_PENDING - 1);
	p = make_program(code, sizeof code, EM_X86_64);
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
	write_branches(code, FATHOM_MAX_FOLLOW_PENDING + 1);
	p = make_program(code, sizeof code, EM_X86_64);
	assert_int_equal(follow(state, p), FATHOM_STOP_NO_RULE);
}

static void test_unknown_registers(void **state)
{
	struct program *p = make_program("\x53\x31\xdb\x5b\xc9\xc3", 6, EM_X86_64);

	skip_without_decoder();
	p->r.known &= ~(UINT64_C(1) << RBP);
	assert_int_equal(follow(state, p), FATHOM_STOP_REGISTER);
	p->r.known &= ~(UINT64_C(1) << RSP);
	assert_int_equal(follow(state, p), FATHOM_STOP_REGISTER);
	/* What was not known when it was pushed is not known when it was popped. */
	p = make_program("\x53\x31\xdb\x5b\xc3", 5, EM_X86_64);
	p->r.known &= ~(UINT64_C(1) << RBX | UINT64_C(1) << RBP);
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
	assert_false(fathom_register_known(&p->r, RBX));
	assert_false(fathom_register_known(&p->r, RBP));
	assert_true(fathom_register_known(&p->r, R12));
}

/* Frames of one stack share what they may cost; the next stack has all of it again. */
static void test_cost(void **state)
{
	static uint8_t code[FATHOM_MAX_FOLLOWED];
	struct fathom_follower *f = follower_of(state, EM_X86_64);
	unsigned n = 0;
	struct program *p;

	skip_without_decoder();
	memset(code, 0x90, sizeof code);
	code[sizeof code - 1] = 0xc3;
	p = make_program(code, sizeof code, EM_X86_64);
	fathom_follower_begin(f);
	for (struct fathom_registers r = p->r; n < 10000; r = p->r, n++)
		if (fathom_follow_to_return(f, &p->memory, false, &r) == FATHOM_STOP_LIMIT)
			break;
	/* One goes beyond the limit. */
	assert_int_equal(n, FATHOM_MAX_FOLLOW_COST / FATHOM_MAX_FOLLOWED + 1);
	fathom_follower_begin(f);
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
}

/* A return address of 0, code that cannot be read, and the end of what can be. */
static void test_unreadable(void **state)
{
	struct program *p = make_program("\xc3", 1, EM_X86_64);

	skip_without_decoder();
	/* A return address of 0 is left to the caller. */
	memset(p->stack + (START - STACK), 0, 8);
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
	assert_int_equal(p->r.pc, 0);
	p = make_program("\xc3", 1, EM_X86_64);
	p->r.pc = CODE + CODE_SIZE;
	assert_int_equal(follow(state, p), FATHOM_STOP_NO_RULE);
	p->code[CODE_SIZE - 1] = 0xc3;
	p->r.pc = CODE + CODE_SIZE - 1;
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
	/* Code that does not begin at the start of a page. */
	p = make_program("\x90\xc3", 2, EM_X86_64);
	p->code_memory.start = CODE + 0x7fd;
	p->r.pc = CODE + 0x7fd;
	assert_int_equal(follow(state, p), FATHOM_STOP_NONE);
}

/* Follows @code, of x86-64, from its start to @off; what is known of rbp there. */
static void find_depths(void **state, const char *code, size_t size, uint64_t off,
			struct fathom_depths *ret)
{
	struct program *p = make_program(code, size, EM_X86_64);

	*ret = (struct fathom_depths){ .number = RBP };
	fathom_follow_depths(follower_of(state, EM_X86_64), &p->memory, CODE, CODE + off, ret);
}

/* Expects one depth. */
static void depth_is(void **state, const char *code, size_t size, uint64_t off, uint64_t distance,
		     uint32_t gap)
{
	struct fathom_depths d;

	find_depths(state, code, size, off, &d);
	assert_int_equal(d.n, 1);
	assert_false(d.is_cut);
	assert_int_equal(d.items[0].distance, distance);
	assert_int_equal(d.items[0].gap, gap);
}

#define C(code) code, sizeof code - 1

static void test_depths(void **state)
{
	/*
	 * push %rbp; mov %rsp,%rbp; push %rbx; sub $40,%rsp; call next; add $40,%rsp; pop %rbx;
	 * leave; ret
	 */
	static const char plain[] = "\x55\x48\x89\xe5\x53\x48\x83\xec\x28\xe8\x00\x01\x00\x00\x48"
				    "\x83\xc4\x28\x5b\xc9\xc3";
	/* push %rbp; mov %rsp,%rbp; and $-64,%rsp; sub $128,%rsp; call; leave; ret */
	static const char aligned[] = "\x55\x48\x89\xe5\x48\x83\xe4\xc0\x48\x81\xec\x80\x00\x00\x00"
				      "\xe8\x00\x01\x00\x00\xc9\xc3";
	/* the same as gcc aligns to 256: mov $0,%spl */
	static const char aligned256[] =
		"\x55\x48\x89\xe5\x40\xb4\x00\x48\x83\xc4\x80\xe8\x00\x01\x00\x00\xc9\xc3";
	/* push %rbp; mov %rsp,%rbp; sub %rdi,%rsp; call; leave; ret */
	static const char variable[] = "\x55\x48\x89\xe5\x48\x29\xfc\xe8\x00\x01\x00\x00\xc9\xc3";
	/*
	 * push %rbp; mov %rsp,%rbp; sub $16,%rsp; test %edi,%edi; je 1f; push $1; call abort, which
	 * does not return; 1: call; leave; ret
	 */
	static const char ways[] = "\x55\x48\x89\xe5\x48\x83\xec\x10\x85\xff\x74\x07\x6a\x01\xe8"
				   "\x00\x01\x00\x00\xe8\x00\x01\x00\x00\xc9\xc3";
	/* push %rbp; mov %rsp,%rbp; 1: push %rax; dec %edi; jne 1b; call; leave; ret */
	static const char loop[] =
		"\x55\x48\x89\xe5\x50\xff\xcf\x75\xfb\xe8\x00\x01\x00\x00\xc9\xc3";
	struct fathom_depths d;

	skip_without_decoder();
	depth_is(state, C(plain), 14, 48, 0);
	depth_is(state, C(plain), 5, 8, 0);
	/* rbp has what the caller left there, which is not known. */
	find_depths(state, C(plain), 1, &d);
	assert_int_equal(d.n, 0);
	find_depths(state, C(plain), 20, &d);
	assert_int_equal(d.n, 0);
	/* No way leads there. */
	find_depths(state, C(plain), 21, &d);
	assert_int_equal(d.n, 0);
	depth_is(state, C(aligned), 20, 128, 64);
	depth_is(state, C(aligned256), 16, 128, 256);
	find_depths(state, C(variable), 12, &d);
	assert_int_equal(d.n, 0);
	/* One is right: the caller of this has to prove it. */
	find_depths(state, C(ways), 24, &d);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.items[0].distance + d.items[1].distance, 16 + 24);
	find_depths(state, C(loop), 14, &d);
	assert_int_equal(d.n, FATHOM_MAX_DEPTHS);
	assert_true(d.is_cut);
}

static void test_other_machine(void **state)
{
	struct fathom_registers r = { .machine = EM_AARCH64 };
	struct fathom_follower *f;
	struct program *p = make_program("\xc3", 1, EM_X86_64);

	(void)state;
	fathom_register_set(&r, 31, START);
	assert_int_equal(fathom_follower_create(fathom_unwind_arch(EM_AARCH64), &f, NULL), 0);
	assert_int_equal(fathom_follow_to_return(f, &p->memory, false, &r), FATHOM_STOP_NO_RULE);
	fathom_follower_destroy(f);
	fathom_follower_destroy(NULL);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Returns a byte of hostile code: often one of those that this is about. */
static uint8_t random_byte(uint64_t *seed)
{
	static const uint8_t often[] = { 0x48, 0x50, 0x58, 0x5c, 0x53, 0x5b, 0x74, 0x75,
					 0xeb, 0xe8, 0xc3, 0xc2, 0xc9, 0x83, 0xc4, 0xec,
					 0x89, 0x8b, 0x24, 0x5d, 0x55, 0xff };
	const uint64_t r = next_random(seed);

	return r % 4 ? often[(r >> 8) % sizeof often] : (uint8_t)(r >> 16);
}

/*
 * Whatever the code is, reading it and the stack is bounded, and what is said is so: the return
 * address is the word below the stack pointer, or further below for ret N.
 */
static void test_random(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	unsigned n_found = 0;

	skip_without_decoder();
	for (unsigned round = 0; round < 20000; round++) {
		const uint16_t machine = round % 2 ? EM_386 : EM_X86_64;
		const unsigned word = machine == EM_386 ? 4 : 8;
		struct program *p;
		struct fathom_registers before;
		enum fathom_stop stop;
		uint8_t code[200];

		for (size_t i = 0; i < sizeof code; i++)
			code[i] = random_byte(&seed);
		p = make_program(code, sizeof code, machine);
		before = p->r;
		fathom_follower_begin(follower_of(state, machine));
		stop = fathom_follow_to_return(follower_of(state, machine), &p->memory, round & 2,
					       &p->r);
		/* Each step reads two pieces of code at most, and two more for a callee. */
		assert_in_range(p->code_memory.n_reads, 1, 4 * FATHOM_MAX_FOLLOW_STEPS);
		assert_true(p->stack_memory.n_reads <= FATHOM_MAX_FOLLOW_LOOKS);
		if (stop) {
			assert_memory_equal(&p->r, &before, sizeof before);
			continue;
		}
		n_found++;
		assert_true(p->r.sp >= START + word && p->r.sp <= STACK + STACK_SIZE + 0xffff);
		assert_non_null(memmem(p->stack, STACK_SIZE, &p->r.pc, word));
	}
	assert_in_range(n_found, 100, 20000);
}

/* What following the code of this program came to. */
static struct {
	unsigned n;       /* places in the code */
	unsigned n_found; /* an answer was given */
	unsigned n_wrong;
} own;

/* A stack that is as long as it needs to be. */
static size_t read_made_stack(void *data, uint64_t avma, void *to, size_t size)
{
	uint8_t bytes[16];
	const uint64_t first = word_at(avma & ~UINT64_C(7), 8);
	const uint64_t second = word_at((avma & ~UINT64_C(7)) + 8, 8);

	(void)data;
	assert_true(size <= 8);
	memcpy(bytes, &first, 8);
	memcpy(bytes + 8, &second, 8);
	memcpy(to, bytes + avma % 8, size);
	return size;
}

static const struct fathom_reader made_stack = { .read = read_made_stack };

/* Where the caller's stack pointer is in the frames that are made up; aligned to 16. */
#define CFA (START + 0x100000)

/*
 * Returns whether the caller's register @number is in @after as @row says. Rows speak of the slot
 * of a register even behind the pop that has emptied it.
 */
static bool is_as_said(const struct fathom_row *row, uint8_t number,
		       const struct fathom_registers *before, const struct fathom_registers *after)
{
	const struct fathom_rule rule = fathom_row_rule(row, number);
	uint64_t at;

	if (!fathom_register_known(after, number))
		return true;
	if (rule.kind != FATHOM_RULE_AT_OFFSET)
		return after->value[number] == before->value[number];
	at = CFA + (uint64_t)rule.offset;
	return after->value[number] == word_at(at, 8) ||
	       (at < before->sp && after->value[number] == before->value[number]);
}

/* Follows the code at @pc, where @row holds, and compares with that. */
static void compare(struct fathom_follower *f, const struct fathom_reader *code,
		    const struct fathom_row *row, uint64_t pc, bool is_return)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(EM_X86_64);
	const struct fathom_step_memory memory = { &made_stack, code, false };
	struct fathom_registers r = { .machine = EM_X86_64, .pc = pc };
	struct fathom_registers before;
	bool is_right;

	for (uint8_t i = 0; i < 16; i++)
		if (!is_return || (arch->callee_saved >> i & 1))
			fathom_register_set(&r, i, initial(i));
	r.sp = CFA - (uint64_t)row->cfa.offset;
	fathom_register_set(&r, RSP, r.sp);
	fathom_register_set(&r, PC, pc);
	before = r;
	own.n++;
	fathom_follower_begin(f);
	if (fathom_follow_to_return(f, &memory, is_return, &r))
		return;
	own.n_found++;
	is_right = r.sp == CFA && r.pc == word_at(CFA - 8, 8);
	for (uint8_t i = 0; i < 16; i++)
		if (arch->callee_saved >> i & 1)
			is_right = is_right && is_as_said(row, i, &before, &r);
	if (!is_right) {
		own.n_wrong++;
		print_message("wrong at %#llx%s: sp %+lld\n", (unsigned long long)pc,
			      is_return ? ", behind a call" : "", (long long)(r.sp - CFA));
	}
}

static bool is_by_sp(const struct fathom_row *row)
{
	return row->cfa.kind == FATHOM_RULE_REGISTER && row->cfa.number == RSP;
}

/* Of so many functions one is looked at. */
enum { EVERY = 4 };

static void compare_function(struct fathom_follower *f, struct fathom_code_decoder *d,
			     const struct fathom_reader *code, const struct fathom_fde *fde)
{
	struct fathom_row_reader rows;
	bool is_behind_call = false;
	bool is_reachable = true;

	for (uint64_t pc = fde->low; pc < fde->high;) {
		struct fathom_stack_code c;
		struct fathom_code same;
		uint8_t bytes[FATHOM_MAX_INSN];

		if (!fathom_reader_read(code, pc, bytes, sizeof bytes))
			return;
		d->decode_stack(d, (struct fathom_bytes){ bytes, sizeof bytes }, pc, &c);
		d->decode(d, (struct fathom_bytes){ bytes, sizeof bytes }, pc, &same, NULL);
		assert_true(c.size == same.size && c.flow == same.flow && c.bad == same.bad);
		if (fathom_row_reader_init(&rows, fde, fathom_unwind_arch(EM_X86_64)) ||
		    fathom_row_find(&rows, pc))
			return;
		/* Nothing leads to the padding behind a jump. */
		is_reachable = is_reachable || !same.padding;
		if (is_reachable && is_by_sp(&rows.now))
			compare(f, code, &rows.now, pc, false);
		if (is_behind_call &&
		    !fathom_row_reader_init(&rows, fde, fathom_unwind_arch(EM_X86_64)) &&
		    !fathom_row_find(&rows, pc - 1) && is_by_sp(&rows.now))
			compare(f, code, &rows.now, pc, true);
		is_behind_call = c.flow == FATHOM_FLOW_CALL;
		is_reachable = is_reachable && c.flow != FATHOM_FLOW_JUMP &&
			       c.flow != FATHOM_FLOW_RETURN && c.flow != FATHOM_FLOW_STOP;
		pc += c.size;
	}
}

static struct fathom_follower *own_follower;

static size_t read_own(void *data, uint64_t svma, void *to, size_t size)
{
	return (size_t)fathom_object_read(data, svma, to, size);
}

static void compare_module(struct fathom_module *m)
{
	const struct fathom_reader code = { .read = read_own, .data = m->main };
	struct fathom_code_decoder *d;
	unsigned n = 0;

	assert_int_equal(fathom_x86_open(true, false, &d, NULL), 0);
	for (uint32_t i = 0; i < m->unwind.n_sections; i++) {
		const struct fathom_cfi cfi = fathom_unwind_tables_section(&m->unwind, i);
		struct fathom_cie cie = { .off = UINT64_MAX };
		struct fathom_cfi_reader r;
		struct fathom_cfi_entry e;
		struct fathom_fde fde;

		fathom_cfi_reader_init(&r, &cfi);
		while (fathom_cfi_next(&r, &e, NULL) == FATHOM_OK)
			if (!e.is_cie && n++ % EVERY == 0 &&
			    !fathom_cie_read(&cfi, e.cie_off, &cie) &&
			    !fathom_fde_read(&e, &cie, &fde))
				compare_function(own_follower, d, &code, &fde);
	}
	d->close(d);
}

/*
 * In front of each instruction of this program, and behind each of its calls, what following the
 * code says is what its call frame information says.
 */
static void test_own_code(void **state)
{
	static char path[] = "/proc/self/exe";
	char *paths[] = { path };

	skip_without_decoder();
	own_follower = follower_of(state, EM_X86_64);
	assert_int_equal(each_module(1, paths, compare_module), 0);
	print_message("of %u places %u have an answer, %u a wrong one\n", own.n, own.n_found,
		      own.n_wrong);
	assert_int_equal(own.n_wrong, 0);
	/* Code that calls functions which never return, or goes by rbp, has no answer. */
#ifndef SANITIZED
	assert_true(own.n > 1000 && own.n_found > own.n / 5 * 4);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),         cmocka_unit_test(test_length),
		cmocka_unit_test(test_ways),          cmocka_unit_test(test_unknown_registers),
		cmocka_unit_test(test_cost),          cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_other_machine), cmocka_unit_test(test_random),
		cmocka_unit_test(test_own_code),      cmocka_unit_test(test_depths),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
