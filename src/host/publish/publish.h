/* SPDX-License-Identifier: MIT */
/*
 * Publishes the code that this process makes.
 *
 * All functions of all arenas stand in one index, sorted by address, in leaves of neighbours. A
 * leaf is what debuggers and old unwinders are told of: one symbol file, one image of call frame
 * information; so their ranges never interleave, and there are few of them. A commit makes the
 * leaves that it changes anew beside the old ones, tells everybody of the new, then withdraws the
 * old: what both have in common is known all the time. Nothing that can fail comes after the first
 * consumer was told.
 */
#ifndef FATHOM_PUBLISH_PUBLISH_H
#define FATHOM_PUBLISH_PUBLISH_H

#include <pthread.h>

#include "fathom/jit.h"
#include "host/base/array.h"
#include "host/publish/frame.h"

/* Symbol files that gdb is told of at most. */
#define FATHOM_JIT_MOST_LEAVES 256

/* A source file, once however many functions come from it. */
struct fathom_jit_file {
	struct fathom_jit_file *next; /* with the same hash */
	size_t uses;                  /* by bodies */
	uint32_t stamp;               /* of the symbol file that `number` is of */
	uint32_t number;
	char name[];
};

/* A line, as fathom_jit_line. */
struct fathom_jit_row {
	struct fathom_jit_file *file;
	uint32_t offset;
	uint32_t line;
	uint32_t column;
};

struct fathom_jit_copy {
	struct fathom_jit_file *file;
	const char *name;
	uint32_t begin;
	uint32_t end;
	uint32_t line;
};

/* A CIE, once however many functions have it. */
struct fathom_jit_cie {
	struct fathom_jit_cie *next;
	struct fathom_cie_form form;
	uint32_t stamp; /* of the image that `off` is of */
	uint32_t off;
	uint8_t bytes[];
};

/* Facts about a function wherever it is. Its arrays and texts follow it in memory. */
struct fathom_jit_body {
	const struct fathom_jit_cie *cie; /* NULL: nothing is said, or the arena says it */
	const uint8_t *instructions;
	const char *name;
	const struct fathom_jit_row *rows;
	const struct fathom_jit_copy *copies;
	struct fathom_jit_file *file; /* NULL: unknown */
	uint64_t size;                /* bytes of code */
	uint64_t framed;              /* bytes of it that the CIE is of */
	uint64_t lsda;
	uint32_t n_instructions;
	uint32_t n_name; /* bytes, without the NUL */
	uint32_t n_rows;
	uint32_t n_copies;
	uint32_t uses; /* functions: two while one moves */
};

/* Words of libgcc's struct object, whose size is a part of its ABI (6), and a reserve. */
#define FATHOM_JIT_OBJECT_WORDS 8

/*
 * libgcc's struct object. Up to version 12, libgcc reads it after it has given back its lock, when
 * it may have been deregistered: it is used again only after a while.
 */
struct fathom_jit_object {
	struct fathom_jit_object *next;
	uint64_t gone; /* when it was deregistered; nanoseconds */
	uint64_t words[FATHOM_JIT_OBJECT_WORDS];
};

/* Token that an unwinder keeps of an image. */
struct fathom_jit_token {
	struct fathom_jit_token *next;
	struct fathom_jit_object *object; /* libgcc's; else NULL */
	uint8_t unwinder;                 /* its index */
	bool is_told; /* it knows the image, and must be told before that goes */
	uint64_t room[];
};

/*
 * Call frame information that unwinders are told of: of a leaf, in whose file its bytes lie, or of
 * a function or an arena, whose bytes lie after it.
 */
struct fathom_jit_image {
	struct fathom_jit_token *tokens;
	uint8_t *bytes; /* CIEs, FDEs, a terminator */
	size_t fde;     /* offset of the first FDE */
	size_t n_fde;   /* their number */
	uint64_t low;
	uint64_t high;
};

/* A function where it is. */
struct fathom_jit_entry {
	uint64_t low;
	struct fathom_jit_body *body;
	struct fathom_jit_arena *arena;
	/*
	 * Call frame information for unwinders. They read it without a lock after they have found
	 * it, so it stays where it is until the function goes. NULL: nobody wants it, or nothing is
	 * said.
	 */
	struct fathom_jit_image *image;
	uint64_t since; /* as fathom_registry_function.since */
	uint64_t index; /* in jitdumps: rises */
	bool leaves;    /* in the commit at hand */
};

static inline uint64_t fathom_jit_high(const struct fathom_jit_entry *e)
{
	return e->low + e->body->size;
}

/* An entry of GDB's list. */
struct fathom_jit_gdb_entry {
	struct fathom_jit_gdb_entry *next;
	struct fathom_jit_gdb_entry *prev;
	const void *symbol_file;
	uint64_t size;
};

/* Neighbours. */
struct fathom_jit_leaf {
	struct fathom_jit_leaf *next; /* of those that are gone */
	struct fathom_jit_gdb_entry gdb;
	struct fathom_jit_image image; /* its bytes lie in `block` */
	/* A serial number, then the symbol file, or the image alone; NULL: nobody wants it. */
	uint64_t *block;
	uint64_t serial;
	size_t n;
	uint64_t commit; /* number of the one that made it, or that replaced it */
	bool in_list;    /* of gdb's */
	struct fathom_jit_entry *entries[];
};

