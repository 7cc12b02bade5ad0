/* SPDX-License-Identifier: MIT */
/* Types that the parts which read CPython share. */
#ifndef FATHOM_INTERPRETERS_PYTHON_H
#define FATHOM_INTERPRETERS_PYTHON_H

#include "host/interpreters/provider.h"

/*
 * Where members of CPython's structs are, in bytes (Include/internal/pycore_*.h of each version). A
 * frame is struct _PyInterpreterFrame.
 */
struct fathom_python_offsets {
	uint16_t minor;             /* of version 3 */
	uint16_t interpreters_head; /* of _PyRuntimeState */
	uint16_t threads_head;      /* of PyInterpreterState */
	uint16_t interpreter_next;
	uint16_t gil;          /* of PyInterpreterState, a pointer to it; or of _PyRuntimeState */
	uint16_t owns_gil;     /* 1: the runtime has one, in it */
	uint16_t thread_next;  /* of PyThreadState */
	uint16_t native_id;    /* before 3.11 its pthread_t */
	uint16_t thread_frame; /* the innermost frame, or the innermost _PyCFrame */
	uint16_t has_cframe;   /* 1: thread_frame is a _PyCFrame */
	uint16_t cframe_frame; /* of _PyCFrame */
	uint16_t cframe_previous;
	uint16_t frame_code;
	uint16_t frame_previous;
	uint16_t frame_instruction;
	uint16_t frame_owner;
	uint16_t frame_is_entry; /* 0: entries are frames of C code, by their owner */
	uint16_t code_file;      /* of PyCodeObject */
	uint16_t code_qualname;
	uint16_t code_first_line;
	uint16_t code_line_table;
	uint16_t code_size; /* bytes before the instructions: tp_basicsize; before 3.11 where the
			       bytes object is that has them */
	uint16_t text_size; /* of PyASCIIObject, after which the characters are */
	uint16_t wide_size; /* of PyCompactUnicodeObject, likewise */
};

/* Bytes of a frame at most, as far as its members are read. */
enum { FATHOM_PYTHON_FRAME = 256 };

/* One CPython. */
struct fathom_python {
	const struct fathom_python_offsets *offsets;
	struct fathom_python_offsets stated; /* by itself, in place of a row of the table */
	uint64_t runtime;                    /* avma of _PyRuntime */
	uint64_t code_type;                  /* avmas of types, by which objects are checked */
	uint64_t text_type;
	uint64_t bytes_type;
	struct fathom_keyed_array threads; /* PyThreadState by native thread ID, or pthread_t */
	bool has_ids;                      /* one was right: they are of this PID namespace */
};

/* Finds the types by which objects are checked; else returns false, with f->why. */
bool fathom_python_find_types(struct fathom_runtime_found *f);

/* Frees what f->own has, which begins with a struct fathom_python. */
void fathom_python_forget(struct fathom_runtime_found *f);

/* Lists the threads anew, sorted. FATHOM_E_MEMORY. */
fathom_err fathom_python_list_threads(struct fathom_runtime_found *f);

/* A member of a type, as tp_members lists it. */
struct fathom_python_member {
	const char *name;
	uint64_t offset;
};

/*
 * Returns whether the type at @type has objects of @size bytes (0: of any size), and agrees with
 * each of the @n members in @wanted that it lists; at least @least of them it must list.
 */
bool fathom_python_type_agrees(const struct fathom_runtime_found *f, uint64_t type, uint64_t size,
			       const struct fathom_python_member *wanted, size_t n, size_t least);

/*
 * Finds the offsets of the CPython in @f, of version @version (Py_Version): what it states of
 * itself, else a row of the table that agrees with its types. Returns false, with f->why, if it
 * has none that is proven.
 */
bool fathom_python_find_offsets(struct fathom_runtime_found *f, uint32_t version);

/* Returns a number that depends on where the code object at @code has its names and lines. */
uint64_t fathom_python_mark(const struct fathom_runtime_found *f, uint64_t code);

/* As fathom_interpreters_name(). */
fathom_err fathom_python_name(struct fathom_runtime_found *f,
			      const struct fathom_script_frame *frame, struct fathom_arena *arena,
			      struct fathom_script_name *ret);

/*
 * Returns whether @avma is of the GIL at @gil, if that is not 0; *@ret_holder is the PyThreadState
 * that has it, 0 for none.
 */
bool fathom_python_is_of_gil(const struct fathom_runtime_found *f, uint64_t gil, uint64_t avma,
			     uint64_t *ret_holder);

/*
 * Finds the line of the instruction at @position of code whose line table is @table (CPython
 * 3.11 and later: Objects/locations.md). 0: it has none.
 */
uint32_t fathom_python_line(struct fathom_bytes table, uint32_t first_line, uint64_t position);

/*
 * Returns one of version 3.@minor, 8 to 10, whose _PyRuntime is at @runtime, for
 * fathom_python_old; of other versions it has no offsets. NULL without memory.
 */
struct fathom_python *fathom_python_old_create(uint64_t runtime, uint16_t minor);

/*
 * Finds the line of the instruction at @position, in bytes, of code of version 3.@minor, 8 to 10
 * (Objects/lnotab_notes.txt of each). 0: it has none.
 */
uint32_t fathom_python_old_line(struct fathom_bytes table, uint32_t first_line, uint64_t position,
				uint16_t minor);

#endif
