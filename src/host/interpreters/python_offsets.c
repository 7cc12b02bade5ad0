/* SPDX-License-Identifier: MIT */
/*
 * Where the members of CPython's structs are. Since 3.13 it states that itself (struct
 * _Py_DebugOffsets, at the start of _PyRuntime). For 3.11 and 3.12 a row of the table has what
 * offsetof() says in each minor version's Include/internal; a minor version keeps its layout. A row
 * is believed if the binary's own PyCode_Type says the same of the members that Python programs may
 * see (tp_members).
 */
#include <string.h>

#include "host/interpreters/python.h"

/* Bytes of PyTypeObject before tp_basicsize and tp_members (Include/cpython/object.h). */
enum { TYPE_BASIC_SIZE = 32, TYPE_MEMBERS = 240 };

/* Bytes of PyMemberDef, and of it before its offset (Include/descrobject.h). */
enum { MEMBER_SIZE = 40, MEMBER_OFFSET = 16, MAX_MEMBERS = 64 };

static const struct fathom_python_offsets table[] = {
	{ .minor = 11,
	  .interpreters_head = 40,
	  .threads_head = 16,
	  .interpreter_next = 0,
	  .gil = 360,
	  .owns_gil = 1,
	  .thread_next = 8,
	  .native_id = 160,
	  .thread_frame = 56,
	  .has_cframe = 1,
	  .cframe_frame = 8,
	  .cframe_previous = 16,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_instruction = 56,
	  .frame_owner = 69,
	  .frame_is_entry = 68,
	  .code_file = 112,
	  .code_qualname = 128,
	  .code_first_line = 72,
	  .code_line_table = 136,
	  .code_size = 184,
	  .text_size = 48,
	  .wide_size = 72 },
	{ .minor = 12,
	  .interpreters_head = 40,
	  .threads_head = 72,
	  .interpreter_next = 0,
	  .gil = 384,
	  .thread_next = 8,
	  .native_id = 144,
	  .thread_frame = 56,
	  .has_cframe = 1,
	  .cframe_frame = 0,
	  .cframe_previous = 8,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instruction = 56,
	  .frame_owner = 70,
	  .code_file = 112,
	  .code_qualname = 128,
	  .code_first_line = 68,
	  .code_line_table = 136,
	  .code_size = 192,
	  .text_size = 40,
	  .wide_size = 56 },
};

/* Members of struct _Py_DebugOffsets that are read, in its order. */
enum stated {
	STATED_VERSION,
	STATED_FREE_THREADED,
	STATED_INTERPRETERS_HEAD,
	STATED_INTERPRETER_SIZE,
	STATED_INTERPRETER_NEXT,
	STATED_THREADS_HEAD,
	STATED_GIL,
	STATED_THREAD_SIZE,
	STATED_THREAD_NEXT,
	STATED_THREAD_FRAME,
	STATED_NATIVE_ID,
	STATED_FRAME_SIZE,
	STATED_FRAME_PREVIOUS,
	STATED_FRAME_CODE,
	STATED_FRAME_INSTRUCTION,
	STATED_FRAME_OWNER,
	STATED_CODE_SIZE,
	STATED_CODE_FILE,
	STATED_CODE_QUALNAME,
	STATED_CODE_LINE_TABLE,
	STATED_CODE_FIRST_LINE,
	STATED_CODE_INSTRUCTIONS,
	STATED,
};

/* Which words of it they are, by version (Include/internal/pycore_debug_offsets.h). */
static const uint8_t stated_words[][STATED] = {
	/* 3.13 */
	{ 1, 2, 5, 6, 8, 9, 14, 19, 21, 23, 25, 28, 29, 30, 31, 33, 34, 35, 37, 38, 39, 43 },
	/* 3.14 */
	{ 1, 2, 5, 6, 8, 9, 15, 22, 24, 26, 28, 31, 32, 33, 34, 36, 39, 40, 42, 43, 44, 48 },
};

/* The first version that states them, and words that are read. */
enum { FIRST_STATED = 13, WORDS = 49 };

/* Bytes of PyASCIIObject and PyCompactUnicodeObject, of which it states only the first. */
enum { STATED_TEXT_SIZE = 40, STATED_WIDE_SIZE = 56 };

/* Takes @word, the offset of a member of @bytes in a struct of @size. */
static bool take_offset(uint64_t word, uint64_t size, uint64_t bytes, uint16_t *ret)
{
	*ret = (uint16_t)word;
	return size <= UINT16_MAX && word <= UINT16_MAX && bytes <= size && word <= size - bytes;
}

