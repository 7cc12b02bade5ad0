/* SPDX-License-Identifier: MIT */
/*
 * Targets: address spaces that questions are asked about. Each kind (a file, a process, a core, the
 * kernel, ...) has a struct of its own, which begins with struct fathom_target, and one table of
 * operations. Nothing but the functions that open targets knows which kind one is.
 *
 * Questions about addresses are asked of a *view*: a target at one moment. It begins, is asked by
 * one thread, and ends; a target has as many at a time as it has threads that ask.
 */
#ifndef FATHOM_TARGET_TARGET_H
#define FATHOM_TARGET_TARGET_H

#include <stdatomic.h>

#include "fathom/target.h"
#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/module/place.h"
#include "safe/base/reader.h"

struct fathom_answers;
struct fathom_batch_options;
struct fathom_jit_process;
struct fathom_rest;
struct fathom_target_ops;

struct fathom_target {
	const struct fathom_target_ops *ops;
	struct fathom *session;
	struct fathom_search_paths *paths; /* has session */
	struct fathom_notes notes;
	/* The file whose addresses, as stated in it, are those of the target; NULL: of what runs */
	struct fathom_module *stated;
	_Atomic uint32_t references;
	uint8_t kind; /* enum fathom_target_kind: what fathom_target_get_info() says */
	bool is_live; /* a process: map and memory change, and each view looks at its files again */
	int pid;      /* of the process that it is or was; 0: none, or not known */
};

/* How numbers are written in the memory of a target, and for which machine its code is. */
struct fathom_layout {
	uint32_t machine; /* EM_; EM_NONE: not known */
	uint8_t word;     /* bytes of an address */
	bool swap;        /* its byte order is not this machine's */
};

/* Registers that have a DWARF number: at most those of aarch64. */
#define FATHOM_REGISTERS 33

/* The general registers of a thread. */
struct fathom_registers {
	uint32_t machine; /* EM_ */
	uint64_t pc;
	uint64_t sp;
	uint64_t known;                   /* a bit for each that has a value */
	uint64_t value[FATHOM_REGISTERS]; /* by DWARF number, as the machine's psABI has them */
};

/* A target at one moment. A kind's own struct begins with it. */
struct fathom_view {
	struct fathom_target *target;
	const struct fathom_place *everywhere; /* where all addresses are; NULL: they differ */
	enum fathom_reason hidden;             /* why no address of it is shown; NONE: they are */
	struct fathom_reader memory;           /* as it is, or was, at that moment */
	struct fathom_errinfo
		failed; /* more about the error that an operation returned last, if any */
};

/* For so few addresses a view may know less than the whole target. */
#define FATHOM_VIEW_FEW 8

/* What a view is for. */
enum fathom_view_use {
	FATHOM_VIEW_PLACES,
	FATHOM_VIEW_LINES,  /* places, whose lines are wanted: that there are none is a note */
	FATHOM_VIEW_MEMORY, /* memory is read, and has to be that of one program */
};

/*
 * What a target can do. Operations are called by many threads at once, those of one view by one.
 * NULL where the comment says what that means.
 */
