/* SPDX-License-Identifier: MIT */
/*
 * .gopclntab, by which Go's own runtime names code: functions, files, lines and inlined calls. It
 * stays when a program is stripped. Layouts of Go 1.2 (golang.org/s/go12symtab), 1.16, 1.18 and
 * 1.20 (runtime/symtab.go of each).
 *
 * A value that depends on the pc, such as the line, is a list of runs: differences of the value and
 * of the pc, both variable-length.
 *
 * The table is input from outside: every offset is checked where it is followed.
 */
#ifndef FATHOM_GOLANG_PCLNTAB_H
#define FATHOM_GOLANG_PCLNTAB_H

#include "host/file/fixups.h"
#include "host/file/object.h"
#include "safe/base/cursor.h"

/* By the first version of Go that has it. */
enum fathom_go_layout {
	FATHOM_GO_NONE = 0,
	FATHOM_GO_1_2,
	FATHOM_GO_1_16, /* tables of their own for names, files and values */
	FATHOM_GO_1_18, /* functions are distances from the start of the text */
	FATHOM_GO_1_20, /* functions know their first line; inlined calls are shorter */
};

struct fathom_pclntab {
	const struct fathom_object *object;
	struct fathom_fixups *fixups; /* of pointers; NULL: none were needed */
	struct fathom_bytes bytes;
	uint64_t svma; /* of bytes */
	bool swap;
	uint8_t layout; /* enum fathom_go_layout */
	uint8_t pointer_size;
	uint8_t quantum; /* of pcs */
	uint32_t n;      /* functions */
	uint64_t text;   /* svma that functions are distances from; 0 in older layouts */
	/* Parts of bytes, up to its end. */
	struct fathom_bytes names;
	struct fathom_bytes cus; /* file numbers of compilation units; since 1.16 */
	struct fathom_bytes files;
	struct fathom_bytes values;
	struct fathom_bytes functions; /* entries, then what they lead to */
	/* svma that data of functions are distances from; 0: not known, or in older layouts */
	uint64_t function_data;
};

/* Offset of no list of runs. */
#define FATHOM_GO_NO_VALUES 0

struct fathom_go_function {
	uint64_t entry;
	uint64_t limit; /* entry of the next one: there may be padding before it */
	struct fathom_str name;
	uint32_t name_off;
	uint32_t sp; /* lists of runs: offsets in values */
	uint32_t file;
	uint32_t line;
	uint32_t inlined;      /* indexes in inline_tree; no list: no call was inlined */
	uint32_t cu;           /* index of its first file in cus */
	uint32_t first_line;   /* 0: not known */
	uint64_t inline_tree;  /* svma; 0: none, or not known */
	bool is_outermost;     /* nothing calls it, as its flag says */
	bool has_unknown_tree; /* calls may be inlined, of which nothing is known */
};

/* Returns whether @o was made by Go, and may have a table. */
bool fathom_pclntab_is_go(const struct fathom_object *o);

/*
 * Finds the table of @o, which must stay open. FATHOM_E_NOT_FOUND: it has none, or one that is not
 * known or damaged. FATHOM_E_MEMORY.
 */
fathom_err fathom_pclntab_open(struct fathom_pclntab *t, const struct fathom_object *o);
void fathom_pclntab_close(struct fathom_pclntab *t);

/* Reads function @i, below n; returns false if it is damaged. */
bool fathom_pclntab_function(const struct fathom_pclntab *t, uint32_t i,
			     struct fathom_go_function *ret);

/* Finds where the code of @f ends: its last instruction, before padding. */
uint64_t fathom_pclntab_end(const struct fathom_pclntab *t, const struct fathom_go_function *f);

/* Returns file @number of function @f; data is NULL if there is none. */
struct fathom_str fathom_pclntab_file(const struct fathom_pclntab *t,
				      const struct fathom_go_function *f, int32_t number);

/* Returns the name at offset @off of the names: only one that begins there. */
struct fathom_str fathom_pclntab_name(const struct fathom_pclntab *t, uint32_t off);

/* An inlined call. */
struct fathom_go_call {
	uint32_t name_off;
	uint64_t parent_pc;  /* has the caller's position, and index */
	uint32_t first_line; /* of the function; 0: not known */
};

/* Reads call @i of the tree of @f; returns false if it is damaged. */
bool fathom_pclntab_call(const struct fathom_pclntab *t, const struct fathom_go_function *f,
			 int32_t i, struct fathom_go_call *ret);

/* A list of runs that is being read. */
struct fathom_go_runs {
	struct fathom_cursor cursor;
	uint64_t low; /* of the run that was read last: value holds in [low, high) */
	uint64_t high;
	int32_t value;
	uint8_t quantum;
	bool is_begun;
};

/* Begins to read the list at @off of @f. */
struct fathom_go_runs fathom_go_runs_init(const struct fathom_pclntab *t,
					  const struct fathom_go_function *f, uint32_t off);

/* Reads the next run; returns false after the last one. */
bool fathom_go_runs_next(struct fathom_go_runs *r);

#endif
