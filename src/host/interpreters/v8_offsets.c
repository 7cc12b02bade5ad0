/* SPDX-License-Identifier: MIT */
/*
 * Where members of V8's objects are, and where the code of its built-ins is. The program states
 * most of the former in variables (tools/gen-postmortem-metadata.py of V8); their names change with
 * the types of members. What is stated is believed if it can be; a row of numbers has the rest.
 */
#include <stddef.h>
#include <string.h>

#include "host/interpreters/v8.h"
#include "host/symbol/dynsym.h"

static const struct fathom_v8_offsets rows[] = {
	{
		.major = 9,
		.minor = 4,
		.node = 16,
		.function_shared = 24,
		.bytecode_lines = 32,
		.bytecode_data = 54,
		.baseline_code = 8,
		.baseline_bytecode = 16,
		.code_positions = 24,
		.code_start = 96,
		.code_is_inside = 1,
		.code_size = 40,
		.scope_receiver = 1,
		.scope_inlined = UINT16_MAX,
		.more_functions = 14,
		.type_baseline = 94,
	},
	{
		.major = 10,
		.minor = 2,
		.node = 18,
		.function_shared = 24,
		.bytecode_lines = 32,
		.bytecode_data = 56,
		.baseline_bytecode = 16,
		.code_positions = 24,
		.code_start = 128,
		.code_is_inside = 1,
		.code_size = 40,
		.scope_inlined = 75,
		.more_functions = 15,
	},
	{
		.major = 11,
		.minor = 3,
		.node = 20,
		.function_shared = 24,
		.bytecode_lines = 32,
		.bytecode_data = 54,
		.baseline_bytecode = 16,
		.code_positions = 24,
		.code_start = 40,
		.code_size = 56,
		.scope_inlined = 75,
		.more_functions = 15,
	},
	{
		.major = 12,
		.minor = 4,
		.node = 22,
		.function_shared = 32,
		.bytecode_lines = 24,
		.bytecode_data = 64,
		.baseline_bytecode = 8,
		.code_positions = 16,
		.code_start = 40,
		.code_size = 52,
		.scope_inlined = 75,
		.more_functions = 16,
	},
};

/* A variable of the program, and the number that it states. */
struct stated {
	const char *name;
	size_t offset; /* of struct fathom_v8_offsets */
};

#define STATED(name, member) { "v8dbg_" name, offsetof(struct fathom_v8_offsets, member) }

/* The constants that a program must have; one member may have a name for each version. */
static const struct stated types[] = {
	STATED("type_JSFunction__JS_FUNCTION_TYPE", type_function),
	STATED("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", type_shared),
	STATED("type_Script__SCRIPT_TYPE", type_script),
	STATED("type_ScopeInfo__SCOPE_INFO_TYPE", type_scope),
	STATED("type_BytecodeArray__BYTECODE_ARRAY_TYPE", type_bytecode),
	STATED("type_ByteArray__BYTE_ARRAY_TYPE", type_bytes),
	STATED("type_Code__CODE_TYPE", type_code),
	STATED("type_FixedArray__FIXED_ARRAY_TYPE", type_array),
	STATED("FirstContextType", first_context),
	STATED("LastContextType", last_context),
	STATED("frametype_BuiltinExitFrame", exit_frame),
	STATED("frametype_ExitFrame", runtime_frame),
};

/* The constants that a row has, too. */
static const struct stated members[] = {
	STATED("class_JSFunction__shared__SharedFunctionInfo", function_shared),
	STATED("class_BytecodeArray__data__uintptr_t", bytecode_data),
	STATED("type_BaselineData__BASELINE_DATA_TYPE", type_baseline),
	STATED("type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", type_bytes),
};

/* Numbers that all versions have in common: another one is of a layout that no row has. */
static const struct {
	const char *name;
	int32_t value;
} common[] = {
	{ "v8dbg_TaggedSize", 8 },
	{ "v8dbg_HeapObjectTag", V8_TAG },
	{ "v8dbg_HeapObjectTagMask", V8_TAG_MASK },
	{ "v8dbg_SmiTagMask", 1 },
	{ "v8dbg_off_fp_context", -8 },
	{ "v8dbg_off_fp_function", -16 },
	{ "v8dbg_off_fp_bytecode_array", -32 },
	{ "v8dbg_off_fp_bytecode_offset", -40 },
	{ "v8dbg_class_Map__instance_type__uint16_t", MAP_TYPE },
	{ "v8dbg_class_SharedFunctionInfo__function_data__Object", SHARED_DATA },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", SHARED_NAME },
	{ "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject", SHARED_SCRIPT },
	{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", SHARED_SCRIPT },
	{ "v8dbg_class_Script__source__Object", SCRIPT_SOURCE },
	{ "v8dbg_class_Script__name__Object", SCRIPT_NAME },
	{ "v8dbg_class_Script__line_ends__Object", SCRIPT_LINE_ENDS },
	{ "v8dbg_class_FixedArrayBase__length__SMI", ARRAY_LENGTH },
	{ "v8dbg_class_FixedArray__data__uintptr_t", ARRAY_DATA },
};

/* The most bytes of an object before a member, and the fewest and most of all built-ins. */
enum { MOST_OFFSET = 4096, LEAST_BUILTINS = 1 << 16, MOST_BUILTINS = 1 << 26 };

unsigned fathom_v8_node(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].major == major && rows[i].minor == minor)
			return rows[i].node;
	return 0;
}

