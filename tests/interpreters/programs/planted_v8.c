/* SPDX-License-Identifier: MIT */
/*
 * planted_v8 KIND [SEED]: a program that has the symbols of V8 11.3, and functions, frames and
 * scripts that it makes by hand. KIND says what of it is wrong. With "damage", SEED chooses bytes
 * that are changed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int _ZN2v88internal7Version6major_E = 11;
int _ZN2v88internal7Version6minor_E = 3;
int v8dbg_TaggedSize = 8;
int v8dbg_off_fp_function = -16;
int v8dbg_type_JSFunction__JS_FUNCTION_TYPE = 2066;
int v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE = 262;
int v8dbg_type_Script__SCRIPT_TYPE = 167;
int v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE = 261;
int v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE = 191;
int v8dbg_type_ByteArray__BYTE_ARRAY_TYPE = 190;
int v8dbg_type_Code__CODE_TYPE = 245;
int v8dbg_type_FixedArray__FIXED_ARRAY_TYPE = 175;
int v8dbg_FirstContextType = 205;
int v8dbg_LastContextType = 214;
int v8dbg_frametype_BuiltinExitFrame = 25;
int v8dbg_frametype_ExitFrame = 3;
/* Bytecodes of one byte, and their sizes: 4 is a call, 5 another instruction. */
unsigned char _ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE[3 * 8] = {
	1, 1, 1, 1, 3, 2, 1, 1, 1, 1, 1, 1, 5, 3, 1, 1, 1, 1, 1, 1, 9, 5, 1, 1,
};

enum {
	FUNCTION = 2066, SHARED = 262, SCRIPT = 167, SCOPE = 261, BYTECODE = 191, BYTES = 190,
	CODE = 245, ARRAY = 175, CONTEXT = 210, TEXT = 0x28, CONS = 0x29, SLICED = 0x2b, THIN = 0x2d,
	MAPS = 16,
};

#define SMI(n) ((uint64_t)(uint32_t)(n) << 32)

/* Words below the record of a frame, and what it calls. */
struct call {
	uint64_t context, function, bytecode, position;
	void (*next)(const struct call *);
	const struct call *with;
	void (*frame)(const struct call *);
};

/*
 * The code of the built-ins: it has no call frame information. Its function makes a frame of the
 * words of a struct call, and calls on; it may be copied.
 */
extern const char planted_begin[], planted_frame[], planted_end[];
__asm__(".pushsection .text\n"
	"planted_begin:\n"
	".skip 66000, 0xcc\n"
	"planted_frame:\n"
	"push %rbp\n"
	"mov %rsp, %rbp\n"
	"push 0(%rdi)\n"
	"push 8(%rdi)\n"
	"push $1\n"
	"push 16(%rdi)\n"
	"push 24(%rdi)\n"
	"push $0\n"
	"mov 32(%rdi), %rax\n"
	"mov 40(%rdi), %rdi\n"
	"call *%rax\n"
	"leave\n"
	"ret\n"
	"planted_end:\n"
	".popsection\n");

const void *_ZN2v88internal23DefaultEmbeddedBlobCodeEv(void)
{
	return planted_begin;
}

int _ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv(void)
{
	return 66064;
}

static const char *kind;
static uint64_t heap[1024];
static size_t used;
static struct {
	uint64_t tagged;
	unsigned type;
} maps[MAPS];

static int is(const char *what)
{
	return !strcmp(kind, what);
}

/* Makes an object of @type with room for @n words after its map. */
static uint64_t *make(unsigned type, size_t n)
{
	uint64_t *object = heap + used;
	size_t i = 0;

	used += n + 1;
	while (maps[i].type && maps[i].type != type)
		i++;
	if (!maps[i].type) {
		uint64_t *map = heap + used;

		used += 8;
		maps[i].type = type;
		maps[i].tagged = (uintptr_t)map + 1;
		map[0] = (uintptr_t)map + 1;
		((uint16_t *)map)[6] = (uint16_t)type;
	}
	object[0] = maps[i].tagged;
	return object;
}

static uint64_t tag(const uint64_t *object)
{
	return (uintptr_t)object + 1;
}

static uint64_t make_text(const char *text)
{
	const size_t n = strlen(text);
	uint64_t *o = make(TEXT, 2 + n / 8);

	o[1] = SMI(n);
	memcpy(o + 2, text, n);
	return tag(o);
}

static uint64_t make_bytes(unsigned type, size_t header, const void *bytes, size_t n)
{
	uint64_t *o = make(type, header / 8 + n / 8 + 1);

	o[1] = SMI(is("length") ? -1 : n);
	memcpy((char *)o + header, bytes, n);
	return tag(o);
}

