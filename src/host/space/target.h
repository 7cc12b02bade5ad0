/* SPDX-License-Identifier: MIT */
/*
 * Targets: address spaces to query. Each kind (a file, a process, a core, the kernel, ...) has a
 * struct of its own, which begins with struct fathom_target, and one table of operations. Only the
 * functions that open targets know the kind.
 *
 * Addresses are looked up in a *view*: a target at one moment. One thread begins, uses and ends a
 * view; each thread that queries a target has its own.
 */
#ifndef FATHOM_SPACE_TARGET_H
#define FATHOM_SPACE_TARGET_H

#include <stdatomic.h>

#include "fathom/target.h"
#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/module/place.h"
#include "safe/base/reader.h"
#include "safe/unwind/registers.h"

struct fathom_answers;
struct fathom_batch_options;
struct fathom_jit_process;
struct fathom_maps;
struct fathom_unresolved;
struct fathom_target_ops;

struct fathom_target {
	const struct fathom_target_ops *ops;
	struct fathom *session;
	struct fathom_search_paths *paths; /* has session */
	struct fathom_notes notes;
	/*
	 * The file whose stated addresses (svma) are the target's; NULL if the target's are
	 * run-time addresses
	 */
	struct fathom_module *stated;
	_Atomic uint32_t references;
	uint8_t kind; /* enum fathom_target_kind: what fathom_target_get_info() says */
	bool is_live; /* a process: its map, memory and files may change between views */
	int pid;      /* of the process that it is or was; 0: none or unknown */
};

/* The machine, word size and byte order of a target. */
struct fathom_layout {
	uint32_t machine; /* EM_; EM_NONE: unknown */
	uint8_t word;     /* bytes in an address */
	bool swap;        /* its byte order is not this machine's */
};

/* A target at one moment. A kind's own struct begins with it. */
struct fathom_view {
	struct fathom_target *target;
	const struct fathom_place *everywhere; /* the place of all addresses; NULL: they differ */
	enum fathom_reason hidden;             /* why addresses are hidden; NONE: they are not */
	struct fathom_reader memory;           /* as it is, or was, at the view's moment */
	struct fathom_errinfo failed;          /* details of the last error */
};

/* Pieces of stack that are copied of one thread. */
#define FATHOM_STACK_PIECES 8

struct fathom_stack_piece {
	uint64_t avma;
	struct fathom_bytes bytes;
};

/* Copies of a thread's stacks: the one that it was on first, then those that it leads to. */
struct fathom_stack_pieces {
	struct fathom_stack_piece items[FATHOM_STACK_PIECES];
	uint8_t n;
};

/* A thread as it was stored. Texts without data: unknown. */
struct fathom_stored_thread {
	struct fathom_str name;
	struct fathom_str syscall; /* that it was in */
	struct fathom_str waits_for;
	struct fathom_str failed;          /* why it has no registers */
	struct fathom_registers registers; /* unless EM_NONE; of a core, see registers() */
	struct fathom_stack_pieces stack;  /* copies; none: it is in memory */
	uint64_t fault_address;            /* of the signal; FATHOM_NO_ADDRESS: none */
	uint64_t pac_mask;                 /* bits that sign a return address; 0: unknown */
	uint64_t pause_ns;
	int64_t syscall_number; /* -1: none */
	int32_t pid;            /* 0: unknown */
	int32_t tid;
	int32_t signal;      /* that it was about to take; 0: none */
	int32_t signal_code; /* si_code */
	int32_t owner;
	char state; /* 0: unknown */
	uint8_t reason;
	uint8_t was_restarted;
};

/* Stacks to be stored in a snapshot. */
struct fathom_stored_stacks {
	const struct fathom_stored_thread *threads;
	size_t n_threads;
	const uint64_t *pages; /* avmas, 4 KiB each, sorted: memory that the walks have read */
	size_t n_pages;
};

/* A live process, whose threads can be read: host/stack/capture.h. */
struct fathom_live {
	int pid;                        /* in our PID namespace; 0: in another one */
	int proc;                       /* descriptor of its directory below /proc */
	const struct fathom_maps *maps; /* of the view */
};

/* The most addresses for which a view may cover only part of the target. */
#define FATHOM_VIEW_FEW 8

/* Purposes of a view. */
enum fathom_view_use {
	FATHOM_VIEW_PLACES,
	FATHOM_VIEW_LINES,  /* places and their lines; missing lines are noted */
	FATHOM_VIEW_MEMORY, /* memory, of one program only */
};

/*
 * The operations of a target. Many threads may call them at once, but only one for each view. An
 * operation may be NULL only if its comment says what that means.
 */