bool fathom_v8_take_row(struct fathom_v8 *v, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].major != major || rows[i].minor != minor)
			continue;
		v->offsets = rows[i];
		return true;
	}
	return false;
}

/* Reads the number that the variable @name states; false if there is none. */
static bool read_stated(const struct fathom_runtime_found *f, const char *name, int32_t *ret)
{
	uint64_t avma;
	uint8_t bytes[4];

	if (!fathom_runtime_symbol(f, name, &avma) ||
	    !fathom_runtime_constant(f, avma, bytes, sizeof bytes))
		return false;
	*ret = (int32_t)load_u32(bytes, f->swap);
	return true;
}

/* Takes the number of @s, if it is stated and can be one. */
static bool take(const struct fathom_runtime_found *f, const struct stated *s,
		 struct fathom_v8_offsets *to)
{
	int32_t value;
	uint16_t number;

	if (!read_stated(f, s->name, &value) || value <= 0 || value > MOST_OFFSET)
		return false;
	number = (uint16_t)value;
	memcpy((char *)to + s->offset, &number, sizeof number);
	return true;
}

static const char *take_all(const struct fathom_runtime_found *f, struct fathom_v8_offsets *o)
{
	int32_t value;

	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		if (read_stated(f, common[i].name, &value) && value != common[i].value)
			return i ? "it states another layout of objects than its version has"
				 : "its pointers are compressed";
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!take(f, &types[i], o))
			return "it does not state the types of its objects (v8dbg_... in .dynsym)";
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		(void)take(f, &members[i], o);
	return NULL;
}

/*
 * Reads what the function of C++ @name returns, which takes it from one place: a constant, or a
 * variable of @size bytes. False if its code is of another form.
 */
static bool read_result(const struct fathom_runtime_found *f, const char *name, uint8_t size,
			uint64_t *ret)
{
	static const uint8_t marker[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */
	uint8_t code[24];
	const uint8_t *p = code;
	const size_t wide = size == 8;
	uint8_t bytes[8];
	uint64_t avma;

	if (!fathom_runtime_symbol(f, name, &avma) ||
	    !fathom_runtime_constant(f, avma, code, sizeof code))
		return false;
	if (!memcmp(p, marker, sizeof marker))
		p += sizeof marker;
	/* mov $constant, %eax; ret */
	if (p[0] == 0xb8 && p[5] == 0xc3) {
		*ret = load_u32(p + 1, false);
		return true;
	}
	avma += (uint64_t)(p - code);
	if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x05) {
		/* lea variable(%rip), %rax; mov (%rax), %rax or %eax; ret; or without the mov */
		*ret = avma = avma + 7 + (uint64_t)(int64_t)(int32_t)load_u32(p + 3, false);
		if (wide && p[7] == 0xc3)
			return true;
		p += 7 + (wide && p[7] == 0x48);
		if (p[0] != 0x8b || p[1] != 0x00 || p[2] != 0xc3)
			return false;
	} else {
		/* mov variable(%rip), %rax or %eax; ret */
		if (wide && *p != 0x48)
			return false;
		p += wide;
		if (p[0] != 0x8b || p[1] != 0x05 || p[6] != 0xc3)
			return false;
		avma += wide + 6 + (uint64_t)(int64_t)(int32_t)load_u32(p + 2, false);
	}
	if (!fathom_runtime_constant(f, avma, bytes, size))
		return false;
	*ret = wide ? load_u64(bytes, false) : load_u32(bytes, false);
	return true;
}

/* Finds the code of the built-ins; false if it is not known. */
static bool find_builtins(const struct fathom_runtime_found *f)
{
	struct fathom_v8 *v = f->own;

	if (!read_result(f, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", 8, &v->builtins) ||
	    !read_result(f, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", 4,
			 &v->builtins_size) ||
	    v->builtins_size < LEAST_BUILTINS || v->builtins_size > MOST_BUILTINS)
		return false;
	v->builtins -= f->bias;
	return true;
}

/* Reads the sizes of bytecodes. Without them lines of compiled code are not known. */
static void read_sizes(const struct fathom_runtime_found *f)
{
	static const char name[] = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
	const struct fathom_dynsym *d = fathom_module_dynsym(f->module);
	struct fathom_v8 *v = f->own;
	struct fathom_symbol symbol;
	uint32_t n;

	if (!d || !fathom_dynsym_find(d, (struct fathom_str){ name, sizeof name - 1 }, &symbol) ||
	    symbol.size % 3 || symbol.size / 3 > sizeof v->sizes[0])
		return;
	n = (uint32_t)(symbol.size / 3);
	for (uint32_t i = 0; i < 3; i++)
		if (!fathom_runtime_constant(f, symbol.value + f->bias + (uint64_t)i * n,
					     v->sizes[i], n))
			return;
	v->n_sizes = n;
}

void fathom_v8_find_offsets(struct fathom_runtime_found *f, uint32_t major, uint32_t minor)
{
	struct fathom_v8 *v = f->own;

	f->why = "only the V8 of node 16, 18, 20 and 22 is known";
	if (!fathom_v8_take_row(v, major, minor))
		return;
	f->why = take_all(f, &v->offsets);
	if (!f->why && !find_builtins(f))
		f->why = "where the code of its built-ins is is not known";
	if (!f->why)
		read_sizes(f);
}