/* Returns the symbol file of @l. */
static inline uint8_t *fathom_jit_file_of(const struct fathom_jit_leaf *l)
{
	return (uint8_t *)(l->block + 1);
}

struct fathom_jit_leaves {
	FATHOM_ARRAY_OF(struct fathom_jit_leaf *);
};

struct fathom_jit_entries {
	FATHOM_ARRAY_OF(struct fathom_jit_entry *);
};

struct fathom_jit_arena {
	struct fathom_jit_arena *next;
	uint64_t low;
	uint64_t high;
	const struct fathom_jit_cie *cie; /* NULL: each function has its own rule */
	uint8_t *instructions;
	uint32_t n_instructions;
	uint64_t lsda;
	struct fathom_jit_image *image; /* NULL: each function has its own rule */
	bool is_within_file;            /* FATHOM_JIT_WITHIN_FILE */
};

/* A kind of unwinder. */
enum fathom_jit_unwinder_kind {
	FATHOM_JIT_LIST = 0,  /* libgcc up to 12: arrays of images in a list, searched one by one */
	FATHOM_JIT_TREE = 1,  /* libgcc from 13 on: a tree of ranges that do not overlap */
	FATHOM_JIT_CACHE = 2, /* LLVM: all FDEs in one array */
	FATHOM_JIT_TABLES = 3 /* nongnu: a list of sorted tables */
};

/* An unwinder in the process: the calls that it exports. */
struct fathom_jit_unwinder {
	uint32_t consumer; /* enum fathom_jit_consumer */
	uint8_t kind;      /* enum fathom_jit_unwinder_kind */
	void *handle;      /* keeps it loaded; NULL: it is the program's own */
	void *add;
	void *add_array; /* libgcc: of images */
	void *remove;
	void *find;  /* libgcc: _Unwind_Find_FDE */
	void *flush; /* nongnu: of its caches */
	void *space; /* nongnu: unw_local_addr_space */
};

#define FATHOM_JIT_MOST_UNWINDERS 8

/* Probe that asks a libgcc which of its kinds it is. It keeps a part of it for ever. */
struct fathom_jit_probe {
	uint64_t objects[2][FATHOM_JIT_OBJECT_WORDS];
	uint8_t code[64];
	_Alignas(8) uint8_t bytes[2][128];
};

/* Files of perf's, of this process. */
struct fathom_jit_dump {
	int fd; /* 0: not open */
	void *mark;
	size_t mark_size;
};

/* Everything that is published: one of the three pieces of file-scope state. */
struct fathom_jit_registry {
	pthread_mutex_t mutex;
	const struct fathom_jit_machine *machine;
	struct fathom_jit_leaves leaves;
	struct fathom_jit_arena *arenas;
	struct fathom_jit_arena *gone_arenas; /* the newest first */
	size_t capacity;                      /* functions of a leaf */
	uint64_t n_commits;
	struct fathom_jit_cie *cies;
	struct fathom_jit_file *files[256];
	uint32_t stamp; /* of the last image or symbol file */
	struct fathom_bytes_array scratch;
	/* Replaced, the newest first: unwinders and readers of the registry may still read them. */
	struct fathom_jit_leaf *gone;
	size_t gone_bytes;
	struct fathom_jit_table *table;       /* that readers are led to; NULL: none yet */
	struct fathom_jit_table *gone_tables; /* replaced, the oldest first */
	struct fathom_jit_table *last_gone_table;
	size_t n_gone_tables;
	size_t gone_table_bytes;
	uint64_t serial;  /* the last one given */
	uint64_t since;   /* the last one given */
	uint64_t idle[2]; /* number of the last commit at whose end the readers were none */
	/* Offsets of FDEs in the image of a leaf that was written last, one for each function. */
	struct fathom_u32_array fdes;
	struct fathom_jit_object *objects; /* that are gone, the oldest first */
	struct fathom_jit_object *last_object;
	struct fathom_jit_unwinder unwinders[FATHOM_JIT_MOST_UNWINDERS];
	size_t n_unwinders;
	struct fathom_jit_probe probe;
	uint64_t loaded; /* what the dynamic linker had loaded and unloaded when unwinders were
			    looked for */
	int perf_map;    /* descriptor; 0: not open */
	struct fathom_jit_dump dump;
	uint64_t next_index;
	int32_t files_pid; /* whose files are open; 0: nobody's */
	char folder[256];
	char unknown[256]; /* note of a word of FATHOM_JIT that is none */
	const char *notes[16];
	size_t n_notes;
	bool is_set_up;
};

extern struct fathom_jit_registry fathom_jit_registry;

/* The consumers that are on: bits. Read without the lock. */
extern _Atomic uint32_t fathom_jit_on;

/* Says @text once. */
void fathom_jit_say(struct fathom_jit_registry *r, const char *text);

/*
 * Writes what @put makes of @data to the scratch, in as many tries as its growth takes. Returns it;
 * no data without memory.
 */
struct fathom_bytes fathom_jit_scratch_write(struct fathom_jit_registry *r,
					     void (*put)(struct fathom_jit_registry *r,
							 struct fathom_out *o, const void *data),
					     const void *data);

#endif