struct fathom_target_ops {
	/*
	 * Begins a view. If @avmas is not NULL, the view may cover only those @n addresses, at most
	 * FATHOM_VIEW_FEW; otherwise it covers the whole target.
	 */
	fathom_err (*begin)(struct fathom_target *t, enum fathom_view_use use,
			    const uint64_t *avmas, size_t n, struct fathom_view **ret,
			    struct fathom_errinfo *reterr);
	void (*end)(struct fathom_view *v);
	/* Finds where @avma is. FATHOM_E_UNSUPPORTED if that needs a view of the whole target. */
	fathom_err (*locate)(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
	/*
	 * Adds to @ret, the place of code that locate() found in no module, what the program says
	 * of the code that it makes. NULL: it makes none. FATHOM_E_MEMORY.
	 */
	fathom_err (*locate_jit)(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
	/* Reads what locate_jit() reports, as it is now. FATHOM_E_MEMORY. */
	fathom_err (*begin_jit)(struct fathom_view *v);
	/* Returns whether all that locate_jit() has told is true now. NULL: always. */
	bool (*jit_stayed)(struct fathom_view *v);
	/* Calls @fn for each module at each bias, in address order. */
	fathom_err (*modules)(struct fathom_view *v, fathom_module_fn fn, void *data);
	/*
	 * Names addresses that no module names, as far as possible. NULL: there are no other names.
	 */
	fathom_err (*name_unresolved)(struct fathom_view *v, const struct fathom_unresolved *rest);
	/* Calls @fn for each name that the target itself, not a module, lists. NULL: none. */
	fathom_err (*names)(struct fathom_view *v,
			    bool (*fn)(struct fathom_str name, bool is_local, void *data),
			    void *data);
	/* Finds the layout of the program. */
	fathom_err (*layout)(struct fathom_view *v, struct fathom_layout *ret);
	/*
	 * Returns whether all memory read through @v was one program's: exec() may replace it.
	 * NULL: always true.
	 */
	bool (*has_stayed)(struct fathom_view *v);
	/* Returns the process for JIT look-ups. NULL: the target is no process. */
	struct fathom_jit_process *(*jit)(struct fathom_view *v);
	/* Calls @fn for each stored thread, until it returns false. NULL: it has none. */
	fathom_err (*threads)(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			      void *data);
	/* Reads the registers of thread @tid. NULL: they are unknown. */
	fathom_err (*registers)(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				struct fathom_errinfo *reterr);
	/* Describes thread @tid, which there is. NULL: nothing but registers was stored. */
	void (*describe_thread)(struct fathom_view *v, int32_t tid,
				struct fathom_stored_thread *ret);
	/* Returns the end of the mapping that holds @avma; 0: there is none. NULL: unknown. */
	uint64_t (*mapping_end)(const struct fathom_view *v, uint64_t avma);
	/* Returns whether @v is of a live process, and which. NULL: it never is. */
	bool (*live)(struct fathom_view *v, struct fathom_live *ret);
	/* Returns the main thread's number in the process's own namespace; 0 or NULL: unknown. */
	int32_t (*main_tid)(const struct fathom_target *t);
	/* Reads up to @size bytes at @avma now. */
	fathom_err (*read)(struct fathom_target *t, uint64_t avma, void *to, size_t size,
			   size_t *ret_size, struct fathom_errinfo *reterr);
	/*
	 * Reads code from the linked file after read() failed with @err; stores the size read in
	 * *@ret_size. NULL: there is no other source.
	 */
	fathom_err (*read_stated)(struct fathom_target *t, fathom_err err, uint64_t avma, void *to,
				  size_t size, size_t *ret_size);
	/* Calls @fn for each open module; none is closed meanwhile. */
	void (*each_open)(const struct fathom_target *t,
			  void (*fn)(struct fathom_module *m, void *data), void *data);
	/*
	 * Returns FATHOM_E_CHANGED if the target's own file was truncated or, with
	 * @also_overwritten, overwritten. NULL: there is no such file.
	 */
	fathom_err (*check)(const struct fathom_target *t, bool also_overwritten,
			    struct fathom_errinfo *reterr);
	void (*describe)(const struct fathom_target *t, struct fathom_target_info *ret);
	/* Writes a snapshot without stacks. NULL: no snapshots are taken of the target. */
	fathom_err (*store)(struct fathom_target *t, const char *path,
			    struct fathom_errinfo *reterr);
	/* Frees @t and what its kind owns. */
	void (*free)(struct fathom_target *t);
};

/* Initializes the general part of a target, which is all zero. */
void fathom_target_init(struct fathom_target *t, const struct fathom_target_ops *ops,
			struct fathom_search_paths *paths, enum fathom_target_kind kind);
/* Frees the general part. */
void fathom_target_deinit(struct fathom_target *t);

/* Begins a view of all of @t. */
static inline fathom_err fathom_view_begin(struct fathom_target *t, enum fathom_view_use use,
					   struct fathom_view **ret, struct fathom_errinfo *reterr)
{
	return t->ops->begin(t, use, NULL, 0, ret, reterr);
}

/* Returns the end of the mapping that holds @avma; 0: there is none, or it is not known. */
static inline uint64_t fathom_view_mapping_end(const struct fathom_view *v, uint64_t avma)
{
	return v->target->ops->mapping_end ? v->target->ops->mapping_end(v, avma) : 0;
}

/* Ends a view; @v may be NULL. */
static inline void fathom_view_end(struct fathom_view *v)
{
	if (v)
		v->target->ops->end(v);
}

/*
 * Finds where @avma is. In a view of the whole target, it fails only with FATHOM_E_MEMORY or the
 * error in v->failed.
 */
static inline fathom_err fathom_view_locate(struct fathom_view *v, uint64_t avma,
					    struct fathom_place *ret)
{
	return v->target->ops->locate(v, avma, ret);
}

/*
 * Finds where @avma is, as fathom_view_locate() does, and what describes it if it is code of no
 * file. A symbol file of GDB's JIT interface becomes its holder until the view ends, at bias 0; of
 * jitdumps and perf maps only the source and how to unwind the code are told. The first such
 * address of a view reads the lists, unless fathom_view_begin_code() did.
 */
static inline fathom_err fathom_view_locate_code(struct fathom_view *v, uint64_t avma,
						 struct fathom_place *ret)
{
	FATHOM_TRY(fathom_view_locate(v, avma, ret));
	if (ret->holder || !ret->is_code || !v->target->ops->locate_jit)
		return FATHOM_OK;
	return v->target->ops->locate_jit(v, avma, ret);
}

/*
 * Reads what describes code of no file as it is now, if there is such code: what was true then and
 * is when fathom_view_jit_stayed() is asked was true in between. FATHOM_E_MEMORY.
 */
static inline fathom_err fathom_view_begin_code(struct fathom_view *v)
{
	return v->target->ops->begin_jit ? v->target->ops->begin_jit(v) : FATHOM_OK;
}

/* Returns whether @v is of a live process, and which. */
static inline bool fathom_view_live(struct fathom_view *v, struct fathom_live *ret)
{
	return v->target->ops->live && v->target->ops->live(v, ret);
}

/*
 * Returns whether all that fathom_view_locate_code() has told is true now: each symbol file is
 * still registered and has the same bytes, files and lists tell the same, and nothing was missed. A
 * program that runs may change them; if this is false, what was found out with them is worthless.
 */
static inline bool fathom_view_jit_stayed(struct fathom_view *v)
{
	return !v->target->ops->jit_stayed || v->target->ops->jit_stayed(v);
}

/* Reads up to @size bytes at @avma; returns how many it read, and sets errno if fewer. */
static inline size_t fathom_view_read(const struct fathom_view *v, uint64_t avma, void *to,
				      size_t size)
{
	return v->memory.read(v->memory.data, avma, to, size);
}

/* Calls @fn for each module, as the operation does. */
static inline fathom_err fathom_view_modules(struct fathom_view *v, fathom_module_fn fn, void *data)
{
	return v->target->ops->modules(v, fn, data);
}

/* Answers @n addresses as fathom_symbolize() does. */
fathom_err fathom_target_answer(struct fathom_target *target,
				const struct fathom_batch_options *options,
				const uint64_t *addresses, size_t n,
				struct fathom_answers **ret_answers, struct fathom_errinfo *reterr);

/* Answers @n addresses in @v, a view of the whole target. */
fathom_err fathom_view_answer(struct fathom_view *v, const struct fathom_batch_options *options,
			      const uint64_t *addresses, size_t n,
			      struct fathom_answers **ret_answers, struct fathom_errinfo *reterr);

/* Calls @fn for each stored thread, until it returns false. FATHOM_E_UNSUPPORTED: it has none. */
fathom_err fathom_view_threads(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			       void *data, struct fathom_errinfo *reterr);

/*
 * Reads the registers of thread @tid, a number as the target knows it. FATHOM_E_NOT_FOUND: there is
 * no such thread; FATHOM_E_UNSUPPORTED: its registers were not stored.
 */
fathom_err fathom_view_registers(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				 struct fathom_errinfo *reterr);

/* Returns @err, the error of an operation of @v, and copies its details to @reterr. */
fathom_err fathom_view_fail(const struct fathom_view *v, fathom_err err,
			    struct fathom_errinfo *reterr);

/* Returns whether @avma is in @module, loaded at @bias. */
bool fathom_view_holds(struct fathom_view *v, const struct fathom_module *module, uint64_t bias,
		       uint64_t avma);

/* Reads code at @avma. *@ret_stated tells whether it comes from the linked file. */
fathom_err fathom_target_read_code(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				   size_t *ret_size, bool *ret_stated,
				   struct fathom_errinfo *reterr);

/* Returns the layout of @t; its machine is EM_NONE if unknown. */
struct fathom_layout fathom_target_layout(struct fathom_target *t);

/* Returns the machine that this library is built for; EM_NONE if unsupported. */
uint32_t fathom_own_machine(void);

/*
 * Returns @err, the result of a call on @target, or FATHOM_E_CHANGED with details in @reterr if an
 * open file of @target was truncated (mapped.h): results from that file are worthless, and a
 * failure was caused by it.
 */
fathom_err fathom_target_end_call(const struct fathom_target *target, fathom_err err,
				  struct fathom_errinfo *reterr);

#endif