/* Makes a function called @name of @script, whose bytecodes are at *@ret_bytecode. */
static uint64_t make_function(const char *name, uint64_t script, uint64_t *ret_bytecode,
			      uint64_t **ret_shared)
{
	/* Position 20 at the start, 4 at bytecode 2, 12 at bytecode 5. */
	static const uint8_t positions[] = { 1, 84, 6, 64 - 1, 6, 32 };
	static const uint8_t bytecodes[] = { 5, 0, 4, 0, 0, 4, 0, 0 };
	uint64_t *function = make(FUNCTION, 8);
	uint64_t *shared = make(SHARED, 8);
	uint64_t *scope = make(SCOPE, 10);

	scope[1] = SMI(is("scope") ? 0x4171e2 | 1 << 10 : 0x4171e2);
	scope[3] = SMI(is("variables") ? 1 << 30 : 0);
	scope[4] = make_text(name);
	scope[5] = SMI(-1);
	*ret_bytecode = make_bytes(BYTECODE, 54, bytecodes, sizeof bytecodes);
	((uint64_t *)(*ret_bytecode - 1))[4] = make_bytes(BYTES, 16, positions, sizeof positions);
	shared[1] = *ret_bytecode;
	shared[2] = tag(scope);
	shared[4] = script;
	function[3] = tag(shared);
	if (is("function"))
		function[3] = tag(scope);
	*ret_shared = shared;
	return tag(function);
}

static void wait_here(const struct call *call)
{
	(void)call;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* A function of C between two of the script. */
static __attribute__((noinline)) void between(const struct call *call)
{
	call->frame(call);
	__asm__ volatile("");
}

/* Changes some bytes of the heap. */
static void damage(unsigned seed)
{
	srand(seed);
	for (int i = 0; i < 12; i++)
		((uint8_t *)heap)[(size_t)rand() % (used * 8)] = (uint8_t)rand();
}

static uint64_t make_script(void)
{
	uint64_t *script = make(SCRIPT, 16);
	uint64_t file = make_text("planted.js");

	script[1] = make_text("one\ntwo\nthree\nfour\nfive\n");
	script[2] = file;
	if (is("circle")) {
		uint64_t *thin = make(THIN, 3);
		uint64_t *sliced = make(SLICED, 4);

		thin[2] = tag(sliced);
		sliced[1] = SMI(10);
		sliced[2] = tag(thin);
		script[1] = script[2] = tag(thin);
	}
	if (is("cons")) {
		uint64_t *cons = make(CONS, 4);

		cons[1] = SMI(10);
		cons[2] = cons[3] = tag(cons);
		script[2] = tag(cons);
	}
	if (is("long"))
		((uint64_t *)(file - 1))[1] = SMI(0x7fffffff);
	return tag(script);
}

/* Copies the function that makes frames to code of no file, as compilers make it. */
static void *compile(void)
{
	const size_t n = (size_t)(planted_end - planted_frame);
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		exit(1);
	memcpy(code, planted_frame, n);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	return code;
}

/* Makes the Code of @shared at @code: the call in it is of the bytecode at 5. */
static void make_code(uint64_t *shared, uint64_t bytecode, const void *code)
{
	const uint8_t pieces[] = { 4, 10, 4, 100 };
	uint64_t *o = make(CODE, 9);

	o[2] = bytecode;
	o[3] = make_bytes(BYTES, 16, pieces, sizeof pieces);
	o[5] = (uintptr_t)code;
	((uint32_t *)o)[14] = is("code") ? 1 : 200;
	shared[1] = tag(o);
}

int main(int argc, char **argv)
{
	void (*interpret)(const struct call *) =
		(void (*)(const struct call *))(uintptr_t)planted_frame;
	void (*compiled)(const struct call *);
	struct call outer, middle, inner, exit_frame;
	uint64_t *shared[3];
	uint64_t bytecode[3];
	uint64_t context;
	uint64_t script;

	kind = argc > 1 ? argv[1] : "right";
	if (is("version"))
		_ZN2v88internal7Version6minor_E = 9;
	if (is("compressed"))
		v8dbg_TaggedSize = 4;
	if (is("layout"))
		v8dbg_off_fp_function = -24;
	if (is("types"))
		v8dbg_type_Script__SCRIPT_TYPE = -1;
	compiled = (void (*)(const struct call *))(uintptr_t)compile();
	context = tag(make(CONTEXT, 2));
	script = make_script();
	exit_frame = (struct call){ .context = 3 << 1, .next = wait_here };
	inner = (struct call){ .context = context, .next = interpret, .with = &exit_frame };
	middle = (struct call){ .context = context, .next = between, .with = &inner };
	outer = (struct call){ .context = context, .next = between, .with = &middle };
	inner.frame = interpret;
	middle.frame = compiled;
	inner.function = make_function(is("escapes") ? "\x1b[31mred" : "inner", script, &bytecode[0],
				       &shared[0]);
	middle.function = make_function("middle", script, &bytecode[1], &shared[1]);
	outer.function = make_function("outer", script, &bytecode[2], &shared[2]);
	inner.bytecode = bytecode[0];
	outer.bytecode = bytecode[2];
	/* The interpreter leaves this where compiled code has nothing: it says another line. */
	middle.bytecode = bytecode[1];
	middle.position = SMI(53);
	inner.position = SMI(is("position") ? 1 << 30 : 53 + 2);
	outer.position = SMI(53);
	make_code(shared[1], bytecode[1], (const void *)(uintptr_t)compiled);
	if (is("context"))
		middle.context = inner.function;
	if (argc > 2)
		damage((unsigned)atoi(argv[2]));
	interpret(&outer);
	return 0;
}