struct fathom_target_ops {
	/*
	 * Begins a view. With @avmas, of which there are @n, at most FATHOM_VIEW_FEW, it may know
	 * only what those are in; NULL: it knows the whole.
	 */
	fathom_err (*begin)(struct fathom_target *t, enum fathom_view_use use,
			    const uint64_t *avmas, size_t n, struct fathom_view **ret,
			    struct fathom_errinfo *reterr);
	void (*end)(struct fathom_view *v);
	/* Finds where @avma is. FATHOM_E_UNSUPPORTED when that takes a view of the whole. */
	fathom_err (*locate)(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
	/* Calls @fn for each module, once for each bias, in the order of addresses. */
	fathom_err (*modules)(struct fathom_view *v, fathom_module_fn fn, void *data);
	/* Names what no module has a name for, as far as it can. NULL: nothing else has names. */
	fathom_err (*name_rest)(struct fathom_view *v, const struct fathom_rest *rest);
	/*
	 * Calls @fn for each name that the target itself lists, without its modules. NULL: it lists
	 * none.
	 */
	fathom_err (*names)(struct fathom_view *v,
			    bool (*fn)(struct fathom_str name, bool is_local, void *data),
			    void *data);
	/* Tells the layout of the program. */
	fathom_err (*layout)(struct fathom_view *v, struct fathom_layout *ret);
	/*
	 * Returns whether all that was read of @v was of one program: exec() may put another in its
	 * place. NULL: it always is.
	 */
	bool (*has_stayed)(struct fathom_view *v);
	/* Returns what code that a process makes itself is asked of. NULL: it is no process. */
	struct fathom_jit_process *(*jit)(struct fathom_view *v);
	/* Calls @fn for each thread, until it returns false. NULL: it has none that are known. */
	fathom_err (*threads)(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			      void *data);
	/* Reads the registers of thread @tid. NULL: they are not known. */
	fathom_err (*registers)(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				struct fathom_errinfo *reterr);
	/* Returns the number of the main thread, as the process knows it; 0: not known. NULL: ditto
	 */
	int32_t (*main_tid)(const struct fathom_target *t);
	/* Reads up to @size bytes at @avma, as they are now. */
	fathom_err (*read)(struct fathom_target *t, uint64_t avma, void *to, size_t size,
			   size_t *ret_size, struct fathom_errinfo *reterr);
	/*
	 * Reads code where read() has failed with @err: *@ret_size bytes from the file that it was
	 * linked to. NULL: nothing else has it.
	 */
	fathom_err (*read_stated)(struct fathom_target *t, fathom_err err, uint64_t avma, void *to,
				  size_t size, size_t *ret_size);
	/* Calls @fn for each module that is open; none is closed meanwhile. */
	void (*each_open)(const struct fathom_target *t,
			  void (*fn)(struct fathom_module *m, void *data), void *data);
	/*
	 * Returns FATHOM_E_CHANGED if the file that the target is, or was stored in, was cut or, if
	 * @also_overwritten, was overwritten. NULL: there is no such file.
	 */
	fathom_err (*check)(const struct fathom_target *t, bool also_overwritten,
			    struct fathom_errinfo *reterr);
	void (*describe)(const struct fathom_target *t, struct fathom_target_info *ret);
	/* Writes a snapshot. NULL: none can be taken. */
	fathom_err (*store)(struct fathom_target *t, const char *path,
			    struct fathom_errinfo *reterr);
	/* Closes what the kind has and frees @t. */
	void (*free)(struct fathom_target *t);
};

/* Prepares the general part of a target, which is all zero. */
void fathom_target_init(struct fathom_target *t, const struct fathom_target_ops *ops,
			struct fathom_search_paths *paths, enum fathom_target_kind kind);
/* Ends the general part. */
void fathom_target_deinit(struct fathom_target *t);

/* Begins a view of all of @t. */
static inline fathom_err fathom_view_begin(struct fathom_target *t, enum fathom_view_use use,
					   struct fathom_view **ret, struct fathom_errinfo *reterr)
{
	return t->ops->begin(t, use, NULL, 0, ret, reterr);
}

/* Ends a view; NULL is nothing. */
static inline void fathom_view_end(struct fathom_view *v)
{
	if (v)
		v->target->ops->end(v);
}

/* Finds where @avma is. Of a view of the whole, FATHOM_E_MEMORY or what v->failed tells. */
static inline fathom_err fathom_view_locate(struct fathom_view *v, uint64_t avma,
					    struct fathom_place *ret)
{
	return v->target->ops->locate(v, avma, ret);
}

/* Reads up to @size bytes at @avma; returns how many could be read, with errno for the others. */
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

/* Calls @fn for each thread, until it returns false. FATHOM_E_UNSUPPORTED: none are known. */
fathom_err fathom_view_threads(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			       void *data, struct fathom_errinfo *reterr);

/*
 * Reads the registers of thread @tid, as it is known to the target. FATHOM_E_NOT_FOUND: there is no
 * such thread; FATHOM_E_UNSUPPORTED: it is not stopped, or what is known of it has none.
 */
fathom_err fathom_view_registers(struct fathom_view *v, int32_t tid, struct fathom_registers *ret,
				 struct fathom_errinfo *reterr);

/* Returns @err, with which an operation of @v has failed, and in @reterr all that is known of it.
 */
fathom_err fathom_view_fail(const struct fathom_view *v, fathom_err err,
			    struct fathom_errinfo *reterr);

/* Returns whether @avma is in @module, loaded at @bias. */
bool fathom_view_holds(struct fathom_view *v, const struct fathom_module *module, uint64_t bias,
		       uint64_t avma);

/* Reads code at @avma: *@ret_stated, from the file that it was linked to. */
fathom_err fathom_target_read_code(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				   size_t *ret_size, bool *ret_stated,
				   struct fathom_errinfo *reterr);

/* Returns the layout of @t; its machine is EM_NONE where it cannot be known. */
struct fathom_layout fathom_target_layout(struct fathom_target *t);

/* Returns the machine that this library is built for, EM_NONE for one that it does not know. */
uint32_t fathom_own_machine(void);

/*
 * Returns @err, how a call on @target has ended; but FATHOM_E_CHANGED, which @reterr tells more of,
 * if a file that @target has open was cut (mapped.h): what was made of it is of no use, and what
 * has failed has failed for that.
 */
fathom_err fathom_target_end_call(const struct fathom_target *target, fathom_err err,
				  struct fathom_errinfo *reterr);

#endif