/* Takes what a CPython states of itself; false if it cannot be so. */
static bool take_stated(const uint64_t *words, uint16_t minor, struct fathom_python_offsets *ret)
{
	const uint64_t interpreter = words[STATED_INTERPRETER_SIZE];
	const uint64_t thread = words[STATED_THREAD_SIZE];
	/* Of a frame, its words of local variables may be many; the members come before. */
	const uint64_t frame = words[STATED_FRAME_SIZE] < FATHOM_PYTHON_FRAME - 8
				       ? words[STATED_FRAME_SIZE]
				       : FATHOM_PYTHON_FRAME - 8;
	const uint64_t code = words[STATED_CODE_SIZE];
	/* _PyRuntimeState and PyInterpreterState may be larger than all that is read of them. */
	const uint64_t most = UINT16_MAX;

	*ret = (struct fathom_python_offsets){ .minor = minor,
					       .text_size = STATED_TEXT_SIZE,
					       .wide_size = STATED_WIDE_SIZE };
	return take_offset(words[STATED_INTERPRETERS_HEAD], most, 8, &ret->interpreters_head) &&
	       interpreter > words[STATED_THREADS_HEAD] &&
	       take_offset(words[STATED_THREADS_HEAD], most, 8, &ret->threads_head) &&
	       take_offset(words[STATED_INTERPRETER_NEXT], most, 8, &ret->interpreter_next) &&
	       take_offset(words[STATED_GIL], most, 8, &ret->gil) &&
	       take_offset(words[STATED_THREAD_NEXT], thread, 8, &ret->thread_next) &&
	       take_offset(words[STATED_THREAD_FRAME], thread, 8, &ret->thread_frame) &&
	       take_offset(words[STATED_NATIVE_ID], thread, 8, &ret->native_id) &&
	       take_offset(words[STATED_FRAME_PREVIOUS], frame, 8, &ret->frame_previous) &&
	       take_offset(words[STATED_FRAME_CODE], frame, 8, &ret->frame_code) &&
	       take_offset(words[STATED_FRAME_INSTRUCTION], frame, 8, &ret->frame_instruction) &&
	       take_offset(words[STATED_FRAME_OWNER], frame, 1, &ret->frame_owner) &&
	       take_offset(words[STATED_CODE_FILE], code, 8, &ret->code_file) &&
	       take_offset(words[STATED_CODE_QUALNAME], code, 8, &ret->code_qualname) &&
	       take_offset(words[STATED_CODE_LINE_TABLE], code, 8, &ret->code_line_table) &&
	       take_offset(words[STATED_CODE_FIRST_LINE], code, 4, &ret->code_first_line) &&
	       take_offset(words[STATED_CODE_INSTRUCTIONS], code, 0, &ret->code_size);
}

/* Reads what the runtime states of itself. */
static bool read_stated(struct fathom_runtime_found *f, uint32_t version)
{
	struct fathom_python *p = f->own;
	const uint16_t minor = version >> 16 & 0xff;
	uint8_t bytes[8 * WORDS];
	uint64_t words[STATED];

	if (!fathom_reader_read(f->memory, p->runtime, bytes, sizeof bytes) ||
	    memcmp(bytes, "xdebugpy", 8) != 0) {
		f->why = "it does not say where its structures are";
		return false;
	}
	for (size_t i = 0; i < STATED; i++)
		words[i] = load_u64(bytes + 8 * (size_t)stated_words[minor - FIRST_STATED][i],
				    f->swap);
	if (words[STATED_FREE_THREADED])
		f->why = "it is a free-threaded build";
	else if (words[STATED_VERSION] != version || !take_stated(words, minor, &p->stated))
		f->why = "where it says that its structures are cannot be";
	else
		p->offsets = &p->stated;
	return p->offsets != NULL;
}

/* Reads the name of the member at @member; from the file where memory lacks it. */
static bool read_name(const struct fathom_runtime_found *f, uint64_t member, char *ret, size_t size)
{
	uint64_t name;

	memset(ret, 0, size);
	if (!fathom_runtime_number(f, member, 8, &name))
		return false;
	return fathom_reader_read(f->memory, name, ret, size - 1) ||
	       (f->module &&
		fathom_object_read(f->module->main, name - f->bias, (uint8_t *)ret, size - 1) != 0);
}

bool fathom_python_type_agrees(const struct fathom_runtime_found *f, uint64_t type, uint64_t size,
			       const struct fathom_python_member *wanted, size_t n, size_t least)
{
	uint64_t members;
	uint64_t is;
	size_t n_listed = 0;

	if (!fathom_runtime_number(f, type + TYPE_BASIC_SIZE, 8, &is) || (size && is != size) ||
	    !fathom_runtime_number(f, type + TYPE_MEMBERS, 8, &members))
		return false;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		const uint64_t member = members + (uint64_t)i * MEMBER_SIZE;
		uint64_t offset;
		char name[16];

		if (!read_name(f, member, name, sizeof name) || !name[0] ||
		    !fathom_runtime_number(f, member + MEMBER_OFFSET, 8, &offset))
			break;
		for (size_t k = 0; k < n; k++) {
			if (strncmp(name, wanted[k].name, sizeof name - 1) != 0)
				continue;
			if (offset != wanted[k].offset)
				return false;
			n_listed++;
		}
	}
	return n_listed >= least;
}

/*
 * Returns whether PyCode_Type agrees with @o: with the size of a code object, and with each of the
 * members that it lists.
 */
static bool agrees(const struct fathom_runtime_found *f, const struct fathom_python_offsets *o)
{
	const struct fathom_python *p = f->own;
	const struct fathom_python_member wanted[] = { { "co_filename", o->code_file },
						       { "co_qualname", o->code_qualname },
						       { "co_firstlineno", o->code_first_line },
						       { "co_linetable", o->code_line_table } };

	return fathom_python_type_agrees(f, p->code_type, o->code_size, wanted,
					 sizeof wanted / sizeof *wanted, 0);
}

bool fathom_python_find_offsets(struct fathom_runtime_found *f, uint32_t version)
{
	struct fathom_python *p = f->own;
	const uint32_t minor = version >> 16 & 0xff;

	if (version >> 24 != 3 || minor < 11 || minor > 14) {
		f->why = "its frames are known of 3.11 to 3.14";
		return false;
	}
	if (minor >= FIRST_STATED)
		(void)read_stated(f, version);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].minor == minor)
			p->offsets = &table[i];
	if (p->offsets && !agrees(f, p->offsets)) {
		p->offsets = NULL;
		f->why = "its code objects have another layout than those of this version";
	}
	return p->offsets != NULL;
}
